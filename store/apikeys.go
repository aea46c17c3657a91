package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Keys holds API keys, embed keys and the keys that sign webhook deliveries.
type Keys struct{ *core }

const apiKeyColumns = `id, project_id, name, prefix, hash, scopes, created, expires, revoked, last_used, rotated, old_hash, old_until, old_used`

func scanAPIKey(row scanner) (k fabric.APIKey, err error) {
	var scopes string
	var created, expires, revoked, used, rotated, oldUntil, oldUsed int64
	err = row.Scan(&k.ID, &k.ProjectID, &k.Name, &k.Prefix, &k.Hash, &scopes, &created, &expires, &revoked,
		&used, &rotated, &k.OldHash, &oldUntil, &oldUsed)
	k.Created, k.Expires, k.Revoked, k.LastUsed = moment(created), moment(expires), moment(revoked), moment(used)
	k.Rotated, k.OldUntil, k.OldUsed = moment(rotated), moment(oldUntil), moment(oldUsed)
	for _, name := range strings.Fields(scopes) {
		k.Scopes = append(k.Scopes, fabric.Scope(name))
	}
	return k, found(err, "API key")
}

// CreateAPIKey inserts a key.
func (s *Keys) CreateAPIKey(ctx context.Context, k fabric.APIKey) error {
	return s.once(ctx, audit.Of("api_key.created", k.ProjectID, "api_key", k.ID).With(
		"name", k.Name, "scopes", words(k.Scopes)), func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO api_keys (`+
			apiKeyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			k.ID, k.ProjectID, k.Name, k.Prefix, k.Hash, words(k.Scopes), micros(k.Created),
			micros(k.Expires), micros(k.Revoked), micros(k.LastUsed),
			micros(k.Rotated), k.OldHash, micros(k.OldUntil), micros(k.OldUsed))
		if isForeignKey(err) {
			return problem.NoSuch("project")
		}
		if err != nil {
			return fmt.Errorf("inserting API key: %w", err)
		}
		return nil
	})
}

// words writes scopes as their column has them.
func words(scopes []fabric.Scope) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, " ")
}

// FindAPIKey finds a key by its id, revoked ones too.
func (s *Keys) FindAPIKey(ctx context.Context, projectID, id string) (fabric.APIKey, error) {
	return scanAPIKey(s.read().Row(ctx, `SELECT `+
		apiKeyColumns+` FROM api_keys WHERE id = $2 AND project_id = $1`, projectID, id))
}

// FindAPIKeyByHash finds a key of any project by its secret or the one before,
// revoked ones too.
func (s *Keys) FindAPIKeyByHash(ctx context.Context, hash string) (fabric.APIKey, error) {
	return scanAPIKey(s.read().Row(ctx, `SELECT `+
		apiKeyColumns+` FROM api_keys WHERE hash = $1 OR old_hash = $1 AND old_hash <> '' LIMIT 1`, hash))
}

// ListAPIKeys returns a page of a project's keys.
func (s *Keys) ListAPIKeys(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.APIKey], error) {
	l := listing[fabric.APIKey]{
		thing: "API keys", columns: apiKeyColumns, from: "api_keys", key: []string{"id"}, start: startAt(q.From),
		scan: scanAPIKey, id: func(k fabric.APIKey) string { return k.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// RevokeAPIKey ends the key that a revocation names.
func (s *Keys) RevokeAPIKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error {
	return s.change(ctx, audit.Of("api_key.revoked", projectID, "api_key", r.ID), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE api_keys SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END WHERE id = $1 AND project_id = $2`,
			r.ID, projectID, micros(at))
		if err := oneRow(res, err, "API key"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// UpdateAPIKey writes what is not nil.
func (s *Keys) UpdateAPIKey(ctx context.Context, projectID, id string, c fabric.APIKeyInput, r revocation.Revocation) (k fabric.APIKey, err error) {
	var scopes *string
	var expires *int64
	if c.Scopes != nil {
		scopes = new(string)
		*scopes = words(c.Scopes)
	}
	if c.Expires != nil {
		expires = new(int64)
		*expires = micros(*c.Expires)
	}
	err = s.change(ctx, audit.Of("api_key.updated", projectID, "api_key", id), func(t tx) error {
		k, err = scanAPIKey(t.Row(ctx, `UPDATE api_keys SET name = COALESCE($3, name), scopes = COALESCE($4, scopes), expires = COALESCE($5, expires)
			WHERE id = $2 AND project_id = $1 AND revoked = 0 RETURNING `+
			apiKeyColumns, projectID, id, c.Name, scopes, expires))
		if err != nil {
			return whyUnchanged(err)
		}
		t.event.Add("name", k.Name, "scopes", words(k.Scopes), "expires", date(k.Expires))
		return t.revoke(ctx, s.ending(r))
	})
	return k, err
}

// RotateAPIKey replaces the secret of a key that still has the old one.
func (s *Keys) RotateAPIKey(ctx context.Context, k fabric.APIKey, old string, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("api_key.rotated", k.ProjectID, "api_key", k.ID).With(
		"old_until", date(k.OldUntil)), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE api_keys SET prefix = $4, hash = $5, rotated = $6, old_hash = $7, old_until = $8, old_used = $9
			WHERE id = $2 AND project_id = $1 AND hash = $3 AND revoked = 0`,
			k.ProjectID, k.ID, old, k.Prefix, k.Hash, micros(k.Rotated), k.OldHash, micros(k.OldUntil),
			micros(k.OldUsed))
		if err := oneRow(res, err, "API key"); err != nil {
			return whyUnchanged(err)
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// whyUnchanged tells why a key that was there a moment ago could not be changed.
func whyUnchanged(err error) error {
	if errors.Is(err, problem.NotFound) {
		return problem.New(problem.Conflict, "token_changed",
			"the key was revoked, or given another secret meanwhile")
	}
	return err
}

// TouchAPIKey notes that a key was used.
func (s *Keys) TouchAPIKey(ctx context.Context, id, hash string, at time.Time) error {
	return s.once(ctx, audit.None("a use, which changes nothing that it may"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE api_keys SET last_used = CASE WHEN last_used < $2 THEN $2 ELSE last_used END,
			old_used = CASE WHEN old_hash = $3 AND old_used < $2 THEN $2 ELSE old_used END WHERE id = $1`, id, micros(at), hash)
		if err != nil {
			return fmt.Errorf("touching API key: %w", err)
		}
		return nil
	})
}

// FindApplication finds an OAuth client of a project.
func (s *Clients) FindApplication(ctx context.Context, projectID, id string) (a fabric.Application, err error) {
	var scopes string
	err = s.read().Row(ctx, `SELECT id, name, scopes FROM clients WHERE id = $2 AND project_id = $1`,
		projectID, id).Scan(&a.ID, &a.Name, &scopes)
	a.Scopes = strings.Fields(scopes)
	return a, found(err, "application")
}
