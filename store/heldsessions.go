package store

import (
	"context"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
)

// maxHeld bounds what a page of an account lists: nobody looks through more.
const maxHeld = 200

// HeldSessions returns the logins of a subscriber that were not ended, whose cookie is good
// or of which there is a grant that is, newest first.
func (s *Logins) LiveLogins(ctx context.Context, projectID, subscriberID string, now time.Time) ([]idp.Login, error) {
	scan := func(row scanner) (h idp.Login, err error) {
		var seen int64
		h, err = scanSession(row, &seen)
		if h.Seen = moment(seen); h.Seen.Before(h.AuthTime) {
			h.Seen = h.AuthTime
		}
		return h, err
	}
	return gather(ctx, s.read(), "finding sessions", scan,
		`SELECT `+sessionColumns+`, seen FROM login_sessions WHERE subscriber_id = $2 AND project_id = $1 AND ended = 0
		AND (expires > $3 OR EXISTS (SELECT 1 FROM grants g WHERE g.session_id = login_sessions.id AND g.revoked = 0 AND g.expires > $3 AND g.idle_until > $3))
		ORDER BY id DESC LIMIT $4`, projectID, subscriberID, micros(now), maxHeld)
}

// ListApps returns the clients that a subscriber has agreed to, or that have a grant of its
// which is good, by name.
func (s *Logins) ListApps(ctx context.Context, projectID, subscriberID string, now time.Time) ([]idp.App, error) {
	scan := func(row scanner) (a idp.App, err error) {
		var scope string
		var since int64
		err = row.Scan(&a.ClientID, &a.Name, &a.FirstParty, &scope, &since)
		a.Scopes, a.Since = strings.Fields(scope), moment(since)
		return a, err
	}
	const good = `g.subscriber_id = $2 AND g.revoked = 0 AND g.expires > $3 AND g.idle_until > $3`
	return gather(ctx, s.read(), "listing apps", scan, `SELECT c.id, c.name, c.first_party,
			COALESCE(o.scope, (SELECT MAX(g.scope) FROM grants g WHERE g.client_id = c.id AND `+good+`), ''),
			COALESCE(o.updated, (SELECT MIN(g.created) FROM grants g WHERE g.client_id = c.id AND `+good+`), 0)
		FROM clients c LEFT JOIN consents o ON o.client_id = c.id AND o.subscriber_id = $2
		WHERE c.project_id = $1 AND c.id IN (SELECT client_id FROM consents WHERE subscriber_id = $2 UNION SELECT g.client_id FROM grants g WHERE `+good+`)
		ORDER BY c.name, c.id LIMIT $4`, projectID, subscriberID, micros(now), maxHeld)
}
