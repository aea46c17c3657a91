package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Keys holds API keys, embed keys, ingest keys, registration tokens and the keys that sign webhook
// deliveries.
type Keys struct{ *core }

var apiKeyTable = table[fabric.APIKey]{
	name:  "api_keys",
	thing: "API key",
	columns: `id, project_id, name, prefix, hash, scopes, created, expires, revoked, last_used,
	rotated, old_hash, old_until, old_used`,
	fields: func(k *fabric.APIKey) []any {
		return []any{&k.ID, &k.ProjectID, &k.Name, &k.Prefix, &k.Hash, listOf(&k.Scopes), &k.Created, &k.Expires,
			&k.Revoked, &k.LastUsed, &k.Rotated, &k.OldHash, &k.OldUntil, &k.OldUsed}
	},
}

// CreateAPIKey inserts a key, unless its creator has lost rights since they were read.
func (s *Keys) CreateAPIKey(ctx context.Context, k fabric.APIKey, by *fabric.Rights) error {
	e := audit.Of("api_key.created", k.ProjectID, "api_key", k.ID).With("name", k.Name, "scopes", join(k.Scopes))
	return s.change(ctx, e, func(t tx) error {
		if err := t.requireRights(ctx, by, s.now()); err != nil {
			return err
		}
		return apiKeyTable.insertNew(ctx, t, &k, "project",
			problem.Taken("id", "another API key has this id or secret"))
	})
}

// requireRights returns problem.Unauthenticated unless the credentials from which the rights were
// read still have them. It locks the row that every change of these credentials writes: the row of
// the API key, or the counter of revocations. Therefore, the later of two concurrent changes sees
// the earlier one.
func (t tx) requireRights(ctx context.Context, by *fabric.Rights, now time.Time) error {
	if by == nil {
		return nil
	}

	if by.KeyID != "" {
		revoked := problem.NoCredentials().Because("the API key was revoked in the meantime")
		k, err := apiKeyTable.scan(t.Row(ctx, `UPDATE api_keys SET name = name WHERE id = $1
			RETURNING `+apiKeyTable.columns, by.KeyID))
		if errors.Is(err, problem.NotFound) {
			return revoked
		}
		if err != nil {
			return err
		}
		if !by.HeldBy(k, now) {
			return revoked
		}
		return nil
	}

	if _, err := t.Exec(ctx, `UPDATE sequences SET value = value WHERE name = 'revocations'`); err != nil {
		return fmt.Errorf("locking revocations: %w", err)
	}
	ended, _, err := t.revocationsSince(ctx, by.Since, now)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(ended, by.EndedBy) {
		return problem.NoCredentials().Because("the token was revoked in the meantime")
	}
	return nil
}

// FindAPIKey finds a key by its id, whether revoked or not.
func (s *Keys) FindAPIKey(ctx context.Context, projectID, id string) (fabric.APIKey, error) {
	return apiKeyTable.find(ctx, s.read(), `id = $2 AND project_id = $1`, projectID, id)
}

// FindAPIKeyByHash finds a key in any project by the hash of its current or previous secret,
// whether revoked or not.
func (s *Keys) FindAPIKeyByHash(ctx context.Context, hash string) (fabric.APIKey, error) {
	return apiKeyTable.find(ctx, s.read(), `hash = $1 OR old_hash = $1 AND old_hash <> '' LIMIT 1`, hash)
}

// ListAPIKeys returns a page of a project's keys.
func (s *Keys) ListAPIKeys(
	ctx context.Context, projectID string, f fabric.APIKeyFilter, q page.Query,
) (page.Page[fabric.APIKey], error) {
	l := apiKeyTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`name || ' ' || prefix || ' ' || id`, f.Text)
	switch f.State {
	case fabric.KeyUsable:
		l.checks = append(l.checks, check{`revoked = 0 AND (expires = 0 OR expires > $%d)`, []any{micros(s.now())}})
	case fabric.KeyEnded:
		l.checks = append(l.checks, check{`(revoked <> 0 OR expires <> 0 AND expires <= $%d)`, []any{micros(s.now())}})
	}
	return l.page(ctx, s.read(), q)
}

// ExpiringAPIKeys returns the project's usable keys that expire between two times, in the order in
// which they expire.
func (s *Keys) ExpiringAPIKeys(
	ctx context.Context, projectID string, after, before time.Time, most int,
) ([]fabric.APIKey, error) {
	return apiKeyTable.gather(ctx, s.read(), `WHERE project_id = $1 AND revoked = 0
		AND expires > $2 AND expires < $3 ORDER BY expires, id LIMIT $4`,
		projectID, micros(after), micros(before), most)
}

