package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Clients holds the OAuth clients of projects.
type Clients struct{ *core }

var (
	_ idp.ClientStore       = (*Store)(nil)
	_ idp.RegistrationStore = (*Store)(nil)
	_ idp.LoginStore        = (*Store)(nil)
	_ idp.GrantStore        = (*Store)(nil)
	_ idp.ConsentStore      = (*Store)(nil)
	_ idp.LetterStore       = (*Store)(nil)
	_ idp.UpstreamStore     = (*Store)(nil)
)

var clientTable = table[idp.Client]{
	name:  "clients",
	thing: "client",
	columns: `id, project_id, name, type, profile, auth_method, secret_hash, first_party, pkce_optional,
	redirect_uris, logout_uris, grants, scopes, access_token, id_token_alg, metadata, created, updated,
	secret_made, old_secret_hash, old_secret_until, old_secret_used, logo, dark_logo, registered_by, registration_hash`,
	fields: func(c *idp.Client) []any {
		return []any{&c.ID, &c.ProjectID, &c.Name, &c.Type, &c.Profile, &c.AuthMethod, &c.SecretHash, &c.FirstParty,
			&c.PKCEOptional, (*array)(&c.RedirectURIs), (*array)(&c.LogoutURIs), &c.Grants, &c.Scopes, &c.AccessToken,
			&c.IDTokenAlg, asJSON{v: &c.Metadata}, &c.Created, &c.Updated,
			&c.SecretMade, &c.Old.Hash, &c.Old.Until, &c.Old.Used, &c.Logo, &c.DarkLogo,
			&c.RegisteredBy, &c.RegistrationHash}
	},
}

// An array is a slice of strings that is stored as a JSON array.
type array []string

func (a *array) Scan(src any) error { return asJSON{v: (*[]string)(a)}.Scan(src) }

// value never returns null, which a nil slice would become.
func (a *array) value() (any, error) { return jsonText(append([]string{}, *a...)) }

// CreateClient inserts a client.
func (s *Clients) CreateClient(ctx context.Context, c idp.Client) error {
	c.SecretMade, c.Old = time.Time{}, idp.Client{}.Old
	c.Logo, c.DarkLogo = "", ""
	c.RegisteredBy, c.RegistrationHash = "", ""
	return s.change(ctx, clientEvent("client.created", c), func(t tx) error {
		err := clientTable.insertNew(ctx, t, &c, "project", problem.Taken("client_id", "another client has this id"))
		if err != nil {
			return err
		}
		return t.receiveLogouts(ctx, c)
	})
}

// FindClient finds a client by its id, in any project.
func (s *Clients) FindClient(ctx context.Context, id string) (idp.Client, error) {
	return clientTable.find(ctx, s.read(), `id = $1`, id)
}

// FindApplication finds a client in a project, in the form that package fabric uses.
func (s *Clients) FindApplication(ctx context.Context, projectID, id string) (a fabric.Application, err error) {
	err = s.read().Row(ctx, `SELECT id, name, scopes FROM clients WHERE id = $2 AND project_id = $1`,
		projectID, id).Scan(&a.ID, &a.Name, scanTarget(&a.Scopes))
	return a, checkRow(err, "application")
}

// ListClients returns a page of a project's clients that match a filter, in the order of creation.
func (s *Clients) ListClients(
	ctx context.Context, projectID string, f idp.ClientFilter, q page.Query,
) (page.Page[idp.Client], error) {
	l := clientTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`name || ' ' || id`, f.Text)
	if f.Type != "" {
		l.checks = append(l.checks, check{`type = $%d`, []any{f.Type}})
	}
	return l.page(ctx, s.read(), q)
}

// errClientChanged is the error for a client that another request has changed.
var errClientChanged = problem.New(problem.Conflict, "client_changed",
	"the client was changed or deleted in the meantime")

