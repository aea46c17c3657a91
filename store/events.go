package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/operator"
)

// projectFacts returns the settings of a project that events contain, with their values.
func projectFacts(p fabric.Project) []string {
	facts := []string{"logo", p.Logo, "dark_logo", p.DarkLogo}
	for _, f := range fabric.ProjectFields {
		facts = append(facts, f.Column, f.Text(p))
	}
	return facts
}

// clientEvent returns an event for a client, with the settings that determine how users sign in
// through it.
func clientEvent(action string, c idp.Client) audit.Event {
	return audit.Of(action, c.ProjectID, "client", c.ID).With("name", c.Name).With(clientFacts(c)...)
}

// clientFacts returns the settings of a client that its events contain, except its name.
func clientFacts(c idp.Client) []string {
	return []string{"type", string(c.Type), "profile", string(c.Profile), "auth_method", string(c.AuthMethod),
		"first_party", strconv.FormatBool(c.FirstParty), "pkce_optional", strconv.FormatBool(c.PKCEOptional),
		"redirect_uris", strings.Join(c.RedirectURIs, " "), "grants", strings.Join(c.Grants, " "),
		"scopes", strings.Join(c.Scopes, " ")}
}

// brandFacts returns further settings of a client, which only the events about its changes contain.
func brandFacts(c idp.Client) []string {
	return []string{"brand_color", c.BrandColor, "logo", c.Logo, "dark_logo", c.DarkLogo,
		"logout_uris", strings.Join(c.LogoutURIs, " ")}
}

// noteChanges adds the changes of a client to its event: the new values of clientFacts and
// brandFacts that have changed, and the names of all other settings that have changed. If nothing has
// changed, it drops the event.
func (t tx) noteChanges(was, now idp.Client) error {
	t.event.AddChanges(clientFacts(was), clientFacts(now))
	t.event.AddChanges(brandFacts(was), brandFacts(now))

	others, err := changedSettings(was, now)
	if err != nil {
		return err
	}
	t.event.Add("changed", others)
	if t.event.Detail == nil && was.Name == now.Name {
		t.event.Drop()
	}
	t.event.Add("name", now.Name)
	return nil
}

// changedSettings returns the names of the settings of a client that differ, except those in
// clientFacts and brandFacts.
func changedSettings(was, now idp.Client) (string, error) {
	before, err := settingsOf(was)
	if err != nil {
		return "", err
	}
	after, err := settingsOf(now)
	if err != nil {
		return "", err
	}

	changed := maps.Clone(before)
	maps.Copy(changed, after)
	maps.DeleteFunc(changed, func(name string, _ any) bool {
		return reflect.DeepEqual(before[name], after[name])
	})
	return strings.Join(slices.Sorted(maps.Keys(changed)), " "), nil
}

// settingsOf returns the settings of a client by name, except those in clientFacts and brandFacts.
func settingsOf(c idp.Client) (map[string]any, error) {
	text, err := jsonText(c.Metadata)
	if err != nil {
		return nil, err
	}
	settings := map[string]any{}
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return nil, fmt.Errorf("reading the settings of a client: %w", err)
	}
	delete(settings, "brand_color")
	settings["access_token"] = c.AccessToken
	settings["id_token_alg"] = c.IDTokenAlg
	return settings, nil
}

// sessionEnded returns the event for the end of a login. If the context names no actor, the actor
// is the subscriber.
func sessionEnded(ctx context.Context, project, subscriber, id string) audit.Event {
	e := audit.Of("session.ended", project, "session", id).With("subscriber", subscriber)
	if audit.From(ctx).Actor.Kind == audit.Anonymous {
		e = e.By(audit.Subscriber, subscriber)
	}
	return e
}

// webhookEvent returns an event for a webhook. The event omits the path and query of the URL, because
// they may be secret.
func webhookEvent(action string, w fabric.Webhook) audit.Event {
	return audit.Of(action, w.ProjectID, "webhook", w.ID).With("name", w.Name, "host", hostOf(w.URL),
		"events", strings.TrimSpace(spaced(w.Events)), "enabled", strconv.FormatBool(w.Enabled))
}

// hostOf returns the scheme and host of a URL, without its user and password.
func hostOf(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:]
}

func ringEvent(moves []keys.Move, added []keys.Record) audit.Event {
	e := audit.Of("ring.changed", "", "ring", "")
	for _, m := range moves {
		e = e.With(m.To.Kid, fmt.Sprintf("%s: %s to %s", m.To.Use, m.From, m.To.State))
	}
	for _, r := range added {
		e = e.With(r.Kid, fmt.Sprintf("%s: new, %s", r.Use, r.State))
	}
	return e
}

