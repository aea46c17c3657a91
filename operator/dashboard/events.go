package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// A trail reads the audit trail and describes its events for people.
type trail struct {
	*site
	Clients    *idp.Provider
	Recordings *recordings.Recordings // nil if the server keeps no recordings
	Calls      *calls.Records         // nil hides all calls

	// Audit returns a page of the audit trail. If it is nil, pages show no events.
	Audit func(context.Context, audit.Filter, page.Query) (page.Page[audit.Event], error)
}

// An eventRow is a row in a list of audit events.
type eventRow struct {
	audit.Event
	Say       string // the action in words
	Who, Whom entity // the actor and the target
	More      string // the other details, one per line
	Project   string // name of the project, on a page that covers all projects
	Why       string // what a refusal means and how to resolve it
	Status    status
}

// An entity is an actor, target or project that an event names.
type entity struct {
	Kind, Name string // shown to people; Name is "" if it is unknown or the entity was deleted
	ID, URL    string // URL is "" if the entity has no page
}

// entityKinds maps kinds of entities to their names, where these differ.
var entityKinds = map[string]string{
	string(audit.System): "The server", string(audit.CLI): "Command line", string(audit.Anonymous): "Anonymous",
	string(audit.APIKey): "API key", string(audit.IngestKey): "Ingest key", string(audit.Client): "OAuth client",
	string(audit.RegistrationToken): "Initial access token",
	"account":                       "An unknown address", "ring": "Keys of the installation", "audit": "Audit trail",
	"session": "Login", "grant": "App’s access",
	"sip_address": "SIP address", "sip_credential": "SIP credential", "operator": "Operator",
	"subscriber": "Subscriber",
}

// audit returns a page of the audit trail.
func (a *trail) audit(v *visit, f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
	if a.Audit == nil {
		return page.Page[audit.Event]{}, nil
	}
	return a.Audit(v.r.Context(), f, q)
}

// eventRows returns the rows for events.
func (a *trail) eventRows(v *visit, events []audit.Event) (all []eventRow, err error) {
	find := a.entities(v)
	for _, e := range events {
		row := eventRow{
			Event: e, Say: v.sayAction(e), More: detailsOf(e), Status: status{"good", "Done"},
		}
		if e.Outcome == audit.Refused {
			row.Status, row.Why = status{"bad", "Refused"}, reasonOf(e)
		}

		if row.Who, err = find(e, string(e.Actor.Kind), e.Actor.ID); err != nil {
			return nil, err
		}
		if row.Whom, err = find(e, e.Target.Kind, e.Target.ID); err != nil {
			return nil, err
		}
		if id := e.Detail["subscriber"]; e.Target.Kind == "mail" && id != "" {
			if row.Whom, err = find(e, "subscriber", id); err != nil {
				return nil, err
			}
			row.Whom.Kind = a.kindOf("mail")
		}
		if row.Whom.Name == "" {
			row.Whom.Name = cmp.Or(e.Detail["name"], e.Detail["email"])
		}

		if v.project.ID == "" && e.ProjectID != "" && e.Target.Kind != "project" {
			project, err := find(e, "project", e.ProjectID)
			if err != nil {
				return nil, err
			}
			row.Project = cmp.Or(project.Name, e.ProjectID)
		}
		all = append(all, row)
	}
	return all, nil
}

// sayAction describes the action of an event.
func (v *visit) sayAction(e audit.Event) string {
	said := audit.Say(e.Action, e.Outcome)
	if done := audit.Say(e.Action, audit.Done); said == done+", refused" {
		return words.Textf("%s, refused", v.say(done))
	}
	return said
}

// entities returns a function that looks up an entity that an event names. It looks up each entity
// only once.
func (a *trail) entities(v *visit) func(e audit.Event, kind, id string) (entity, error) {
	type key struct{ project, kind, id string }
	names := make(map[key]string)
	return func(e audit.Event, kind, id string) (found entity, err error) {
		found = entity{Kind: a.kindOf(kind), ID: id}
		if kind == "recording" {
			found.Name, found.URL, err = a.recordingOf(v, e.ProjectID, id)
			return found, err
		}
		of := key{project: e.ProjectID, kind: kind, id: id}
		name, ok := names[of]
		if !ok {
			if name, err = a.nameOf(v, e.ProjectID, kind, id); err != nil {
				return found, err
			}
			names[of] = name
		}
		found.Name = name
		if name != "" {
			found.URL = a.urlOf(v, e.ProjectID, kind, id)
		}
		return found, nil
	}
}

// kindOf returns the name of a kind of entities.
func (a *trail) kindOf(kind string) string {
	if known := entityKinds[kind]; known != "" {
		return known
	}
	if k := a.Fabric.Resources.Kinds().ByType(kind); k != nil {
		return k.Title
	}
	return humanize(strings.ReplaceAll(kind, "_", " "))
}

// detailsOf returns the details of an event that are not in its row, one per line.
func detailsOf(e audit.Event) string {
	var lines []string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		add(strings.ReplaceAll(name, "_", " "), e.Detail[name])
	}
	add("actor", strings.TrimSpace(fmt.Sprintf("%s %s", e.Actor.Kind, e.Actor.ID)))
	add("target", strings.TrimSpace(fmt.Sprintf("%s %s", e.Target.Kind, e.Target.ID)))
	add("request", e.RequestID)
	add("event", e.ID)
	return strings.Join(lines, "\n")
}

