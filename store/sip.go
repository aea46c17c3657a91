package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

var sipAddressTable = table[fabric.SIPAddress]{
	name:    "sip_addresses",
	thing:   "SIP address",
	columns: `id, project_id, resource_id, fields, secrets, created, updated`,
	fields: func(a *fabric.SIPAddress) []any {
		return []any{&a.ID, &a.ProjectID, &a.ResourceID, asJSON{v: &a.Fields}, &a.Secrets, &a.Created, &a.Updated}
	},
}

func nameTaken() error { return problem.Taken("name", "Name has already been taken") }

// CreateSIPAddress inserts a SIP address, unless another one has the same name and user. If the
// resource that handles its calls does not exist, the error is [problem.NotFound].
func (s *Resources) CreateSIPAddress(ctx context.Context, a fabric.SIPAddress) error {
	fields, err := jsonText(a.Fields)
	if err != nil {
		return err
	}

	e := audit.Of("sip_address.created", a.ProjectID, "sip_address", a.ID).With("name", a.Name())
	return s.change(ctx, e, func(t tx) error {
		if err := t.lock(ctx, a.ProjectID, a.ResourceID); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `INSERT INTO sip_addresses (`+sipAddressTable.columns+`, name, "user")
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
			a.ID, a.ProjectID, a.ResourceID, fields, a.Secrets, micros(a.Created), micros(a.Updated),
			a.Name(), a.User())
		return requireInserted(res, err, "SIP address", nameTaken())
	})
}

// FindSIPAddress finds a SIP address by its project and id.
func (s *Resources) FindSIPAddress(ctx context.Context, projectID, id string) (fabric.SIPAddress, error) {
	return sipAddressTable.find(ctx, s.read(), `id = $2 AND project_id = $1`, projectID, id)
}

// FindSIPAddressByName finds a SIP address of any project by its name and user.
func (s *Resources) FindSIPAddressByName(ctx context.Context, name, user string) (fabric.SIPAddress, error) {
	return sipAddressTable.find(ctx, s.read(), `name = $1 AND "user" = $2`, name, user)
}

// ListSIPAddresses returns a page of a project's SIP addresses.
func (s *Resources) ListSIPAddresses(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[fabric.SIPAddress], error) {
	l := sipAddressTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// UpdateSIPAddress writes a SIP address, unless it has changed since the caller read it. old is the
// time of the last change that the caller has seen. If the resource that handles its calls does not
// exist, the error is [problem.NotFound].
func (s *Resources) UpdateSIPAddress(ctx context.Context, a fabric.SIPAddress, old time.Time) error {
	fields, err := jsonText(a.Fields)
	if err != nil {
		return err
	}

	e := audit.Of("sip_address.updated", a.ProjectID, "sip_address", a.ID).With("name", a.Name())
	return s.change(ctx, e, func(t tx) error {
		if err := t.lock(ctx, a.ProjectID, a.ResourceID); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `UPDATE sip_addresses
				SET resource_id = $3, fields = $4, secrets = $5, updated = $6, name = $7, "user" = $8
				WHERE id = $1 AND updated = $2`,
			a.ID, micros(old), a.ResourceID, fields, a.Secrets, micros(a.Updated), a.Name(), a.User())
		if isUnique(err) {
			return nameTaken()
		}
		return requireUnchanged(res, err, "SIP address")
	})
}

// DeleteSIPAddress deletes a SIP address.
func (s *Resources) DeleteSIPAddress(ctx context.Context, projectID, id string) error {
	return s.once(ctx, audit.Of("sip_address.deleted", projectID, "sip_address", id), func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM sip_addresses WHERE id = $2 AND project_id = $1`, projectID, id)
		return requireRow(res, err, "SIP address")
	})
}

var sipCredentialTable = table[fabric.SIPCredential]{
	name:    "sip_credentials",
	thing:   "SIP credentials",
	columns: `id, project_id, subscriber_id, fields, secrets, created, updated`,
	fields: func(c *fabric.SIPCredential) []any {
		return []any{&c.ID, &c.ProjectID, &c.SubscriberID, asJSON{v: &c.Fields}, &c.Secrets, &c.Created, &c.Updated}
	},
}

func usernameTaken() error { return problem.Taken("username", "Username has already been taken") }

