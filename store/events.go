package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/keys"
)

// clientEvent tells what decides who may log in by a client, and how.
func clientEvent(action string, c idp.Client) audit.Event {
	return audit.Of(action, c.ProjectID, "client", c.ID).With(
		"name", c.Name, "type", string(c.Type), "profile", string(c.Profile), "auth_method",
		string(c.AuthMethod), "first_party", strconv.FormatBool(c.FirstParty),
		"pkce_optional", strconv.FormatBool(c.PKCEOptional), "redirect_uris",
		strings.Join(c.RedirectURIs, " "), "grants", strings.Join(c.Grants, " "),
		"scopes", strings.Join(c.Scopes, " "))
}

// sessionEnded tells of the end of a login. Who has no credentials but the login is the
// subscriber.
func sessionEnded(ctx context.Context, project, subscriber, id string) audit.Event {
	e := audit.Of("session.ended", project, "session", id).With("subscriber", subscriber)
	if audit.From(ctx).Actor.Kind == audit.Anonymous {
		e = e.By(audit.Subscriber, subscriber)
	}
	return e
}

// webhookEvent leaves the URL's path and query out, which may be secret.
func webhookEvent(action string, w fabric.Webhook) audit.Event {
	return audit.Of(action, w.ProjectID, "webhook", w.ID).With(
		"name", w.Name, "host", hostOf(w.URL), "events", strings.TrimSpace(spaced(w.Events)), "enabled",
		strconv.FormatBool(w.Enabled))
}

// hostOf returns the scheme and host of a URL, without a user and password.
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

// subscriberChange tells what is done to a subscriber: by a name of its own where somebody
// would look for it, with all that was changed beside.
func subscriberChange(projectID, id string, c fabric.SubscriberChange, ends bool) audit.Event {
	action, changed := "subscriber.updated", changedOf(c)
	switch {
	case c.PasswordHash != nil:
		action = "subscriber.password_changed"
	case c.Disabled != nil && *c.Disabled:
		action = "subscriber.disabled"
	case c.Disabled != nil:
		action = "subscriber.enabled"
	case changed == "" && ends:
		action = "session.ended_all"
	}
	return audit.Of(action, projectID, "subscriber", id).With("changed", changed)
}

// changedOf names what a change of a subscriber writes, without what it writes.
func changedOf(c fabric.SubscriberChange) string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"email", c.Email != nil}, {"email_verified", c.Verified != nil}, {"claims", c.Claims != nil},
		{"password", c.PasswordHash != nil},
		{"profile", c.Profile != fabric.Profile{}},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	if c.Disabled != nil {
		names = append(names, "disabled="+strconv.FormatBool(*c.Disabled))
	}
	return strings.Join(names, " ")
}

// factorEvent tells of what somebody proves who they are with. It is done to the owner.
func factorEvent(action string, o factor.Owner, what, id string) audit.Event {
	return audit.Of(action, "", string(o.Kind), o.ID).With("factor", what, "factor_id", id)
}

// placeOwner puts the event of a factor into the project of its owner.
func (t tx) placeOwner(ctx context.Context, o factor.Owner) error {
	if o.Kind != factor.Subscriber {
		return nil
	}
	err := t.Row(ctx, `SELECT project_id FROM subscribers WHERE id = $1`, o.ID).Scan(&t.event.ProjectID)
	return found(err, "subscriber")
}

// begin returns the beginning of what is secret as a whole.
func begin(secret string) string {
	if len(secret) <= 8 {
		return secret
	}
	return secret[:8] + "..."
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// projectOf returns the project of a client.
func (t tx) projectOf(ctx context.Context, clientID string) (id string, err error) {
	err = t.Row(ctx, `SELECT project_id FROM clients WHERE id = $1`, clientID).Scan(&id)
	return id, found(err, "client")
}

// placeReceiver puts the event of a delivery into the project of its receiver.
func (t tx) placeReceiver(ctx context.Context, q queue, id string) error {
	err := t.Row(ctx, q.names.Replace(`SELECT project_id FROM {receivers} WHERE id = $1`),
		id).Scan(&t.event.ProjectID)
	return found(err, "receiver")
}
