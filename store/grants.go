package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Grants holds redeemed codes, grants with their refresh tokens, and consents.
type Grants struct{ *core }

var grantTable = table[idp.Grant]{
	name:  "grants",
	thing: "grant",
	columns: `id, project_id, client_id, subscriber_id, session_id, scope, auth_time, amr, refresh_hash,
	created, idle_until, expires, revoked, seed, rotated, claims, resources, jkt`,
	fields: func(g *idp.Grant) []any {
		return []any{&g.ID, &g.ProjectID, &g.ClientID, &g.SubscriberID, &g.SessionID, &g.Scope, &g.AuthTime, &g.AMR,
			&g.RefreshHash, &g.Created, &g.IdleUntil, &g.Expires, &g.Revoked, &g.Seed, &g.Rotated, grantClaims{g},
			&g.Resources, &g.Binding}
	},
}

// grantClaims is the column with the claims of a grant: JSON, or "" if there are none.
type grantClaims struct{ g *idp.Grant }

func (c grantClaims) Scan(src any) error {
	if src == "" {
		return nil
	}
	return asJSON{v: &c.g.Claims}.Scan(src)
}

func (c grantClaims) value() (any, error) {
	if len(c.g.Claims.Userinfo)+len(c.g.Claims.IDToken) == 0 && c.g.Claims.ACR == "" {
		return "", nil
	}
	return jsonText(c.g.Claims)
}

var codeTable = table[idp.RedeemedCode]{
	name:    "redeemed_codes",
	thing:   "code",
	columns: `hash, grant_id, client_id, expires`,
	fields:  func(c *idp.RedeemedCode) []any { return []any{&c.Hash, &c.GrantID, &c.ClientID, &c.Expires} },
}

// RedeemCode inserts the hash of a code, and its grant. If the hash is already stored, the error is
// [problem.Conflict]. Therefore, only one of several concurrent redemptions of a code succeeds. If
// one of the code's Uses is already stored, the error is the Refusal of this use. If the login has
// ended, or the consent or another row that the grant needs is missing, the error is
// [problem.NotFound].
func (s *Grants) RedeemCode(ctx context.Context, c idp.RedeemedCode, g idp.Grant) error {
	e := audit.Of("grant.created", g.ProjectID, "grant", g.ID).With("client", g.ClientID,
		"subscriber", g.SubscriberID, "session", g.SessionID, "scope", strings.Join(g.Scope, " "))
	err := s.change(ctx, e, func(t tx) error {
		if len(c.Uses) > 0 {
			query, args := insertUses(c.Uses)
			if err := t.Later(ctx, query, args...); err != nil {
				return fmt.Errorf("inserting uses: %w", err)
			}
		}
		if err := codeTable.insertLater(ctx, t, &c); err != nil {
			return err
		}
		if err := grantTable.insertLater(ctx, t, &g); err != nil {
			return err
		}

		if err := t.requireConsent(ctx, g, c.Rights); err != nil {
			return err
		}
		return t.requireLogin(ctx, g.SessionID)
	})

	switch {
	case isUnique(err):
		if err := s.findRefusal(ctx, c.Uses); err != nil {
			return err
		}
		return problem.New(problem.Conflict, "code_redeemed", "the code was redeemed before")
	case isForeignKey(err):
		return problem.NoSuch("client or subscriber")
	}
	return err
}

// requireLogin returns problem.NotFound if a login has ended. If another change ends the login
// concurrently, one of the two changes waits for the other. The other change then also ends the new
// grant, or this change finds that the login has ended. Grants of the same login do not wait for each other.
func (t tx) requireLogin(ctx context.Context, id string) error {
	var found int
	err := t.Shared(ctx, `SELECT 1 FROM login_sessions WHERE id = $1 AND ended = 0`, id).Scan(&found)
	return checkRow(err, "session")
}

// requireConsent returns problem.NotFound if the subscriber has not consented to all rights. If
// rights is nil, no consent is needed. requireConsent locks the consent. A concurrent revocation
// therefore waits for this change, and then finds the new grant.
func (t tx) requireConsent(ctx context.Context, g idp.Grant, rights []string) error {
	if rights == nil {
		return nil
	}
	var agreed []string
	err := t.Shared(ctx, `SELECT scope FROM consents WHERE subscriber_id = $1 AND client_id = $2`,
		g.SubscriberID, g.ClientID).Scan(scanTarget(&agreed))
	if err = checkRow(err, "consent"); err != nil {
		return err
	}
	if slices.ContainsFunc(rights, func(right string) bool { return !slices.Contains(agreed, right) }) {
		return problem.NoSuch("consent")
	}
	return nil
}

// FindRedeemedCode finds a redeemed code by its hash.
func (s *Grants) FindRedeemedCode(ctx context.Context, hash string) (idp.RedeemedCode, error) {
	return codeTable.find(ctx, s.read(), `hash = $1`, hash)
}

// FindGrant finds a grant, whether revoked or not.
func (s *Grants) FindGrant(ctx context.Context, id string) (idp.Grant, error) {
	return grantTable.find(ctx, s.read(), `id = $1`, id)
}

// RotateGrant writes the refresh token of a grant, if the hash of the stored token equals old.
// Otherwise the error is [problem.Conflict]: the previous token was used before, or the grant was
// revoked. If one of uses is already stored, the error is the Refusal of this use.
func (s *Grants) RotateGrant(ctx context.Context, g idp.Grant, old string, uses ...idp.Use) error {
	run := s.once
	if len(uses) > 0 {
		run = s.change
	}

	err := run(ctx, audit.None("a use that replaces tokens"), func(t tx) error {
		if len(uses) > 0 {
			query, args := insertUses(uses)
			if err := t.Later(ctx, query, args...); err != nil {
				return fmt.Errorf("inserting uses: %w", err)
			}
		}

		res, err := t.Exec(ctx, `UPDATE grants SET refresh_hash = $3, seed = $4, rotated = $5, idle_until = $6
			WHERE id = $1 AND refresh_hash = $2 AND revoked = 0`,
			g.ID, old, g.RefreshHash, g.Seed, micros(g.Rotated), micros(g.IdleUntil))
		return requireRowOr(problem.New(problem.Conflict, "token_reused", "the refresh token was used before"),
			res, err, "grant")
	})
	if isUnique(err) {
		if refusal := s.findRefusal(ctx, uses); refusal != nil {
			return refusal
		}
	}
	return err
}

// RevokeGrant ends a grant and its access tokens. If the grant is unknown or already revoked,
// RevokeGrant returns nil.
func (s *Grants) RevokeGrant(ctx context.Context, id string, now time.Time, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("grant.revoked", "", "grant", id), func(t tx) error {
		var client, subscriber string
		revoked, err := t.findRow(ctx, "grant", `UPDATE grants SET revoked = $2 WHERE id = $1 AND revoked = 0
				RETURNING project_id, client_id, subscriber_id`, []any{id, micros(now)},
			&t.event.ProjectID, &client, &subscriber)
		if err != nil {
			return err
		}
		if !revoked {
			t.event.Drop()
			return nil
		}
		t.event.Add("client", client, "subscriber", subscriber)
		return t.revoke(ctx, s.ending(r))
	})
}