// nameOf returns the name of an entity, or "" if it was deleted or never had a name.
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
		return o.Title(), problem.IgnoreNotFound(err)

	case "project":
		p, err := a.Fabric.Projects.Find(ctx, id)
		return p.Name, problem.IgnoreNotFound(err)

	case "client":
		c, err := a.Clients.Clients.Find(ctx, id)
		if c.ProjectID != projectID {
			return "", problem.IgnoreNotFound(err) // the reader may not see names in another project
		}
		return cmp.Or(c.Name, c.ID), problem.IgnoreNotFound(err)

	case "api_key":
		k, err := a.Fabric.APIKeys.Find(ctx, projectID, id)
		if k.ID != "" {
			name = cmp.Or(k.Name, k.Prefix+"…")
		}
		return name, problem.IgnoreNotFound(err)

	case "subscriber":
		s, err := a.Fabric.Subscribers.Find(ctx, projectID, id)
		return cmp.Or(s.Email, s.FullName(), s.Reference), problem.IgnoreNotFound(err)

	case "call":
		if a.Calls == nil {
			return "", nil
		}
		r, err := a.Calls.Find(ctx, projectID, "", id)
		if err != nil {
			return "", problem.IgnoreNotFound(err)
		}
		return cmp.Or(between(nameOfParty(r.From), nameOfParty(r.To)), id), nil

	case "webhook":
		w, err := a.Fabric.Webhooks.Find(ctx, projectID, id)
		return cmp.Or(w.Name, w.URL), problem.IgnoreNotFound(err)
	}

	if k := a.Fabric.Resources.Kinds().ByType(kind); k != nil {
		r, err := a.Fabric.Resources.Find(ctx, projectID, k, id)
		return r.DisplayName, problem.IgnoreNotFound(err)
	}
	return "", nil
}

// recordingOf returns the name and the URL of a recording: its participants, file or time. Both are
// "" if it was deleted. Events name recordings by id, since a Sid may be enough to fetch the media.
func (a *trail) recordingOf(v *visit, projectID, id string) (name, url string, err error) {
	if a.Recordings == nil || id == "" {
		return "", "", nil
	}
	found, err := a.Recordings.List(v.r.Context(), recordings.Filter{Owner: recordings.Owner{ProjectID: projectID}},
		page.Query{Size: 1, From: id})
	if err != nil || len(found.Items) == 0 || found.Items[0].ID != id {
		return "", "", err
	}
	r := found.Items[0]
	name = cmp.Or(between(r.From, r.To), r.Name, r.Created.UTC().Format("2 Jan 2006, 15:04:05"))
	return name, Prefix + "/projects/" + projectID + "/recordings/" + r.Sid, nil
}

// reasons maps the reasons for refusing a login to an explanation and a remedy.
var reasons = map[string]string{
	"unknown account": "No account here has this email. It may be misspelled, belong to another project, or " +
		"still have to be added under Subscribers.",
	"wrong password": "The password was wrong. Users who forgot theirs set a new one with “Forgot password?”.",
	"wrong e-mail or password": "The email or the password was wrong. An owner can create a link for a new " +
		"password under Operators.",
	"disabled":          "The account is disabled. Enable it on its page to let them sign in again.",
	"changed meanwhile": "The account was changed during the login. Trying again helps.",
	"too many tries": "There were too many tries, so further ones are refused for a while, right or wrong. The " +
		"block ends by itself; a subscriber’s page can unlock it at once.",
	"too_many_codes": "Too many codes were tried. The block ends after a quarter of an hour.",
	"wrong_code": "The password was right, but the code of the second factor was not. The clock of the phone may " +
		"be wrong, or somebody else knows the password.",
	"code_used": "The code of the second factor had already been used. The app shows a new one within half " +
		"a minute.",
	"passkey_unknown": "The passkey no longer belongs to this account: it was removed here but is still on the " +
		"device.",
	"passkey_stale":            "The passkey was used too late. Trying again helps.",
	"passkey_refused":          "The passkey could not be verified. It belongs to another site, or was altered.",
	"passkey_cloned":           "The counter of the passkey suggests that a copy exists. Remove it and add a new one.",
	"the subscriber denied it": "The subscriber did not consent to the access that the app asked for.",
	"the credentials lack the scope Management": "The key or token lacks the scope Management. Create a key " +
		"with this scope under API keys.",
	"the refresh token was used before; its family is revoked": "A refresh token was used twice: the app sent it " +
		"again, or somebody has copied it. All tokens that came from it are revoked; the app must sign in again.",
}

// reasonOf explains why an action was refused, or returns "" if the event needs no explanation.
func reasonOf(e audit.Event) string { return reasons[e.Detail["reason"]] }

// urlOf returns the URL of an entity's page, or "" if it has none.
func (a *trail) urlOf(v *visit, projectID, kind, id string) string {
	if kind == "operator" && id != "" && v.operator.Check(operator.KeepOperators, "") == nil {
		return Prefix + "/operators/" + id
	}
	if id == "" || projectID == "" {
		return ""
	}

	base := Prefix + "/projects/" + projectID
	switch kind {
	case "api_key":
		return base + "/keys/" + id
	case "call":
		return base + "/calls/" + id
	case "client":
		return base + "/clients/" + id
	case "subscriber":
		return base + "/subscribers/" + id
	case "webhook":
		return base + "/webhooks/" + id
	case "project":
		return base
	}
	if kind == "resource" || a.Fabric.Resources.Kinds().ByType(kind) != nil {
		return base + "/resources/" + id
	}
	return ""
}
