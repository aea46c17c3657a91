package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

var registrationTokenTable = table[fabric.RegistrationToken]{
	name:    "registration_tokens",
	thing:   "registration token",
	columns: `id, project_id, name, prefix, hash, created, expires, revoked, max_uses, uses`,
	fields: func(k *fabric.RegistrationToken) []any {
		return []any{
			&k.ID, &k.ProjectID, &k.Name, &k.Prefix, &k.Hash, &k.Created, &k.Expires, &k.Revoked,
			&k.MaxUses, &k.Uses,
		}
	},
}

// CreateRegistrationToken inserts a registration token, unless its creator has lost rights since
// they were read.
func (s *Keys) CreateRegistrationToken(ctx context.Context, k fabric.RegistrationToken, by *fabric.Rights) error {
	e := audit.Of("registration_token.created", k.ProjectID, "registration_token", k.ID).With("name", k.Name)
	return s.change(ctx, e, func(t tx) error {
		if err := t.requireRights(ctx, by, s.now()); err != nil {
			return err
		}
		return registrationTokenTable.insert(ctx, t, &k, "project")
	})
}

// FindRegistrationTokenByHash finds a registration token by its hash, whether revoked or not.
func (s *Keys) FindRegistrationTokenByHash(ctx context.Context, hash string) (fabric.RegistrationToken, error) {
	return registrationTokenTable.find(ctx, s.read(), `hash = $1`, hash)
}

// ListRegistrationTokens returns a page of a project's registration tokens whose names, prefixes or
// ids contain each word of text. If text is "", all tokens match.
func (s *Keys) ListRegistrationTokens(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[fabric.RegistrationToken], error) {
	l := registrationTokenTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`name || ' ' || prefix || ' ' || id`, text)
	return l.page(ctx, s.read(), q)
}

// RevokeRegistrationToken revokes a registration token.
func (s *Keys) RevokeRegistrationToken(ctx context.Context, projectID, id string, at time.Time) error {
	e := audit.Of("registration_token.revoked", projectID, "registration_token", id)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE registration_tokens
			SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END
			WHERE id = $1 AND project_id = $2`, id, projectID, micros(at))
		return requireRow(res, err, "registration token")
	})
}

// RegisterClient inserts a client that registers itself, and counts the use of its registration
// token. limit is the maximum number of registered clients in the project; 0 means no limit. If it is
// reached, the error is problem.Forbidden. If the project or the token no longer accepts the client, the
// error is idp.ErrNoRegistration.
func (s *Clients) RegisterClient(ctx context.Context, c idp.Client, limit int) error {
	c.SecretMade, c.Old = time.Time{}, idp.Client{}.Old
	c.Logo, c.DarkLogo = "", ""
	e := clientEvent("client.created", c).With("registered_by", c.RegisteredBy)
	return s.change(ctx, e, func(t tx) error {
		if err := t.admitClient(ctx, c, limit); err != nil {
			return err
		}
		if err := clientTable.insert(ctx, t, &c, "project"); err != nil {
			return err
		}
		return t.receiveLogouts(ctx, c)
	})
}

// admitClient checks that the project and the registration token still accept the registration of a
// client, and counts the use of the token. It locks the project's row before it counts clients, so
// that concurrent registrations wait for each other.
func (t tx) admitClient(ctx context.Context, c idp.Client, limit int) error {
	mode := fabric.ClientsOpen
	if c.RegisteredBy != idp.RegisteredOpenly {
		mode = fabric.ClientsByToken
	}
	res, err := t.Exec(ctx, `UPDATE projects SET updated = updated
		WHERE id = $1 AND client_registration IN ($2, 'open')`, c.ProjectID, string(mode))
	if err = requireRowOr(idp.ErrNoRegistration(), res, err, "project"); err != nil {
		return err
	}

	var registered int
	err = t.Row(ctx, `SELECT COUNT(*) FROM clients WHERE project_id = $1 AND registered_by <> ''`,
		c.ProjectID).Scan(&registered)
	if err != nil {
		return fmt.Errorf("counting registered clients: %w", err)
	}
	if limit > 0 && registered >= limit {
		return problem.New(problem.Forbidden, "access_denied",
			"the project already has %d registered clients, the most that it may have", registered)
	}
	if c.RegisteredBy == idp.RegisteredOpenly {
		return nil
	}

	res, err = t.Exec(ctx, `UPDATE registration_tokens SET uses = uses + 1
		WHERE id = $1 AND project_id = $2 AND revoked = 0 AND (expires = 0 OR expires > $3)
			AND (max_uses = 0 OR uses < max_uses)`, c.RegisteredBy, c.ProjectID, micros(c.Created))
	return requireRowOr(idp.ErrNoRegistration(), res, err, "registration token")
}
