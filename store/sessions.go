package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Logins holds the logins of subscribers and the browsers they log in from.
type Logins struct{ *core }

const sessionColumns = `id, project_id, subscriber_id, auth_time, amr, user_agent, address, expires, ended, mark`

// CreateSession inserts a login, if its subscriber still has the password and is
// not disabled; else it is a [problem.Conflict]. Of the first nobody is told.
func (s *Logins) CreateLogin(ctx context.Context, l idp.Login, passwordHash string, notices ...mail.Letter) error {
	return s.change(ctx, audit.Of("login", l.ProjectID, "subscriber", l.SubscriberID).By(
		audit.Subscriber, l.SubscriberID).With("session", l.ID, "amr", strings.Join(l.AMR, " "), "user_agent",
		l.UserAgent), func(t tx) error {
		// Who changes the subscriber waits here for us, and then ends the login; or we
		// for them, and then find it changed.
		var logins int64
		err := t.Row(ctx, `UPDATE subscribers SET logins = logins + 1 WHERE project_id = $1 AND id = $2 AND password_hash = $3 AND disabled = 0 RETURNING logins`,
			l.ProjectID, l.SubscriberID, passwordHash).Scan(&logins)
		if err := found(err, "subscriber"); errors.Is(err, problem.NotFound) {
			return problem.New(problem.Conflict, "subscriber_changed",
				"the subscriber has changed since its password was checked")
		} else if err != nil {
			return err
		}
		err = t.Later(ctx, `INSERT INTO login_sessions (`+
			sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			l.ID, l.ProjectID, l.SubscriberID, micros(l.AuthTime), strings.Join(l.AMR, " "), l.UserAgent,
			l.Address, micros(l.Expires), micros(l.Ended), l.Mark)
		if err != nil {
			return fmt.Errorf("inserting session: %w", err)
		}
		if logins == 1 {
			return nil
		}
		return t.queueLetters(ctx, notices...)
	})
}

// FindSession finds a login, ended or not.
func (s *Logins) FindLogin(ctx context.Context, id string) (idp.Login, error) {
	l, err := scanSession(s.read().Row(ctx, `SELECT `+sessionColumns+` FROM login_sessions WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return l, problem.NoSuch("session")
	}
	return l, err
}

func scanSession(row scanner, more ...any) (l idp.Login, err error) {
	var amr string
	var authTime, expires, ended int64
	err = row.Scan(append([]any{&l.ID, &l.ProjectID, &l.SubscriberID, &authTime, &amr, &l.UserAgent,
		&l.Address, &expires, &ended, &l.Mark}, more...)...)
	if err != nil {
		return l, fmt.Errorf("reading session: %w", err)
	}
	l.AuthTime, l.Expires, l.Ended, l.AMR = moment(authTime), moment(expires), moment(ended), strings.Fields(amr)
	return l, nil
}

// MarkedSessions returns the logins made in the browser of a mark that were not ended.
func (s *Logins) LoginsMadeIn(ctx context.Context, mark string) ([]idp.Login, error) {
	return gather(ctx, s.read(), "finding sessions", func(row scanner) (idp.Login, error) {
		return scanSession(row)
	},
		`SELECT `+sessionColumns+` FROM login_sessions WHERE mark = $1 AND mark <> '' AND ended = 0 ORDER BY id`, mark)
}

// RaiseSession writes how a living login was proven.
func (s *Logins) RaiseLogin(ctx context.Context, l idp.Login) error {
	amr := strings.Join(l.AMR, " ")
	raised := audit.Of("login.raised", l.ProjectID, "subscriber", l.SubscriberID).By(
		audit.Subscriber, l.SubscriberID).With("session", l.ID, "amr", amr)
	return s.once(ctx, raised, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE login_sessions SET amr = $2 WHERE id = $1 AND ended = 0`, l.ID, amr)
		return oneRow(res, err, "session")
	})
}

// EndSessions ends logins and their grants, revokes their tokens and tells their clients.
func (s *Logins) EndLogins(ctx context.Context, now time.Time, all ...revocation.Revocation) error {
	all = slices.SortedFunc(slices.Values(all), func(a, b revocation.Revocation) int {
		return strings.Compare(a.ID, b.ID)
	}) // locked by all in this order
	return s.change(ctx, audit.Of("session.ended", "", "session", ""), func(t tx) error {
		t.event.Drop() // each has its own
		var ended []revocation.Revocation
		for _, r := range all {
			var project, subscriber string
			err := t.Row(ctx, `UPDATE login_sessions SET ended = $2 WHERE id = $1 AND ended = 0 RETURNING project_id, subscriber_id`, r.ID, micros(now)).Scan(&project, &subscriber)
			if err := found(err, "session"); errors.Is(err, problem.NotFound) {
				continue // unknown or ended before: there is nothing left to end
			} else if err != nil {
				return err
			}
			ended = append(ended, r)
			t.also(sessionEnded(ctx, project, subscriber, r.ID))
			if err := t.Later(ctx, `UPDATE grants SET revoked = $2 WHERE session_id = $1 AND revoked = 0`, r.ID, micros(now)); err != nil {
				return fmt.Errorf("ending grants: %w", err)
			}
			if err := t.tellLogouts(ctx, "id", r.ID, now); err != nil {
				return err
			}
		}
		for _, r := range ended {
			if err := t.revoke(ctx, s.ending(r)); err != nil {
				return err
			}
		}
		return nil
	})
}