// RevokeAPIKey revokes the API key with the id r.ID.
func (s *Keys) RevokeAPIKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error {
	return s.change(ctx, audit.Of("api_key.revoked", projectID, "api_key", r.ID), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE api_keys SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END
			WHERE id = $1 AND project_id = $2`, r.ID, projectID, micros(at))
		if err = requireRow(res, err, "API key"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// errKeyChanged is the error for a key that was found, but can no longer be changed.
var errKeyChanged = problem.New(problem.Conflict, "token_changed",
	"the key was revoked or rotated in the meantime")

// errNoOldSecret is the error for a key whose previous secret cannot be ended.
var errNoOldSecret = problem.New(problem.Conflict, "no_old_secret",
	"the API key has no old secret that is still valid")

// UpdateAPIKey writes the fields that are not nil, unless the caller has lost rights since they
// were read.
func (s *Keys) UpdateAPIKey(
	ctx context.Context, projectID, id string, c fabric.APIKeyInput, by *fabric.Rights, r revocation.Revocation,
) (fabric.APIKey, error) {
	var scopes *string
	var expires *int64
	if c.Scopes != nil {
		text := join(c.Scopes)
		scopes = &text
	}
	if c.Expires != nil {
		us := micros(*c.Expires)
		expires = &us
	}

	e := audit.Of("api_key.updated", projectID, "api_key", id)
	return resultOf(ctx, s.change, e, func(t tx) (fabric.APIKey, error) {
		if err := t.requireRights(ctx, by, s.now()); err != nil {
			return fabric.APIKey{}, err
		}
		k, err := apiKeyTable.scan(t.Row(ctx, `UPDATE api_keys SET name = COALESCE($3, name),
				scopes = COALESCE($4, scopes), expires = COALESCE($5, expires)
			WHERE id = $2 AND project_id = $1 AND revoked = 0 RETURNING `+apiKeyTable.columns,
			projectID, id, c.Name, scopes, expires))
		if err != nil {
			return k, conflictIfMissing(errKeyChanged, err)
		}
		t.event.Add("name", k.Name, "scopes", join(k.Scopes), "expires", date(k.Expires))
		return k, t.revoke(ctx, s.ending(r))
	})
}

// RotateAPIKey replaces the secret of a key, if the hash of the stored secret equals old and the
// caller has not lost rights since they were read.
func (s *Keys) RotateAPIKey(
	ctx context.Context, k fabric.APIKey, old string, by *fabric.Rights, r revocation.Revocation,
) error {
	e := audit.Of("api_key.rotated", k.ProjectID, "api_key", k.ID).With("old_until", date(k.OldUntil))
	return s.change(ctx, e, func(t tx) error {
		if err := t.requireRights(ctx, by, s.now()); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `UPDATE api_keys
			SET prefix = $4, hash = $5, rotated = $6, old_hash = $7, old_until = $8, old_used = $9
			WHERE id = $2 AND project_id = $1 AND hash = $3 AND revoked = 0`,
			k.ProjectID, k.ID, old, k.Prefix, k.Hash, micros(k.Rotated), k.OldHash, micros(k.OldUntil),
			micros(k.OldUsed))
		if err = requireRow(res, err, "API key"); err != nil {
			return conflictIfMissing(errKeyChanged, err)
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// EndOldAPIKeySecret deletes the previous secret of a key. If this secret is not the one in k, or
// is no longer valid, the error is errNoOldSecret.
func (s *Keys) EndOldAPIKeySecret(
	ctx context.Context, k fabric.APIKey, now time.Time, r revocation.Revocation,
) (fabric.APIKey, error) {
	e := audit.Of("api_key.old_secret_ended", k.ProjectID, "api_key", k.ID)
	return resultOf(ctx, s.change, e, func(t tx) (fabric.APIKey, error) {
		k, err := apiKeyTable.scan(t.Row(ctx, `UPDATE api_keys SET old_hash = '', old_until = 0, old_used = 0
			WHERE id = $2 AND project_id = $1 AND revoked = 0 AND old_hash = $4 AND old_hash <> '' AND old_until > $3
			RETURNING `+apiKeyTable.columns, k.ProjectID, k.ID, micros(now), k.OldHash))
		if err != nil {
			return k, conflictIfMissing(errNoOldSecret, err)
		}
		t.event.Add("name", k.Name)
		return k, t.revoke(ctx, s.ending(r))
	})
}

// TouchAPIKey records that a key was used with the secret that has the given hash.
func (s *Keys) TouchAPIKey(ctx context.Context, id, hash string, at time.Time) error {
	return s.once(ctx, audit.None("only records the last use; grants nothing"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE api_keys SET last_used = CASE WHEN last_used < $2 THEN $2 ELSE last_used END,
				old_used = CASE WHEN old_hash = $3 AND old_used < $2 THEN $2 ELSE old_used END
			WHERE id = $1`, id, micros(at), hash)
		if err != nil {
			return fmt.Errorf("touching API key: %w", err)
		}
		return nil
	})
}