// ReplaceClient writes the settings of a client and the given logos, unless the client has changed
// after the time since. The event names only what has changed.
func (s *Clients) ReplaceClient(ctx context.Context, c idp.Client, logos brand.Logos, since time.Time) error {
	redirects, redirectsErr := (*array)(&c.RedirectURIs).value()
	logouts, logoutsErr := (*array)(&c.LogoutURIs).value()
	metadata, metadataErr := jsonText(c.Metadata)
	if err := errors.Join(redirectsErr, logoutsErr, metadataErr); err != nil {
		return err
	}

	return s.change(ctx, audit.Of("client.updated", c.ProjectID, "client", c.ID), func(t tx) error {
		was, err := clientTable.find(ctx, t, `id = $1`, c.ID)
		if err != nil {
			return conflictIfMissing(errClientChanged, err)
		}
		res, err := t.Exec(ctx, `UPDATE clients SET name = $2, profile = $3, auth_method = $4, first_party = $5,
				pkce_optional = $6, redirect_uris = $7, logout_uris = $8, grants = $9, scopes = $10,
				access_token = $11, id_token_alg = $12, metadata = $13, updated = $14,
				type = $16
			WHERE id = $1 AND updated = $15`,
			c.ID, c.Name, c.Profile, c.AuthMethod, flag(c.FirstParty), flag(c.PKCEOptional), redirects, logouts,
			strings.Join(c.Grants, " "), strings.Join(c.Scopes, " "), c.AccessToken, c.IDTokenAlg, metadata,
			micros(c.Updated), micros(since), c.Type)
		if err := requireRowOr(errClientChanged, res, err, "client"); err != nil {
			return err
		}
		if err := t.setLogos(ctx, c.ProjectID, &c.ID, logos); err != nil {
			return err
		}

		now := c
		for theme, l := range logos {
			if theme == brand.Dark {
				now.DarkLogo = l.Name
			} else {
				now.Logo = l.Name
			}
		}
		if err := t.noteChanges(was, now); err != nil {
			return err
		}
		return t.receiveLogouts(ctx, c)
	})
}

// SetClientSecret replaces the secret of a client, if the hash of the stored secret equals old and
// the caller has not lost rights since they were read.
func (s *Clients) SetClientSecret(ctx context.Context, c idp.Client, old string, by *fabric.Rights) error {
	e := audit.Of("client.secret_rotated", c.ProjectID, "client", c.ID).With(
		"name", c.Name, "old_until", date(c.Old.Until))
	return s.change(ctx, e, func(t tx) error {
		if err := t.requireRights(ctx, by, s.now()); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `UPDATE clients SET secret_hash = $3, secret_made = $4, old_secret_hash = $5,
				old_secret_until = $6, old_secret_used = 0, updated = $4
			WHERE id = $1 AND secret_hash = $2`,
			c.ID, old, c.SecretHash, micros(c.SecretMade), c.Old.Hash, micros(c.Old.Until))
		return requireRowOr(problem.New(problem.Conflict, "secret_changed",
			"the client was deleted or its secret was rotated in the meantime"), res, err, "client")
	})
}

// EndOldSecret makes a client's previous secret invalid. If this secret does not have the given
// hash, or is no longer valid, the error is problem.Conflict.
func (s *Clients) EndOldSecret(ctx context.Context, id, hash string, now time.Time) error {
	return s.once(ctx, audit.Of("client.old_secret_ended", "", "client", id), func(t tx) error {
		var name string
		err := t.Row(ctx, `UPDATE clients
			SET old_secret_hash = '', old_secret_until = 0, old_secret_used = 0, updated = $2
			WHERE id = $1 AND old_secret_hash = $3 AND old_secret_hash <> '' AND old_secret_until > $2
			RETURNING project_id, name`, id, micros(now), hash).Scan(&t.event.ProjectID, &name)
		if errors.Is(err, sql.ErrNoRows) {
			return problem.New(problem.Conflict, "no_old_secret", "the client has no old secret that is still valid")
		}
		if err = checkRow(err, "client"); err != nil {
			return err
		}
		t.event.Add("name", name)
		return nil
	})
}

