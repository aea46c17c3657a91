package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Grants holds what clients were granted: redeemed codes, refresh tokens and consents.
type Grants struct{ *core }

const grantColumns = `id, project_id, client_id, subscriber_id, session_id, scope, auth_time, amr, refresh_hash, created, idle_until, expires, revoked, seed, rotated, claims, resources`

// RedeemCode inserts a code's hash and its grant. A hash that is there already is
// a [problem.Conflict]: of many redemptions one succeeds. A login that was ended, or
// anything else of the grant that is gone, such as the consent that it needs, is a
// [problem.NotFound].
func (s *Grants) RedeemCode(ctx context.Context, c idp.RedeemedCode, g idp.Grant) error {
	err := s.change(ctx, audit.Of("grant.created", g.ProjectID, "grant", g.ID).
		With("client", g.ClientID, "subscriber", g.SubscriberID, "session", g.SessionID, "scope",
			strings.Join(g.Scope, " ")), func(t tx) error {
		if err := t.insertGrant(ctx, c, g); err != nil {
			return err
		}
		if c.Rights != nil {
			// As below, with who takes the consent back.
			agreed, err := t.lockConsent(ctx, g.SubscriberID, g.ClientID)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(c.Rights, func(right string) bool { return !slices.Contains(agreed, right) }) {
				return problem.NoSuch("consent")
			}
		}
		// Who ends the login waits here for us, and then ends the grant; or we for them.
		res, err := t.Exec(ctx, `UPDATE login_sessions SET ended = 0 WHERE id = $1 AND ended = 0`, g.SessionID)
		return oneRow(res, err, "session")
	})
	switch {
	case isUnique(err):
		return problem.New(problem.Conflict, "code_redeemed", "the code was redeemed before")
	case isForeignKey(err):
		return problem.NoSuch("client or subscriber")
	}
	return err
}

func (t tx) insertGrant(ctx context.Context, c idp.RedeemedCode, g idp.Grant) error {
	err := t.Later(ctx, `INSERT INTO redeemed_codes (hash, grant_id, client_id, expires) VALUES ($1, $2, $3, $4)`,
		c.Hash, c.GrantID, c.ClientID, micros(c.Expires))
	if err != nil {
		return fmt.Errorf("inserting redeemed code: %w", err)
	}
	claims := ""
	if len(g.Claims.Userinfo)+len(g.Claims.IDToken) > 0 {
		raw, err := json.Marshal(g.Claims)
		if err != nil {
			return fmt.Errorf("writing claims of a grant: %w", err)
		}
		claims = string(raw)
	}
	err = t.Later(ctx, `INSERT INTO grants (`+
		grantColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		g.ID, g.ProjectID, g.ClientID, g.SubscriberID, g.SessionID, strings.Join(g.Scope, " "),
		micros(g.AuthTime), strings.Join(g.AMR, " "),
		g.RefreshHash, micros(g.Created), micros(g.IdleUntil), micros(g.Expires), micros(g.Revoked), g.Seed,
		micros(g.Rotated), claims, strings.Join(g.Resources, " "))
	if err != nil {
		return fmt.Errorf("inserting grant: %w", err)
	}
	return nil
}

// FindRedeemedCode finds a redeemed code by its hash.
func (s *Grants) FindRedeemedCode(ctx context.Context, hash string) (c idp.RedeemedCode, err error) {
	var expires int64
	err = s.read().Row(ctx, `SELECT hash, grant_id, client_id, expires FROM redeemed_codes WHERE hash = $1`, hash).
		Scan(&c.Hash, &c.GrantID, &c.ClientID, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return c, problem.NoSuch("code")
	}
	if err != nil {
		return c, fmt.Errorf("reading redeemed code: %w", err)
	}
	c.Expires = moment(expires)
	return c, nil
}