// subscriberEvent returns the event for a change to a subscriber. Important changes have their own
// actions. The event also lists the changed fields.
func subscriberEvent(projectID, id string, c fabric.SubscriberChange, ends bool) audit.Event {
	action, fields := "subscriber.updated", changedFields(c)
	switch {
	case c.PasswordHash != nil:
		action = "subscriber.password_changed"
	case c.Disabled != nil && *c.Disabled:
		action = "subscriber.disabled"
	case c.Disabled != nil:
		action = "subscriber.enabled"
	case fields == "" && ends:
		action = "session.ended_all"
	}
	return audit.Of(action, projectID, "subscriber", id).With("changed", fields)
}

// changedFields returns the names of the fields that a change to a subscriber writes. It adds the new
// value only to disabled and record_calls.
func changedFields(c fabric.SubscriberChange) string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"email", c.Email != nil},
		{"email_verified", c.Verified != nil},
		{"claims", c.Claims != nil || c.Locale != nil},
		{"password", c.PasswordHash != nil},
		{"profile", c.Profile != fabric.Profile{}},
		{"forwarding", c.Forwarding != fabric.ForwardingInput{}},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}

	if c.Disabled != nil {
		names = append(names, "disabled="+strconv.FormatBool(*c.Disabled))
	}
	if c.RecordCalls != nil {
		names = append(names, "record_calls="+string(*c.RecordCalls))
	}
	return strings.Join(names, " ")
}

// factorEvent returns the event for a change to a second factor. Its target is the owner.
func factorEvent(action string, o factor.Owner, what, id string) audit.Event {
	return audit.Of(action, "", string(o.Kind), o.ID).With("factor", what, "factor_id", id)
}

func operatorEvent(action string, o operator.Operator) audit.Event {
	return audit.Of(action, "", "operator", o.ID).With(
		"email", o.Email, "roles", rolesText(o.Roles), "disabled", strconv.FormatBool(o.Disabled))
}

// operatorChange returns the event for a change to an operator. The event lists the changed fields,
// and contains the values of the fields that affect permissions. Important changes have their own
// actions.
func operatorChange(id string, c operator.Change) audit.Event {
	var names []string
	if c.Name != nil {
		names = append(names, "name")
	}
	if c.PasswordHash != nil {
		names = append(names, "password")
	}
	if c.Disabled != nil {
		names = append(names, "disabled="+strconv.FormatBool(*c.Disabled))
	}
	if c.Roles != nil {
		names = append(names, "roles")
	}

	action := "operator.updated"
	switch {
	case c.PasswordHash != nil:
		action = "operator.password_changed"
	case c.Disabled != nil && *c.Disabled:
		action = "operator.disabled"
	case c.Disabled != nil:
		action = "operator.enabled"
	case c.Roles != nil:
		action = "operator.roles_changed"
	}
	return audit.Of(action, "", "operator", id).With("changed", strings.Join(names, " "), "roles", rolesText(c.Roles))
}

func linkEvent(action string, l operator.Link) audit.Event {
	return audit.Of(action, l.Role.ProjectID, "operator", l.OperatorID).With("link", l.ID, "email", l.Email,
		"role", string(l.Role.Role), "made_by", l.MadeBy, "expires", date(l.Expires))
}

// rolesText formats roles as role@project, or as the role alone if it applies to the whole
// installation.
func rolesText(roles []operator.Membership) string {
	names := make([]string, len(roles))
	for i, m := range roles {
		names[i] = string(m.Role)
		if m.ProjectID != "" {
			names[i] += "@" + m.ProjectID
		}
	}
	return strings.Join(names, " ")
}

// placeOwner sets the project of a factor's event to the owner's project.
func (t tx) placeOwner(ctx context.Context, o factor.Owner) error {
	if o.Kind != factor.Subscriber {
		return nil
	}
	err := t.Row(ctx, `SELECT project_id FROM subscribers WHERE id = $1`, o.ID).Scan(&t.event.ProjectID)
	return checkRow(err, "subscriber")
}

// placeReceiver sets the project of a delivery's event to the receiver's project.
func (t tx) placeReceiver(ctx context.Context, q queue, id string) error {
	query := q.names.Replace(`SELECT project_id FROM {receivers} WHERE id = $1`)
	return checkRow(t.Row(ctx, query, id).Scan(&t.event.ProjectID), "receiver")
}

// projectOf returns the project of a client.
func (t tx) projectOf(ctx context.Context, clientID string) (id string, err error) {
	err = t.Row(ctx, `SELECT project_id FROM clients WHERE id = $1`, clientID).Scan(&id)
	return id, checkRow(err, "client")
}

// date formats a time for an event. It returns "" for the zero time.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