// TouchOldSecret records that a previous secret was used.
func (s *Clients) TouchOldSecret(ctx context.Context, id, hash string, at time.Time) error {
	return s.once(ctx, audit.None("only records the last use; grants nothing"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE clients SET old_secret_used = $3
			WHERE id = $1 AND old_secret_hash = $2 AND old_secret_used < $3`, id, hash, micros(at))
		if err != nil {
			return fmt.Errorf("touching old secret: %w", err)
		}
		return nil
	})
}

// SetClientLogos sets logos of a client.
func (s *Clients) SetClientLogos(ctx context.Context, id string, logos brand.Logos, at time.Time) error {
	return s.change(ctx, audit.Of("client.updated", "", "client", id), func(t tx) error {
		var name string
		err := t.Row(ctx, `UPDATE clients SET updated = $2 WHERE id = $1 RETURNING project_id, name`,
			id, micros(at)).Scan(&t.event.ProjectID, &name)
		if err = checkRow(err, "client"); err != nil {
			return err
		}
		t.event.Add("name", name)
		for theme, logo := range logos {
			t.event.Add(theme.Param(), cmp.Or(logo.Name, "none"))
		}
		return t.setLogos(ctx, t.event.ProjectID, &id, logos)
	})
}

// DeleteClient deletes the client with the id r.ID, along with its grants and consents, and revokes its
// tokens. If the client has very many grants or consents, DeleteClient first revokes the tokens, and deletes
// most rows in short transactions. It does so even if ctx is done, for at most deleteFor. If it is
// interrupted during this time, it can be repeated.
func (s *Clients) DeleteClient(ctx context.Context, r revocation.Revocation) error {
	many, err := s.hasManyRows(ctx, r.ID)
	if err != nil {
		return err
	}
	if !many {
		return s.deleteClient(ctx, r)
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteFor)
	defer cancel()
	if err := s.emptyClient(ctx, r); err != nil {
		return err
	}
	return s.deleteClient(ctx, r)
}

// clientTables are the tables that may have very many rows of a client, with their primary keys.
var clientTables = []struct{ table, key string }{
	{"grants", "id"},
	{"consents", "subscriber_id, client_id"},
}

// hasManyRows reports whether a client has more than sweepBatch rows in one of clientTables.
func (s *Clients) hasManyRows(ctx context.Context, clientID string) (bool, error) {
	for _, rows := range clientTables {
		many, err := s.hasMoreThanBatch(ctx, rows.table, clientID)
		if many || err != nil {
			return many, err
		}
	}
	return false, nil
}

// hasMoreThanBatch reports whether a client has more than sweepBatch rows in a table.
func (s *Clients) hasMoreThanBatch(ctx context.Context, table, clientID string) (bool, error) {
	var n int
	err := s.read().Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM `+table+`
		WHERE client_id = $1 LIMIT $2) AS entries`, clientID, sweepBatch+1).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("counting %s of a client: %w", table, err)
	}
	return n > sweepBatch, nil
}

// deleteClient is like DeleteClient, in a single transaction.
func (s *Clients) deleteClient(ctx context.Context, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("client.deleted", "", "client", r.ID), func(t tx) error {
		var name string
		err := t.Row(ctx, `DELETE FROM clients WHERE id = $1 RETURNING project_id, name`, r.ID).Scan(
			&t.event.ProjectID, &name)
		if err = checkRow(err, "client"); err != nil {
			return err
		}
		t.event.Add("name", name)
		return t.revoke(ctx, s.ending(r))
	})
}

// emptyClient revokes all earlier tokens of the client, and those that are issued within deleteFor.
// Then it deletes most grants and consents of the client.
func (s *Clients) emptyClient(ctx context.Context, r revocation.Revocation) error {
	err := s.change(ctx, audit.Of("client.deletion_begun", "", "client", r.ID), func(t tx) error {
		var name string
		err := t.Row(ctx, `SELECT project_id, name FROM clients WHERE id = $1`, r.ID).Scan(
			&t.event.ProjectID, &name)
		if err = checkRow(err, "client"); err != nil {
			return err
		}
		t.event.Add("name", name)

		begun := r
		begun.Until = s.now().Add(deleteFor) // the client must be usable again if its deletion fails
		return t.revoke(ctx, s.ending(begun))
	})
	if err != nil {
		return err
	}

	for _, rows := range clientTables {
		if err := s.deleteMost(ctx, rows.table, rows.key, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// deleteMost deletes rows of a client from a table with the given primary key, until at most sweepBatch
// are left.
func (s *Clients) deleteMost(ctx context.Context, table, key, clientID string) error {
	for {
		many, err := s.hasMoreThanBatch(ctx, table, clientID)
		if !many || err != nil {
			return err
		}

		err = s.once(ctx, audit.None("rows of a client that is being deleted"), func(t tx) error {
			_, err := t.Exec(ctx, `DELETE FROM `+table+` WHERE (`+key+`) IN (
				SELECT `+key+` FROM `+table+` WHERE client_id = $1 LIMIT $2)`, clientID, sweepBatch)
			return err
		})
		if err != nil {
			return fmt.Errorf("deleting %s of a client: %w", table, err)
		}
	}
}