// CreateSIPCredential inserts credentials, unless other credentials have the same username.
func (s *Resources) CreateSIPCredential(ctx context.Context, c fabric.SIPCredential) error {
	fields, err := jsonText(c.Fields)
	if err != nil {
		return err
	}
	e := audit.Of("sip_credential.created", c.ProjectID, "sip_credential", c.ID).With("subscriber", c.SubscriberID)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO sip_credentials (`+sipCredentialTable.columns+`, username)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
			c.ID, c.ProjectID, c.SubscriberID, fields, c.Secrets, micros(c.Created), micros(c.Updated), c.Username())
		if isForeignKey(err) {
			return problem.NoSuch("subscriber")
		}
		return requireInserted(res, err, "SIP credentials", usernameTaken())
	})
}

// FindSIPCredential finds credentials by their subscriber and id.
func (s *Resources) FindSIPCredential(
	ctx context.Context, projectID, subscriberID, id string,
) (fabric.SIPCredential, error) {
	return sipCredentialTable.find(ctx, s.read(), `id = $3 AND project_id = $1 AND subscriber_id = $2`,
		projectID, subscriberID, id)
}

// ListSIPCredentials returns a page of a subscriber's credentials.
func (s *Resources) ListSIPCredentials(
	ctx context.Context, subscriberID string, q page.Query,
) (page.Page[fabric.SIPCredential], error) {
	l := sipCredentialTable.listing(q.From)
	l.where.and(`subscriber_id = $%d`, subscriberID)
	return l.page(ctx, s.read(), q)
}

// NamedSIPCredentials returns at most limit credentials with the given username, from all projects and
// oldest first.
func (s *Resources) NamedSIPCredentials(
	ctx context.Context, username string, limit int,
) ([]fabric.SIPCredential, error) {
	return sipCredentialTable.gather(ctx, s.read(), `WHERE username = $1 ORDER BY id LIMIT $2`, username, limit)
}

// UpdateSIPCredential writes credentials, unless they have changed since the caller read them. old
// is the time of the last change that the caller has seen. end is the revocation that ends the calls of
// phones with an earlier password. If it is the zero value, no calls end.
func (s *Resources) UpdateSIPCredential(
	ctx context.Context, c fabric.SIPCredential, old time.Time, end revocation.Revocation,
) error {
	fields, err := jsonText(c.Fields)
	if err != nil {
		return err
	}

	e := audit.Of("sip_credential.updated", c.ProjectID, "sip_credential", c.ID).With("subscriber", c.SubscriberID)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE sip_credentials SET fields = $3, secrets = $4, updated = $5, username = $6
			WHERE id = $1 AND updated = $2`, c.ID, micros(old), fields, c.Secrets, micros(c.Updated), c.Username())
		if isUnique(err) {
			return usernameTaken()
		}
		if err := requireUnchanged(res, err, "SIP credentials"); err != nil {
			return err
		}
		if end.ID == "" {
			return nil
		}
		return t.revoke(ctx, s.ending(end))
	})
}

// DeleteSIPCredential deletes the credentials with the id end.ID, and ends the calls of their
// phones.
func (s *Resources) DeleteSIPCredential(ctx context.Context, subscriberID string, end revocation.Revocation) error {
	e := audit.Of("sip_credential.deleted", "", "sip_credential", end.ID).With("subscriber", subscriberID)
	return s.once(ctx, e, func(t tx) error {
		err := t.Row(ctx, `DELETE FROM sip_credentials WHERE id = $2 AND subscriber_id = $1 RETURNING project_id`,
			subscriberID, end.ID).Scan(&t.event.ProjectID)
		if err = checkRow(err, "SIP credentials"); err != nil {
			return err
		}
		return t.revoke(ctx, s.ending(end))
	})
}

// PutPhoneRoute sets the resource that handles the calls or messages to a number. If the resource
// does not exist, the error is [problem.NotFound].
func (s *Resources) PutPhoneRoute(ctx context.Context, r fabric.PhoneRoute) error {
	e := audit.Of("phone_route.assigned", r.ProjectID, "phone_route", r.ID).With(
		"handler", r.Handler, "resource", r.ResourceID)
	return s.change(ctx, e, func(t tx) error {
		if err := t.lock(ctx, r.ProjectID, r.ResourceID); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `INSERT INTO phone_routes (id, project_id, handler, resource_id, assigned)
				VALUES ($1, $2, $3, $4, $5) ON CONFLICT (project_id, id, handler)
				DO UPDATE SET resource_id = excluded.resource_id, assigned = excluded.assigned`,
			r.ID, r.ProjectID, r.Handler, r.ResourceID, micros(r.Assigned))
		if err != nil {
			return fmt.Errorf("assigning phone route: %w", err)
		}
		return nil
	})
}
