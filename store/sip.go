package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

const sipAddressColumns = `id, project_id, resource_id, fields, secrets, created, updated`

func scanSIPAddress(row scanner) (a fabric.SIPAddress, err error) {
	var fields []byte
	var created, updated int64
	if err = row.Scan(&a.ID, &a.ProjectID, &a.ResourceID, &fields, &a.Secrets, &created, &updated); err != nil {
		return a, found(err, "SIP address")
	}
	a.Created, a.Updated = moment(created), moment(updated)
	return a, read(fields, &a.Fields)
}

// read reads the members of a row that are JSON.
func read(fields []byte, into any) error {
	if err := json.Unmarshal(fields, into); err != nil {
		return fmt.Errorf("reading fields: %w", err)
	}
	return nil
}

// written writes members for a row.
func written(fields any) (string, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("writing fields: %w", err)
	}
	return string(raw), nil
}

func nameTaken() error { return problem.Taken("name", "Name has already been taken") }

// CreateSIPAddress inserts a SIP address, whose name and user the unique index
// finds free. What takes its calls must be there, else it is a [problem.NotFound].
func (s *Resources) CreateSIPAddress(ctx context.Context, a fabric.SIPAddress) error {
	fields, err := written(a.Fields)
	if err != nil {
		return err
	}
	return s.change(ctx, audit.Of("sip_address.created", a.ProjectID, "sip_address", a.ID).With("name",
		a.Name()), func(t tx) error {
		if err := t.hold(ctx, a.ProjectID, a.ResourceID); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `INSERT INTO sip_addresses (`+
			sipAddressColumns+`, name, "user") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
			a.ID, a.ProjectID, a.ResourceID, fields, a.Secrets, micros(a.Created), micros(a.Updated),
			a.Name(), a.User())
		return inserted(res, err, "SIP address", nameTaken())
	})
}

// FindSIPAddress finds a SIP address of a project.
func (s *Resources) FindSIPAddress(ctx context.Context, projectID, id string) (fabric.SIPAddress, error) {
	return scanSIPAddress(s.read().Row(ctx,
		`SELECT `+sipAddressColumns+` FROM sip_addresses WHERE id = $2 AND project_id = $1`, projectID, id))
}

// ListSIPAddresses returns a page of a project's SIP addresses.
func (s *Resources) ListSIPAddresses(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.SIPAddress], error) {
	l := listing[fabric.SIPAddress]{
		thing: "SIP addresses", columns: sipAddressColumns, from: "sip_addresses", key: []string{"id"},
		start: startAt(q.From),
		scan:  scanSIPAddress, id: func(a fabric.SIPAddress) string { return a.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// UpdateSIPAddress writes a SIP address whose row is still as it was. What takes its
// calls must be there, else it is a [problem.NotFound].
func (s *Resources) UpdateSIPAddress(ctx context.Context, a fabric.SIPAddress, old time.Time) error {
	fields, err := written(a.Fields)
	if err != nil {
		return err
	}
	return s.change(ctx, audit.Of("sip_address.updated", a.ProjectID, "sip_address", a.ID).With("name",
		a.Name()), func(t tx) error {
		if err := t.hold(ctx, a.ProjectID, a.ResourceID); err != nil {
			return err
		}
		res, err := t.Exec(ctx, `UPDATE sip_addresses SET resource_id = $3, fields = $4, secrets = $5, updated = $6, name = $7, "user" = $8 WHERE id = $1 AND updated = $2`,
			a.ID, micros(old), a.ResourceID, fields, a.Secrets, micros(a.Updated), a.Name(), a.User())
		if isUnique(err) {
			return nameTaken()
		}
		return unchanged(res, err, "SIP address")
	})
}

// DeleteSIPAddress deletes a SIP address.
func (s *Resources) DeleteSIPAddress(ctx context.Context, projectID, id string) error {
	return s.once(ctx, audit.Of("sip_address.deleted", projectID, "sip_address", id), func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM sip_addresses WHERE id = $2 AND project_id = $1`, projectID, id)
		return oneRow(res, err, "SIP address")
	})
}

const sipCredentialColumns = `id, project_id, subscriber_id, fields, secrets, created, updated`

func scanSIPCredential(row scanner) (c fabric.SIPCredential, err error) {
	var fields []byte
	var created, updated int64
	if err = row.Scan(&c.ID, &c.ProjectID, &c.SubscriberID, &fields, &c.Secrets, &created, &updated); err != nil {
		return c, found(err, "SIP credentials")
	}
	c.Created, c.Updated = moment(created), moment(updated)
	return c, read(fields, &c.Fields)
}

