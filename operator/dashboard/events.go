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
	"github.com/selvage/selvage/operator"
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
	Say       string // what was done, in words
	Who, Whom entity // who did it, and to what
	More      string // what else is known, a line each
	Project   string // its name, where the page is of all projects
	Why       string // what a refusal means, and what to do
	Status    status
}

// A entity is what an event names.
type entity struct {
	Kind, Name string // in words; a Name of "" is not known, or was deleted
	ID, URL    string // of its page; "" where there is none
}

// entityKinds are the words for what events name; others are their own.
var entityKinds = map[string]string{
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
	resource := func(e audit.Event, kind, id string) (entity, error) {
		row, key := entity{Kind: a.kindOf(kind), ID: id}, which{e.ProjectID, kind, id}
		name, ok := known[key]
		if !ok {
			var err error
			if name, err = a.nameOf(v, e.ProjectID, kind, id); err != nil {
				return row, err
			}
			known[key] = name
		}
		if row.Name = name; name != "" {
			row.URL = a.urlOf(v, e.ProjectID, kind, id)
		}
		return row, nil
	}
	for _, e := range events {
		row := eventRow{Event: e, Say: audit.Say(e.Action, e.Outcome), Status: status{"good", "Done"}}
		if e.Outcome == audit.Refused {
			row.Status, row.Why = status{"bad", "Refused"}, reasonOf(e)
		}
		if row.Who, err = resource(e, string(e.Actor.Kind), e.Actor.ID); err != nil {
			return nil, err
		}
		if row.Whom, err = resource(e, e.Target.Kind, e.Target.ID); err != nil {
			return nil, err
		}
		if row.Whom.Name == "" {
			row.Whom.Name = cmp.Or(e.Detail["name"], e.Detail["email"])
		}
		if v.project.ID == "" && e.ProjectID != "" && e.Target.Kind != "project" {
			in, err := resource(e, "project", e.ProjectID)
			if err != nil {
				return nil, err
			}
			row.Project = cmp.Or(in.Name, e.ProjectID)
		}
		row.More = detailsOf(e)
		all = append(all, row)
	}
	return all, nil
}

// kindOf tells in words what kind of thing an event names.
func (a *trail) kindOf(kind string) string {
	if known := entityKinds[kind]; known != "" {
		return known
	}
	if k := a.Fabric.Resources.Kinds().ByType(kind); k != nil {
		return k.Title
	}
	return words(strings.ReplaceAll(kind, "_", " "))
}

// detailsOf returns what an event says that its row does not show.
func detailsOf(e audit.Event) string {
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
		return o.Title(), ignoreNotFound(err)
	case "project":
		p, err := a.Fabric.Projects.Find(ctx, id)
		return p.Name, ignoreNotFound(err)
	case "client":
		c, err := a.Clients.Clients.Find(ctx, id)
		if c.ProjectID != projectID {
			return "", ignoreNotFound(err) // of another project, whose names are not for who reads this one
		}
		return cmp.Or(c.Name, c.ID), ignoreNotFound(err)
	case "api_key":
		k, err := a.Fabric.APIKeys.Find(ctx, projectID, id)
		if k.ID != "" {
			name = cmp.Or(k.Name, k.Prefix+"…")
		}
		return name, ignoreNotFound(err)
	case "subscriber":
		s, err := a.Fabric.Subscribers.Find(ctx, projectID, id)
		return cmp.Or(s.Email, s.FullName(), s.Reference), ignoreNotFound(err)
	case "webhook":
		w, err := a.Fabric.Webhooks.Find(ctx, projectID, id)
		return w.Name, ignoreNotFound(err)
	}
	if k := a.Fabric.Resources.Kinds().ByType(kind); k != nil {
		r, err := a.Fabric.Resources.Find(ctx, projectID, k, id)
		return r.DisplayName, ignoreNotFound(err)
	}
	return "", nil
}

// ignoreNotFound leaves an error out that says that a thing is not there.
func ignoreNotFound(err error) error {
	if errors.Is(err, problem.NotFound) {
		return nil
	}
	return err
}

// reasons tell what the reasons of refused logins mean, and what to do.
var reasons = map[string]string{
	"unknown account":          "Nobody here has this e-mail: it is spelled otherwise, is of another project, or is yet to be added under Subscribers.",
	"wrong password":           "The password was wrong. Who forgot it sets a new one by “Forgot password?”.",
	"wrong e-mail or password": "The e-mail or the password was wrong. An owner can make a link for a new password under Operators.",
	"disabled":                 "The account is disabled. They can sign in again once it is enabled on its page.",
	"changed meanwhile":        "The account was changed while they signed in. Trying once more helps.",
	"too many tries":           "There were too many tries, so more are refused for a while, right or wrong. It passes by itself; a subscriber’s page can unlock it.",
	"too_many_codes":           "Too many codes were tried. It passes after a quarter of an hour.",
	"wrong_code":               "The password was right, the code of the second factor was not: the clock of the phone may be wrong, or somebody else knows the password.",
	"code_used":                "The code of the second factor had been used before. The next one is there within half a minute.",
	"passkey_unknown":          "The passkey is not of this account any more: it was removed here and is still on the device.",
	"passkey_stale":            "The passkey was used too late. Trying once more helps.",
	"passkey_refused":          "The passkey could not be checked: it is of another site, or the browser changed its answer.",
	"passkey_cloned":           "The passkey counts as if there were two of it. Remove it, and have it added anew.",
	"the subscriber denied it": "The subscriber said no when asked whether the app may have what it wants.",
	"the credentials lack the scope Management":                "The key or token lacks the scope Management. A key that has it is made under API keys.",
	"the refresh token was used before; its family is revoked": "A refresh token came a second time: the app sent it twice, or somebody has copied it. All that came from it has ended; the app must sign in again.",
}

// reasonOf tells why something was refused, in words; "" where the event says all.
func reasonOf(e audit.Event) string { return reasons[e.Detail["reason"]] }

// urlOf returns the page of what an event names; "" where there is none.
func (a *trail) urlOf(v *visit, projectID, kind, id string) string {
	if id == "" {
		return ""
	}
	if kind == "operator" && v.operator.Check(operator.KeepOperators, "") == nil {
		return Prefix + "/operators/" + id
	}
	base := Prefix + "/projects/" + projectID
	if projectID == "" {
		return ""
	}
	switch kind {
	case "api_key":
		return base + "/keys/" + id
	case "client":
		return base + "/clients/" + id
	case "subscriber":
		return base + "/subscribers/" + id
	case "project":
		return base
	case "resource":
		return base + "/resources/" + id
	}
	if a.Fabric.Resources.Kinds().ByType(kind) != nil {
		return base + "/resources/" + id
	}
	return ""
}
