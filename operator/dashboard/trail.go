package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A trail reads the audit trail and describes its events.
type trail struct {
	*site
	Clients *idp.Provider
	Audit   func(context.Context, audit.Filter, page.Query) (page.Page[audit.Event], error) // nil shows no events
}

// An eventRow is an event of the audit trail as it is listed.
type eventRow struct {
	audit.Event
	Say       string   // what was done, in words
	Who, Whom thingRow // who did it, and to what
	More      string   // what else is known, a line each
	Project   string   // its name, where the page is of all projects
	Why       string   // what a refusal means, and what to do
	Status    status
}

// A thingRow is what an event names.
type thingRow struct {
	Kind, Name string // in words; a Name of "" is not known, or was deleted
	ID, URL    string // of its page; "" where there is none
}

// kindsOfThings are the words for what events name; others are their own.
var kindsOfThings = map[string]string{
	string(audit.System): "The server", string(audit.CLI): "Command line", string(audit.Anonymous): "Somebody",
	string(audit.APIKey): "API key", string(audit.Client): "OAuth client",
	"account": "An address nobody has here", "ring": "Keys of the installation", "audit": "Audit trail",
	"session": "Sign-in", "grant": "App’s access",
	"sip_address": "SIP address", "sip_credential": "SIP credential", "operator": "Operator",
	"subscriber": "Subscriber",
}

// eventRows returns the rows of events. Each thing that they name is looked up once.
func (a *trail) eventRows(v *visit, events []audit.Event) (all []eventRow, err error) {
	type which struct{ project, kind, id string }
	known := make(map[which]string)
	thing := func(e audit.Event, kind, id string) (thingRow, error) {
		row, key := thingRow{Kind: a.kindOf(kind), ID: id}, which{e.ProjectID, kind, id}
		name, ok := known[key]
		if !ok {
			var err error
			if name, err = a.nameOf(v, e.ProjectID, kind, id); err != nil {
				return row, err
			}
			known[key] = name
		}
		if row.Name = name; name != "" {
			row.URL = a.thingOf(v, e.ProjectID, kind, id)
		}
		return row, nil
	}
	for _, e := range events {
		row := eventRow{Event: e, Say: audit.Say(e.Action, e.Outcome), Status: status{"good", "Done"}}
		if e.Outcome == audit.Refused {
			row.Status, row.Why = status{"bad", "Refused"}, explain(e)
		}
		if row.Who, err = thing(e, string(e.Actor.Kind), e.Actor.ID); err != nil {
			return nil, err
		}
		if row.Whom, err = thing(e, e.Target.Kind, e.Target.ID); err != nil {
			return nil, err
		}
		if row.Whom.Name == "" {
			row.Whom.Name = cmp.Or(e.Detail["name"], e.Detail["email"])
		}
		if v.project.ID == "" && e.ProjectID != "" && e.Target.Kind != "project" {
			in, err := thing(e, "project", e.ProjectID)
			if err != nil {
				return nil, err
			}
			row.Project = cmp.Or(in.Name, e.ProjectID)
		}
		row.More = moreOf(e)
		all = append(all, row)
	}
	return all, nil
}

// kindOf tells in words what kind of thing an event names.
func (a *trail) kindOf(kind string) string {
	if known := kindsOfThings[kind]; known != "" {
		return known
	}
	if k := a.Fabric.Kinds().ByType(kind); k != nil {
		return k.Title
	}
	return words(strings.ReplaceAll(kind, "_", " "))
}

// moreOf returns what an event says that its row does not show.
func moreOf(e audit.Event) string {
	var lines []string
	say := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		say(strings.ReplaceAll(name, "_", " "), e.Detail[name])
	}
	say("by", strings.TrimSpace(fmt.Sprintf("%s %s", e.Actor.Kind, e.Actor.ID)))
	say("of", strings.TrimSpace(fmt.Sprintf("%s %s", e.Target.Kind, e.Target.ID)))
	say("request", e.RequestID)
	say("event", e.ID)
	return strings.Join(lines, "\n")
}

// nameOf returns what people call a thing that an event names; "" where it has no name, or is
// not there any more.
func (a *trail) nameOf(v *visit, projectID, kind, id string) (name string, err error) {
	if id == "" {
		return "", nil
	}
	ctx := v.r.Context()
	switch kind {
	case string(audit.CLI):
		return id, nil
	case "operator":
		o, err := a.Operators.Find(ctx, id)
		return o.Title(), orGone(err)
	case "project":
		p, err := a.Fabric.FindProject(ctx, id)
		return p.Name, orGone(err)
	case "client":
		c, err := a.Clients.FindClient(ctx, id)
		if c.ProjectID != projectID {
			return "", orGone(err) // of another project, whose names are not for who reads this one
		}
		return cmp.Or(c.Name, c.ID), orGone(err)
	case "api_key":
		k, err := a.Fabric.FindAPIKey(ctx, projectID, id)
		if k.ID != "" {
			name = cmp.Or(k.Name, k.Prefix+"…")
		}
		return name, orGone(err)
	case "subscriber":
		s, err := a.Fabric.FindSubscriber(ctx, projectID, id)
		return cmp.Or(s.Email, s.FullName(), s.Reference), orGone(err)
	case "webhook":
		w, err := a.Fabric.FindWebhook(ctx, projectID, id)
		return w.Name, orGone(err)
	}
	if k := a.Fabric.Kinds().ByType(kind); k != nil {
		r, err := a.Fabric.FindResource(ctx, projectID, k, id)
		return r.DisplayName, orGone(err)
	}
	return "", nil
}

// orGone leaves an error out that says that a thing is not there.
func orGone(err error) error {
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	return err
}
