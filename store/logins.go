package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/uuid7"
)

// Logins holds the logins of subscribers, and the browsers from which they log in.
type Logins struct{ *core }

var loginTable = table[idp.Login]{
	name:  "login_sessions",
	thing: "session",
	columns: `id, project_id, subscriber_id, auth_time, amr, user_agent, address, expires,
	ended, mark, silent, signed_in`,
	fields: func(l *idp.Login) []any {
		return []any{
			&l.ID, &l.ProjectID, &l.SubscriberID, &l.AuthTime, &l.AMR, &l.UserAgent, &l.Address, &l.Expires,
			&l.Ended, &l.Mark, &l.Silent, &l.SignedIn,
		}
	},
}

// CreateLogin inserts a login if its subscriber still has the same password and is not disabled.
// Otherwise the error is [problem.Conflict]. If it is the subscriber's first login, CreateLogin queues no
// notices.
func (s *Logins) CreateLogin(
	ctx context.Context, l idp.Login, passwordHash string, notices ...mail.Letter,
) error {
	e := audit.Of("login", l.ProjectID, "subscriber", l.SubscriberID).By(audit.Subscriber, l.SubscriberID).
		With("session", l.ID, "amr", strings.Join(l.AMR, " "), "user_agent", l.UserAgent)
	return s.change(ctx, e, func(t tx) error {
		// If the subscriber is changed concurrently, one of the two changes waits for the other.
		// Either the other change then ends the login, or this change finds that the subscriber has
		// changed.
		var logins int64
		unchanged, err := t.findRow(ctx, "subscriber", `UPDATE subscribers SET logins = logins + 1
				WHERE project_id = $1 AND id = $2 AND password_hash = $3 AND disabled = 0 RETURNING logins`,
			[]any{l.ProjectID, l.SubscriberID, passwordHash}, &logins)
		if err != nil {
			return err
		}
		if !unchanged {
			return problem.New(problem.Conflict, "subscriber_changed",
				"the subscriber has changed since its password was checked")
		}

		if err := loginTable.insertLater(ctx, t, &l); err != nil {
			return err
		}
		if logins == 1 {
			return nil
		}
		return t.mails().queueLetters(ctx, notices...)
	})
}

// FindLogin finds a login, whether ended or not.
func (s *Logins) FindLogin(ctx context.Context, id string) (idp.Login, error) {
	return loginTable.find(ctx, s.read(), `id = $1`, id)
}

// LoginsMadeIn returns the logins that carry the mark of a browser and have not ended.
func (s *Logins) LoginsMadeIn(ctx context.Context, mark string) ([]idp.Login, error) {
	return loginTable.gather(ctx, s.read(), `WHERE mark = $1 AND mark <> '' AND ended = 0 ORDER BY id`, mark)
}

