package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

const apiKeyColumns = `id, project_id, name, prefix, hash, scopes, created, revoked, last_used`

func scanAPIKey(row scanner) (k fabric.APIKey, err error) {
	var scopes string
	var created, revoked, used int64
	err = row.Scan(&k.ID, &k.ProjectID, &k.Name, &k.Prefix, &k.Hash, &scopes, &created, &revoked, &used)
	k.Created, k.Revoked, k.LastUsed = moment(created), moment(revoked), moment(used)
	for _, name := range strings.Fields(scopes) {
		k.Scopes = append(k.Scopes, fabric.Scope(name))
	}
	return k, found(err, "API key")
}

// CreateAPIKey inserts a key.
func (s *Store) CreateAPIKey(ctx context.Context, k fabric.APIKey) error {
	names := make([]string, len(k.Scopes))
	for i, scope := range k.Scopes {
		names[i] = string(scope)
	}
	return s.once(ctx, func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO api_keys (`+apiKeyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			k.ID, k.ProjectID, k.Name, k.Prefix, k.Hash, strings.Join(names, " "), micros(k.Created), micros(k.Revoked), micros(k.LastUsed))
		if isForeignKey(err) {
			return problem.NoSuch("project")
		}
		if err != nil {
			return fmt.Errorf("inserting API key: %w", err)
		}
		return nil
	})
}

// FindAPIKeyByHash finds a key of any project, revoked ones too.
func (s *Store) FindAPIKeyByHash(ctx context.Context, hash string) (fabric.APIKey, error) {
	return scanAPIKey(s.read().Row(ctx, `SELECT `+apiKeyColumns+` FROM api_keys WHERE hash = $1`, hash))
}

// ListAPIKeys gives a page of a project's keys.
func (s *Store) ListAPIKeys(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.APIKey], error) {
	l := listing[fabric.APIKey]{
		thing: "API keys", columns: apiKeyColumns, from: "api_keys", key: []string{"id"}, start: startAt(q.From),
		scan: scanAPIKey, id: func(k fabric.APIKey) string { return k.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// RevokeAPIKey ends the key that a revocation names.
func (s *Store) RevokeAPIKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error {
	return s.change(ctx, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE api_keys SET revoked = CASE WHEN revoked = 0 THEN $3 ELSE revoked END WHERE id = $1 AND project_id = $2`,
			r.ID, projectID, micros(at))
		if err := oneRow(res, err, "API key"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(r))
	})
}

// TouchAPIKey notes that a key was used.
func (s *Store) TouchAPIKey(ctx context.Context, id string, at time.Time) error {
	return s.once(ctx, func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE api_keys SET last_used = $2 WHERE id = $1 AND last_used < $2`, id, micros(at)); err != nil {
			return fmt.Errorf("touching API key: %w", err)
		}
		return nil
	})
}

// FindApplication finds an OAuth client of a project.
func (s *Store) FindApplication(ctx context.Context, projectID, id string) (a fabric.Application, err error) {
	var scopes string
	err = s.read().Row(ctx, `SELECT id, name, scopes FROM clients WHERE id = $2 AND project_id = $1`, projectID, id).Scan(&a.ID, &a.Name, &scopes)
	a.Scopes = strings.Fields(scopes)
	return a, found(err, "application")
}
