package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/names"
)

// A trail reads the audit trail and describes its events for people.
type trail struct {
	*site
	names names.Finder

	// Audit returns a page of the audit trail. If it is nil, pages show no events.
	Audit func(context.Context, audit.Filter, page.Query) (page.Page[audit.Event], error)
}

// newTrail returns a trail that finds names with the services in c.
func newTrail(c Config, s *site) *trail {
	f := names.Finder{Fabric: s.Fabric, Clients: c.Clients, Operators: s.Operators, Calls: c.Calls,
		Rooms: c.Rooms}
	if c.Recordings != nil {
		f.Recordings = c.Recordings.List
	}
	return &trail{site: s, names: f, Audit: c.Audit}
}

// exported returns the entity's name in the form that exports contain.
func (e entity) exported() string { return names.Name{Text: e.Name, Deleted: e.Deleted}.String() }

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
	Kind, Name string // shown to people; Name is "" if it is unknown
	ID, URL    string // URL is "" if the entity has no page
	Deleted    bool   // whether this is a deleted subscriber that was not erased
}

// entityKinds maps kinds of entities to the names that people see, where kindOf cannot derive these
// names.
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
func (a *trail) eventRows(v *visit, events []audit.Event) (rows []eventRow, err error) {
	find := a.entities(v)
	for _, e := range events {
		row := eventRow{
			Event:  e,
			Say:    v.sayAction(e),
			More:   detailsOf(e),
			Status: status{Kind: "good", Word: "Done"},
		}
		if e.Outcome == audit.Refused {
			row.Status = status{Kind: "bad", Word: "Refused"}
			row.Why = reasonOf(e)
		}

		row.Who, err = find(e, string(e.Actor.Kind), e.Actor.ID)
		if err != nil {
			return nil, err
		}
		row.Whom, err = find(e, names.TargetKind(e), names.TargetID(e))
		if err != nil {
			return nil, err
		}
		row.Whom.Kind = a.kindOf(e.Target.Kind)
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
		rows = append(rows, row)
	}
	return rows, nil
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
	known := a.names.Begin()
	return func(e audit.Event, kind, id string) (found entity, err error) {
		found = entity{Kind: a.kindOf(kind), ID: id}
		name, err := known.Find(v.r.Context(), e.ProjectID, kind, id)
		if err != nil || name.Text == "" && !name.Deleted {
			return found, err
		}
		found.Name, found.Deleted = name.Text, name.Deleted
		if kind == "recording" {
			id = name.Sid
		}
		found.URL = a.urlOf(v, e.ProjectID, kind, id)
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

// reasons maps the reason for a refusal to an explanation and a remedy.
var reasons = map[string]string{
	"unknown account": "No account here has this email. It may be misspelled, belong to another project, or " +
		"still have to be added under Subscribers.",
	"wrong password": "The password was wrong. Users who forgot theirs set a new one with “Forgot password?”.",
	"no password": "This account has no password yet. Send an invitation from the subscriber’s page, or set a " +
		"password there.",
	"wrong email or password": "The email or the password was wrong. An owner can create a link for a new " +
		"password under Operators.",
	"wrong e-mail or password": "The email or the password was wrong. An owner can create a link for a new " +
		"password under Operators.", // in events of earlier versions
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

// urlOf returns the URL of an entity's page, or "" if it has none. For a recording, id is its Sid.
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
	case "room_session":
		return base + "/rooms/" + id
	case "subscriber":
		return base + "/subscribers/" + id
	case "recording":
		return base + "/recordings/" + id
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