// RaiseLogin writes the authentication methods (amr) of a login, which is then no longer silent. If
// the login has ended, the error is problem.NotFound.
func (s *Logins) RaiseLogin(ctx context.Context, l idp.Login) error {
	amr := strings.Join(l.AMR, " ")
	e := audit.Of("login.raised", l.ProjectID, "subscriber", l.SubscriberID).
		By(audit.Subscriber, l.SubscriberID).With("session", l.ID, "amr", amr)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE login_sessions SET amr = $2, silent = 0, signed_in = 0
			WHERE id = $1 AND ended = 0`, l.ID, amr)
		return requireRow(res, err, "session")
	})
}

// maxLoginClients is the maximum number of results of LoginClients.
const maxLoginClients = 200

// LoginClients returns the clients that ever had grants in the logins with the given ids, those of
// the newest logins first. It includes clients whose grants were revoked, because a client's own
// session may outlive the grant. It returns at most maxLoginClients.
func (s *Logins) LoginClients(ctx context.Context, ids []string) ([]idp.LoginClient, error) {
	scan := func(row scanner) (c idp.LoginClient, err error) {
		err = row.Scan(&c.LoginID, &c.ClientID)
		return c, err
	}
	var w where
	w.in(`session_id`, ids)
	return gather(ctx, s.read(), "listing clients of logins", scan, `SELECT DISTINCT session_id, client_id
		FROM grants WHERE `+w.String()+`
		ORDER BY session_id DESC, client_id LIMIT `+strconv.Itoa(maxLoginClients), w.args...)
}

// EndLogins ends logins and their grants, revokes their tokens and notifies their clients. It skips
// unknown logins, and logins that have already ended.
func (s *Logins) EndLogins(ctx context.Context, now time.Time, ends ...revocation.Revocation) error {
	// Concurrent calls of EndLogins lock logins in the order of their ids, so that they cannot
	// deadlock.
	ends = slices.SortedFunc(slices.Values(ends), func(a, b revocation.Revocation) int {
		return strings.Compare(a.ID, b.ID)
	})
	return s.change(ctx, audit.Of("session.ended", "", "session", ""), func(t tx) error {
		t.event.Drop() // each login has its own event
		var ended []revocation.Revocation
		for _, end := range ends {
			isEnded, err := t.endLogin(ctx, end.ID, now)
			if err != nil {
				return err
			}
			if isEnded {
				ended = append(ended, end)
			}
		}

		for _, end := range ended {
			if err := t.revoke(ctx, s.ending(end)); err != nil {
				return err
			}
		}
		return nil
	})
}

// endLogin ends a login and its grants, and queues its logouts. isEnded is false if the login is
// unknown or had already ended.
func (t tx) endLogin(ctx context.Context, id string, now time.Time) (isEnded bool, err error) {
	var projectID, subscriberID string
	isEnded, err = t.findRow(ctx, "session", `UPDATE login_sessions SET ended = $2 WHERE id = $1 AND ended = 0
		RETURNING project_id, subscriber_id`, []any{id, micros(now)}, &projectID, &subscriberID)
	if err != nil || !isEnded {
		return false, err
	}

	t.addEvent(sessionEnded(ctx, projectID, subscriberID, id))
	err = t.Later(ctx, `UPDATE grants SET revoked = $2 WHERE session_id = $1 AND revoked = 0`, id, micros(now))
	if err != nil {
		return false, fmt.Errorf("ending grants: %w", err)
	}
	return true, t.queueLogouts(ctx, "id", id, now)
}

// maxListed is the maximum number of logins, and of apps, that the account page lists.
const maxListed = 200

// LiveLogins returns the logins of a subscriber that have not ended and have a valid cookie or a
// valid grant, newest first.
func (s *Logins) LiveLogins(
	ctx context.Context, projectID, subscriberID string, now time.Time,
) ([]idp.Login, error) {
	scan := func(row scanner) (l idp.Login, err error) {
		var seen time.Time
		l, err = loginTable.scanWith(row, scanTarget(&seen))
		if err != nil {
			return l, err
		}
		l.Seen = later(seen, l.AuthTime)
		return l, nil
	}
	return gather(ctx, s.read(), "finding sessions", scan, `SELECT `+loginTable.columns+`, seen FROM login_sessions
			WHERE subscriber_id = $2 AND project_id = $1 AND ended = 0
			AND (expires > $3 OR EXISTS (SELECT 1 FROM grants g
				WHERE g.session_id = login_sessions.id AND g.revoked = 0 AND g.expires > $3 AND g.idle_until > $3))
			ORDER BY id DESC LIMIT $4`, projectID, subscriberID, micros(now), maxListed)
}

// ListApps returns the clients to which a subscriber has consented, or that have a valid grant from
// the subscriber, sorted by name.
func (s *Logins) ListApps(ctx context.Context, projectID, subscriberID string, now time.Time) ([]idp.App, error) {
	scan := func(row scanner) (a idp.App, err error) {
		err = row.Scan(&a.ClientID, &a.Name, &a.FirstParty, scanTarget(&a.Scopes), scanTarget(&a.Since))
		return a, err
	}
	const valid = `g.subscriber_id = $2 AND g.revoked = 0 AND g.expires > $3 AND g.idle_until > $3`
	return gather(ctx, s.read(), "listing apps", scan, `SELECT c.id, c.name, c.first_party,
			COALESCE(o.scope, (SELECT MAX(g.scope) FROM grants g WHERE g.client_id = c.id AND `+valid+`), ''),
			COALESCE(o.updated, (SELECT MIN(g.created) FROM grants g WHERE g.client_id = c.id AND `+valid+`), 0)
		FROM clients c LEFT JOIN consents o ON o.client_id = c.id AND o.subscriber_id = $2
		WHERE c.project_id = $1 AND c.id IN (SELECT client_id FROM consents WHERE subscriber_id = $2
			UNION SELECT g.client_id FROM grants g WHERE `+valid+`)
		ORDER BY c.name, c.id LIMIT $4`, projectID, subscriberID, micros(now), maxListed)
}

// ListLogins returns a page of a subscriber's logins, newest first. It reads their grants with a
// second query.
func (s *Logins) ListLogins(
	ctx context.Context, projectID, subscriberID string, q page.Query,
) (page.Page[fabric.Login], error) {
	logins := selection{
		thing:   "logins",
		columns: `id, auth_time, amr, user_agent, address, expires, ended`,
		from:    "login_sessions",
		key:     []string{"id"},
		start:   startAt(q.From),
		desc:    true,
	}
	list := listing[fabric.Login]{
		selection: logins,
		scan: func(row scanner) (l fabric.Login, err error) {
			err = row.Scan(&l.ID, scanTarget(&l.Began), scanTarget(&l.AMR), &l.UserAgent, &l.Address,
				scanTarget(&l.Expires), scanTarget(&l.Ended))
			return l, checkRow(err, "login")
		},
		id: func(l fabric.Login) string { return l.ID },
	}
	list.where.and(`project_id = $%d`, projectID)
	list.where.and(`subscriber_id = $%d`, subscriberID)

	p, err := list.page(ctx, s.read(), q)
	if err != nil {
		return p, err
	}
	if len(p.Items) == 0 {
		return p, nil
	}
	return p, s.addGrants(ctx, p.Items)
}

// addGrants fills in the grants of each login. A grant ends at its expiry, or earlier if it is not
// used.
func (s *Logins) addGrants(ctx context.Context, logins []fabric.Login) error {
	type loginGrant struct {
		fabric.Grant
		loginID string
	}
	scan := func(row scanner) (g loginGrant, err error) {
		var idleUntil time.Time
		err = row.Scan(&g.loginID, &g.ClientID, &g.ClientName, scanTarget(&g.Scope), scanTarget(&g.Created),
			scanTarget(&idleUntil), scanTarget(&g.Expires), scanTarget(&g.Revoked))
		if idleUntil.Before(g.Expires) {
			g.Expires = idleUntil
		}
		return g, err
	}

	ids := make([]string, len(logins))
	byID := make(map[string]*fabric.Login, len(logins))
	for i := range logins {
		ids[i] = logins[i].ID
		byID[logins[i].ID] = &logins[i]
	}
	var w where
	w.in(`g.session_id`, ids)
	grants, err := gather(ctx, s.read(), "listing grants", scan,
		`SELECT g.session_id, g.client_id, c.name, g.scope, g.created, g.idle_until, g.expires, g.revoked
		FROM grants g JOIN clients c ON c.id = g.client_id WHERE `+w.String()+` ORDER BY g.id`, w.args...)
	if err != nil {
		return err
	}

	for _, g := range grants {
		login := byID[g.loginID]
		login.Grants = append(login.Grants, g.Grant)
	}
	return nil
}

// SweepLogins deletes:
//   - redeemed codes and used assertions that can no longer be replayed
//   - grants that were created before startedBefore and expired before expiredBefore
//   - logins that were created before startedBefore and have no grants left
//
// The time of creation is taken from the ids, which sort by time. The expiry of grants is checked,
// too, because a grant may have been created with a longer lifetime than the current configuration
// allows.
func (s *Logins) SweepLogins(ctx context.Context, startedBefore, expiredBefore time.Time) error {
	now := micros(s.now())
	oldest := uuid7.First(startedBefore)

	codes := s.sweep(ctx, `DELETE FROM redeemed_codes WHERE hash IN (
		SELECT hash FROM redeemed_codes WHERE expires < $2 ORDER BY expires LIMIT $1)`, now)
	assertions := s.sweep(ctx, `DELETE FROM used_assertions WHERE hash IN (
		SELECT hash FROM used_assertions WHERE expires < $2 ORDER BY expires LIMIT $1)`, now)
	grants := s.sweep(ctx, `DELETE FROM grants WHERE id IN (
		SELECT id FROM grants WHERE id < $2 AND expires < $3 ORDER BY id LIMIT $1)`, oldest, micros(expiredBefore))
	logins := s.sweep(ctx, `DELETE FROM login_sessions WHERE id IN (
		SELECT id FROM login_sessions WHERE id < $2
			AND NOT EXISTS (SELECT 1 FROM grants WHERE session_id = login_sessions.id)
		ORDER BY id LIMIT $1)`, oldest)
	return errors.Join(codes, assertions, grants, logins)
}