// FindGrant finds a grant, revoked or not.
func (s *Grants) FindGrant(ctx context.Context, id string) (g idp.Grant, err error) {
	var scope, amr, claims, resources string
	var authTime, created, idle, expires, revoked, rotated int64
	err = s.read().Row(ctx, `SELECT `+grantColumns+` FROM grants WHERE id = $1`, id).
		Scan(&g.ID, &g.ProjectID, &g.ClientID, &g.SubscriberID, &g.SessionID, &scope, &authTime, &amr,
			&g.RefreshHash, &created, &idle, &expires, &revoked, &g.Seed, &rotated, &claims, &resources)
	if errors.Is(err, sql.ErrNoRows) {
		return g, problem.NoSuch("grant")
	}
	if err != nil {
		return g, fmt.Errorf("reading grant: %w", err)
	}
	g.Scope, g.AMR, g.Resources = strings.Fields(scope), strings.Fields(amr), strings.Fields(resources)
	g.AuthTime, g.Created, g.IdleUntil, g.Expires, g.Revoked, g.Rotated = moment(authTime), moment(created), moment(idle), moment(expires), moment(revoked), moment(rotated)
	if claims != "" {
		if err := json.Unmarshal([]byte(claims), &g.Claims); err != nil {
			return g, fmt.Errorf("reading claims of a grant: %w", err)
		}
	}
	return g, nil
}

// RotateGrant writes the refresh token of a living grant if the hash is still old. A
// [problem.Conflict] means that the token was used before, or the grant revoked.
func (s *Grants) RotateGrant(ctx context.Context, g idp.Grant, old string) error {
	return s.once(ctx, audit.None("a use: tokens in the place of others"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE grants SET refresh_hash = $3, seed = $4, rotated = $5, idle_until = $6
			WHERE id = $1 AND refresh_hash = $2 AND revoked = 0`,
			g.ID, old, g.RefreshHash, g.Seed, micros(g.Rotated), micros(g.IdleUntil))
		if err := oneRow(res, err, "grant"); errors.Is(err, problem.NotFound) {
			return problem.New(problem.Conflict, "token_reused", "the refresh token was used before")
		} else if err != nil {
			return err
		}
		return nil
	})
}

// RevokeGrant ends a grant and its access tokens.
func (s *Grants) RevokeGrant(ctx context.Context, id string, now time.Time, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("grant.revoked", "", "grant", id), func(t tx) error {
		var client, subscriber string
		err := t.Row(ctx, `UPDATE grants SET revoked = $2 WHERE id = $1 AND revoked = 0 RETURNING project_id, client_id, subscriber_id`, id, micros(now)).
			Scan(&t.event.ProjectID, &client, &subscriber)
		if err := found(err, "grant"); errors.Is(err, problem.NotFound) { // gone or revoked before
			t.event.Drop()
			return nil
		} else if err != nil {
			return err
		}
		t.event.Add("client", client, "subscriber", subscriber)
		return t.revoke(ctx, s.ending(r))
	})
}

// sweepBatch bounds what one sweep deletes in a transaction, and so how long a
// login may have to wait for it.
const sweepBatch = 500

// SweepLogins deletes redeemed codes and used assertions that no replay can meet any more, grants that
// began before a moment and expired before another, and logins that began before
// it and have no grants left. Ids sort by their beginnings; the expiry is looked at
// because it may have been set under longer lifetimes than those of this node.
func (s *Logins) SweepLogins(ctx context.Context, began, expired time.Time) error {
	return errors.Join(
		s.sweep(ctx, `DELETE FROM redeemed_codes WHERE hash IN (SELECT hash FROM redeemed_codes WHERE expires < $2 ORDER BY expires LIMIT $1)`,
			micros(s.now())),
		s.sweep(ctx, `DELETE FROM used_assertions WHERE hash IN (SELECT hash FROM used_assertions WHERE expires < $2 ORDER BY expires LIMIT $1)`,
			micros(s.now())),
		s.sweep(ctx, `DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE id < $2 AND expires < $3 ORDER BY id LIMIT $1)`,
			firstID(began), micros(expired)),
		s.sweep(ctx, `DELETE FROM login_sessions WHERE id IN (SELECT id FROM login_sessions WHERE id < $2
			AND NOT EXISTS (SELECT 1 FROM grants WHERE session_id = login_sessions.id) ORDER BY id LIMIT $1)`,
			firstID(began)),
	)
}

// sweep repeats a statement that deletes at most $1 rows until none are left.
func (s *core) sweep(ctx context.Context, query string, bounds ...any) error {
	bounds = append([]any{sweepBatch}, bounds...)
	for {
		var n int64
		err := s.once(ctx, audit.None("what has expired"), func(t tx) error {
			res, err := t.Exec(ctx, query, bounds...)
			if err == nil {
				n, err = res.RowsAffected()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("sweeping logins: %w", err)
		}
		if n < sweepBatch {
			return nil
		}
	}
}

// firstID returns the least UUIDv7 of a moment (RFC 9562, section 5.7).
func firstID(t time.Time) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-000000000000", ms>>16, ms&0xffff)
}
