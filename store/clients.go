package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Clients holds the OAuth clients of projects.
type Clients struct{ *core }

var (
	_ idp.ClientStore  = (*Store)(nil)
	_ idp.LoginStore   = (*Store)(nil)
	_ idp.GrantStore   = (*Store)(nil)
	_ idp.ConsentStore = (*Store)(nil)
	_ idp.LetterStore  = (*Store)(nil)
)

const clientColumns = `id, project_id, name, type, profile, auth_method, secret_hash, first_party, pkce_optional,
	redirect_uris, logout_uris, grants, scopes, access_token, id_token_alg, metadata, created, updated,
	secret_made, old_secret_hash, old_secret_until, old_secret_used, logo`

// CreateClient inserts a client.
func (s *Clients) CreateClient(ctx context.Context, c idp.Client) error {
	redirects, logouts, metadata, err := clientTexts(c)
	if err != nil {
		return err
	}
	return s.change(ctx, clientEvent("client.created", c), func(t tx) error {
		_, err := t.Exec(ctx, `INSERT INTO clients (`+clientColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 0, '', 0, 0, '')`,
			c.ID, c.ProjectID, c.Name, c.Type, c.Profile, c.AuthMethod, c.SecretHash, flag(c.FirstParty),
			flag(c.PKCEOptional),
			redirects, logouts, strings.Join(c.Grants, " "), strings.Join(c.Scopes, " "), c.AccessToken, c.IDTokenAlg,
			metadata, micros(c.Created), micros(c.Updated))
		if isForeignKey(err) {
			return problem.NoSuch("project")
		}
		if err != nil {
			return fmt.Errorf("inserting client: %w", err)
		}
		return t.receiveLogouts(ctx, c)
	})
}

// clientTexts returns the columns that are JSON.
func clientTexts(c idp.Client) (redirects, logouts, metadata string, err error) {
	for text, value := range map[*string]any{
		&redirects: append([]string{}, c.RedirectURIs...), &logouts: append([]string{}, c.LogoutURIs...),
		&metadata: c.Metadata,
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			return "", "", "", fmt.Errorf("writing client: %w", err)
		}
		*text = string(raw)
	}
	return redirects, logouts, metadata, nil
}

// FindClient finds a client by its id, in any project.
func (s *Clients) FindClient(ctx context.Context, id string) (idp.Client, error) {
	c, err := scanClient(s.read().Row(ctx, `SELECT `+clientColumns+` FROM clients WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return c, problem.NoSuch("client")
	}
	return c, err
}

func scanClient(row scanner) (c idp.Client, err error) {
	var redirects, logouts, grants, scopes, metadata string
	var created, updated, made, oldUntil, oldUsed int64
	err = row.Scan(&c.ID, &c.ProjectID, &c.Name, &c.Type, &c.Profile, &c.AuthMethod, &c.SecretHash,
		&c.FirstParty, &c.PKCEOptional,
		&redirects, &logouts, &grants, &scopes, &c.AccessToken, &c.IDTokenAlg, &metadata, &created, &updated,
		&made, &c.Old.Hash, &oldUntil, &oldUsed, &c.Logo)
	if err != nil {
		return c, fmt.Errorf("reading client: %w", err)
	}
	err = errors.Join(json.Unmarshal([]byte(redirects), &c.RedirectURIs),
		json.Unmarshal([]byte(logouts), &c.LogoutURIs),
		json.Unmarshal([]byte(metadata), &c.Metadata))
	if err != nil {
		return c, fmt.Errorf("reading client: %w", err)
	}
	c.Grants, c.Scopes = strings.Fields(grants), strings.Fields(scopes)
	c.Created, c.Updated = moment(created), moment(updated)
	c.SecretMade, c.Old.Until, c.Old.Used = moment(made), moment(oldUntil), moment(oldUsed)
	return c, nil
}

// ListClients returns a page of a project's clients in the order of creation.
func (s *Clients) ListClients(ctx context.Context, projectID string, q page.Query) (page.Page[idp.Client], error) {
	l := listing[idp.Client]{
		thing: "clients", columns: clientColumns, from: "clients", key: []string{"id"}, start: startAt(q.From),
		scan: scanClient, id: func(c idp.Client) string { return c.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// ReplaceClient writes the settings of a client that is still as it was at a moment.
func (s *Clients) ReplaceClient(ctx context.Context, c idp.Client, since time.Time) error {
	redirects, logouts, metadata, err := clientTexts(c)
	if err != nil {
		return err
	}
	return s.change(ctx, clientEvent("client.updated", c), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE clients SET name = $2, profile = $3, auth_method = $4, first_party = $5,
			pkce_optional = $6, redirect_uris = $7, logout_uris = $8, grants = $9, scopes = $10, access_token = $11, id_token_alg = $12,
			metadata = $13, updated = $14 WHERE id = $1 AND updated = $15`, c.ID, c.Name, c.Profile, c.AuthMethod, flag(c.FirstParty), flag(c.PKCEOptional),
			redirects, logouts, strings.Join(c.Grants, " "), strings.Join(c.Scopes, " "), c.AccessToken,
			c.IDTokenAlg, metadata, micros(c.Updated), micros(since))
		if err := oneRow(res, err, "client"); errors.Is(err, problem.NotFound) {
			return problem.New(problem.Conflict, "client_changed", "the client was changed or deleted meanwhile")
		} else if err != nil {
			return err
		}
		return t.receiveLogouts(ctx, c)
	})
}

// SetClientSecret replaces the secret of a client that still has the old one.
func (s *Clients) SetClientSecret(ctx context.Context, c idp.Client, old string) error {
	e := audit.Of("client.secret_rotated", c.ProjectID, "client", c.ID).With(
		"name", c.Name, "old_until", date(c.Old.Until))
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE clients SET secret_hash = $3, secret_made = $4, old_secret_hash = $5, old_secret_until = $6,
			old_secret_used = 0, updated = $4 WHERE id = $1 AND secret_hash = $2`,
			c.ID, old, c.SecretHash, micros(c.SecretMade), c.Old.Hash, micros(c.Old.Until))
		if err := oneRow(res, err, "client"); errors.Is(err, problem.NotFound) {
			return problem.New(problem.Conflict, "secret_changed",
				"the client was deleted, or given another secret meanwhile")
		} else if err != nil {
			return err
		}
		return nil
	})
}

// EndOldSecret takes the secret before its present one from a client.
func (s *Clients) EndOldSecret(ctx context.Context, id string, now time.Time) error {
	return s.once(ctx, audit.Of("client.old_secret_ended", "", "client", id), func(t tx) error {
		var name string
		err := t.Row(ctx, `UPDATE clients SET old_secret_hash = '', old_secret_until = 0, old_secret_used = 0, updated = $2
			WHERE id = $1 AND old_secret_hash <> '' AND old_secret_until > $2 RETURNING project_id, name`, id, micros(now)).Scan(&t.event.ProjectID, &name)
		if errors.Is(err, sql.ErrNoRows) {
			return problem.New(problem.Conflict, "no_old_secret", "the client has no old secret that is still good")
		}
		t.event.Add("name", name)
		return found(err, "client")
	})
}

// TouchOldSecret notes that an old secret was used.
func (s *Clients) TouchOldSecret(ctx context.Context, id, hash string, at time.Time) error {
	return s.once(ctx, audit.None("a use, which changes nothing that it may"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE clients SET old_secret_used = $3 WHERE id = $1 AND old_secret_hash = $2 AND old_secret_used < $3`, id, hash, micros(at))
		if err != nil {
			return fmt.Errorf("touching old secret: %w", err)
		}
		return nil
	})
}

// DeleteClient deletes a client with its grants and revokes its tokens.
func (s *Clients) DeleteClient(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("client.deleted", "", "client", r.ID), func(t tx) error {
		var name string
		err := t.Row(ctx, `DELETE FROM clients WHERE id = $1 RETURNING project_id, name`, r.ID).Scan(
			&t.event.ProjectID, &name)
		if err := found(err, "client"); err != nil {
			return err
		}
		t.event.Add("name", name)
		return t.revoke(ctx, s.ending(r))
	})
}

// flag writes a bool as its column.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// flagOf writes a bool that may be nil.
func flagOf(b *bool) *int64 {
	if b == nil {
		return nil
	}
	n := flag(*b)
	return &n
}

// oneRow makes problem.NotFound of a statement that changed nothing.
func oneRow(res sql.Result, err error, thing string) error {
	if err != nil {
		return fmt.Errorf("changing %s: %w", thing, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("changing %s: %w", thing, err)
	}
	if n == 0 {
		return problem.NoSuch(thing)
	}
	return nil
}