func usernameTaken() error { return problem.Taken("username", "Username has already been taken") }

// CreateSIPCredential inserts credentials, whose name the unique index finds free.
func (s *Resources) CreateSIPCredential(ctx context.Context, c fabric.SIPCredential) error {
	fields, err := written(c.Fields)
	if err != nil {
		return err
	}
	return s.once(ctx, audit.Of("sip_credential.created", c.ProjectID, "sip_credential", c.ID).With(
		"subscriber", c.SubscriberID), func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO sip_credentials (`+
			sipCredentialColumns+`, username) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
			c.ID, c.ProjectID, c.SubscriberID, fields, c.Secrets, micros(c.Created), micros(c.Updated), c.Username())
		if isForeignKey(err) {
			return problem.NoSuch("subscriber")
		}
		return inserted(res, err, "SIP credentials", usernameTaken())
	})
}

// FindSIPCredential finds credentials of a subscriber.
func (s *Resources) FindSIPCredential(ctx context.Context, projectID, subscriberID, id string) (fabric.SIPCredential, error) {
	return scanSIPCredential(s.read().Row(ctx,
		`SELECT `+sipCredentialColumns+` FROM sip_credentials WHERE id = $3 AND project_id = $1 AND subscriber_id = $2`,
		projectID, subscriberID, id))
}

// ListSIPCredentials returns a page of a subscriber's credentials.
func (s *Resources) ListSIPCredentials(ctx context.Context, subscriberID string, q page.Query) (page.Page[fabric.SIPCredential], error) {
	l := listing[fabric.SIPCredential]{
		thing: "SIP credentials", columns: sipCredentialColumns, from: "sip_credentials", key: []string{"id"},
		start: startAt(q.From),
		scan:  scanSIPCredential, id: func(c fabric.SIPCredential) string { return c.ID },
	}
	l.where.and(`subscriber_id = $%d`, subscriberID)
	return l.page(ctx, s.read(), q)
}

// UpdateSIPCredential writes credentials whose row is still as it was.
func (s *Resources) UpdateSIPCredential(ctx context.Context, c fabric.SIPCredential, old time.Time) error {
	fields, err := written(c.Fields)
	if err != nil {
		return err
	}
	return s.once(ctx, audit.Of("sip_credential.updated", c.ProjectID, "sip_credential", c.ID).With(
		"subscriber", c.SubscriberID), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE sip_credentials SET fields = $3, secrets = $4, updated = $5, username = $6 WHERE id = $1 AND updated = $2`,
			c.ID, micros(old), fields, c.Secrets, micros(c.Updated), c.Username())
		if isUnique(err) {
			return usernameTaken()
		}
		return unchanged(res, err, "SIP credentials")
	})
}

// DeleteSIPCredential deletes credentials of a subscriber.
func (s *Resources) DeleteSIPCredential(ctx context.Context, subscriberID, id string) error {
	return s.once(ctx, audit.Of("sip_credential.deleted", "", "sip_credential", id).With(
		"subscriber", subscriberID), func(t tx) error {
		err := t.Row(ctx, `DELETE FROM sip_credentials WHERE id = $2 AND subscriber_id = $1 RETURNING project_id`, subscriberID, id).Scan(&t.event.ProjectID)
		return found(err, "SIP credentials")
	})
}

// PutPhoneRoute writes which resource takes what comes to a number. It must be there,
// else it is a [problem.NotFound].
func (s *Resources) PutPhoneRoute(ctx context.Context, r fabric.PhoneRoute) error {
	return s.change(ctx, audit.Of("phone_route.assigned", r.ProjectID, "phone_route", r.ID).With(
		"handler", r.Handler, "resource", r.ResourceID), func(t tx) error {
		if err := t.hold(ctx, r.ProjectID, r.ResourceID); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `INSERT INTO phone_routes (id, project_id, handler, resource_id, assigned) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (project_id, id, handler) DO UPDATE SET resource_id = excluded.resource_id, assigned = excluded.assigned`,
			r.ID, r.ProjectID, r.Handler, r.ResourceID, micros(r.Assigned))
		if err != nil {
			return fmt.Errorf("assigning phone route: %w", err)
		}
		return nil
	})
}
