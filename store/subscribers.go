package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Subscribers holds subscribers and their devices.
type Subscribers struct{ *core }

const subscriberColumns = `id, project_id, COALESCE(email, ''), COALESCE(reference, ''), password_hash, first_name, last_name, display_name,
	job_title, time_zone, country, company_name, region, claims, email_verified, disabled, epoch, created, updated`

func scanSubscriber(row scanner, more ...any) (s fabric.Subscriber, err error) {
	var claims string
	var created, updated int64
	err = row.Scan(append([]any{
		&s.ID, &s.ProjectID, &s.Email, &s.Reference, &s.PasswordHash, &s.FirstName, &s.LastName, &s.DisplayName,
		&s.JobTitle, &s.TimeZone, &s.Country, &s.CompanyName, &s.Region, &claims, &s.Verified, &s.Disabled,
		&s.Epoch, &created, &updated,
	}, more...)...)
	if err == nil && claims != noClaims {
		err = json.Unmarshal([]byte(claims), &s.Claims)
	}
	s.Created, s.Updated = moment(created), moment(updated)
	return s, found(err, "subscriber")
}

// noClaims is what most subscribers have.
const noClaims = "{}"

// CreateSubscriber inserts a subscriber and its address. The unique indexes
// decide which of many callers succeeds. A link by which it is made is used up.
func (s *Subscribers) CreateSubscriber(ctx context.Context, sub fabric.Subscriber, a fabric.Address, by ...fabric.Proof) error {
	claims, err := json.Marshal(sub.Claims)
	if err != nil {
		return fmt.Errorf("writing claims: %w", err)
	}
	return s.change(ctx, audit.Of("subscriber.created", sub.ProjectID, "subscriber", sub.ID), func(t tx) error {
		for _, p := range by {
			t.event.Add("link", p.Purpose)
			if err := t.useLink(ctx, "", p, s.now()); err != nil {
				return err
			}
		}
		var webhooks int
		err := t.Row(ctx, `INSERT INTO subscribers (id, project_id, email, reference, password_hash, first_name, last_name, display_name,
			job_title, time_zone, country, company_name, region, claims, email_verified, disabled, created, updated)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) ON CONFLICT DO NOTHING RETURNING `+webhooksOf("subscribers"),
			sub.ID, sub.ProjectID, null(sub.Email), null(sub.Reference), sub.PasswordHash, sub.FirstName,
			sub.LastName, sub.DisplayName,
			sub.JobTitle, sub.TimeZone, sub.Country, sub.CompanyName, sub.Region, string(claims),
			flag(sub.Verified), flag(sub.Disabled), micros(sub.Created), micros(sub.Updated)).Scan(&webhooks)
		if err := told(err, "subscriber", emailTaken()); err != nil {
			return err
		}
		if err := t.insertAddress(ctx, a, sub.Disabled); err != nil {
			return err
		}
		return tellAny(ctx, t, webhooks, sub, func(sub fabric.Subscriber) (fabric.Event, error) {
			return fabric.SubscriberEvent(fabric.SubscriberCreated, sub, sub.Created)
		})
	})
}

func emailTaken() error { return problem.Taken("email", "Email has already been taken") }

// inserted returns the conflict if an ON CONFLICT DO NOTHING did nothing.
func inserted(res sql.Result, err error, thing string, conflict error) error {
	if err == nil {
		var n int64
		if n, err = res.RowsAffected(); err == nil && n == 0 {
			return conflict
		}
	}
	if err != nil {
		return fmt.Errorf("inserting %s: %w", thing, err)
	}
	return nil
}

// FindSubscriber finds a subscriber by its id.
func (s *Subscribers) FindSubscriber(ctx context.Context, projectID, id string) (fabric.Subscriber, error) {
	return scanSubscriber(s.read().Row(ctx,
		`SELECT `+subscriberColumns+` FROM subscribers WHERE id = $2 AND project_id = $1`, projectID, id))
}

// FindSubscriberByEmail finds a subscriber by its normalized e-mail.
func (s *Subscribers) FindSubscriberByEmail(ctx context.Context, projectID, email string) (fabric.Subscriber, error) {
	return scanSubscriber(s.read().Row(ctx,
		`SELECT `+subscriberColumns+` FROM subscribers WHERE project_id = $1 AND email = $2`, projectID, email))
}

// FindSubscriberByReference finds a subscriber by its reference.
func (s *Subscribers) FindSubscriberByReference(ctx context.Context, projectID, reference string) (fabric.Subscriber, error) {
	return scanSubscriber(s.read().Row(ctx,
		`SELECT `+subscriberColumns+` FROM subscribers WHERE project_id = $1 AND reference = $2`, projectID, reference))
}

// ListSubscribers returns a page of a project's subscribers.
func (s *Subscribers) ListSubscribers(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.Subscriber], error) {
	l := listing[fabric.Subscriber]{
		thing: "subscribers", columns: subscriberColumns, from: "subscribers", key: []string{"id"},
		start: startAt(q.From),
		scan:  func(row scanner) (fabric.Subscriber, error) { return scanSubscriber(row) },
		id:    func(s fabric.Subscriber) string { return s.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// RehashPassword replaces the hash of a password by another of the same, if it is still
// old.
func (s *Subscribers) RehashPassword(ctx context.Context, projectID, subscriberID, old, new string) error {
	return s.once(ctx, audit.Of("subscriber.rehashed", projectID, "subscriber", subscriberID), func(t tx) error {
		var id string
		err := t.Row(ctx, `UPDATE subscribers SET password_hash = $4 WHERE id = $2 AND project_id = $1 AND password_hash = $3 RETURNING id`,
			projectID, subscriberID, old, new).Scan(&id)
		return found(err, "subscriber")
	})
}

// UpdateSubscriber writes what is not nil, and in its addresses what they say of it. The
// change counts from when it may write, which it may have had to wait for: logins
// that began meanwhile are concerned too.
func (s *Subscribers) UpdateSubscriber(ctx context.Context, projectID, id string, c fabric.SubscriberChange, at time.Time, r *revocation.Revocation) (sub fabric.Subscriber, err error) {
	err = s.change(ctx, subscriberChange(projectID, id, c, r != nil), func(t tx) error {
		if r != nil || c.Proof != nil {
			if _, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE id = $2 AND project_id = $1`, projectID, id); err != nil {
				return fmt.Errorf("locking subscriber: %w", err)
			}
		}
		at := later(at, s.now())
		if c.Proof != nil {
			t.event.Add("link", c.Proof.Purpose)
			if err := t.useLink(ctx, id, *c.Proof, s.now()); err != nil {
				return err
			}
		}
		var webhooks int
		if sub, webhooks, err = t.updateSubscriber(ctx, projectID, id, c, at); err != nil {
			return err
		}
		err := t.Later(ctx, `UPDATE addresses SET display_name = COALESCE(NULLIF($2, ''), name), hidden = $3 WHERE resource_id = $1`, id, sub.FullName(), flag(sub.Disabled))
		if err != nil {
			return fmt.Errorf("changing addresses: %w", err)
		}
		if c.PasswordHash != nil || c.Email != nil {
			if err := t.endLinks(ctx, id); err != nil {
				return err
			}
		}
		if err := t.queueLetters(ctx, c.Letters...); err != nil {
			return err
		}
		err = tellAny(ctx, t, webhooks, sub, func(sub fabric.Subscriber) (fabric.Event, error) {
			return fabric.SubscriberEvent(fabric.SubscriberUpdated, sub, at)
		})
		if err != nil || r == nil {
			return err
		}
		end := *r
		end.Until = later(end.Until, at)
		return errors.Join(t.endLogins(ctx, id, at), t.revoke(ctx, end))
	})
	return sub, err
}

func (t tx) updateSubscriber(ctx context.Context, projectID, id string, c fabric.SubscriberChange, at time.Time) (sub fabric.Subscriber, webhooks int, err error) {
	var claims *string
	if c.Claims != nil {
		raw, err := json.Marshal(*c.Claims)
		if err != nil {
			return sub, 0, fmt.Errorf("writing claims: %w", err)
		}
		text := string(raw)
		claims = &text
	}
	sub, err = scanSubscriber(t.Row(ctx, `UPDATE subscribers SET
			email = COALESCE($3, email), password_hash = COALESCE($4, password_hash), disabled = COALESCE($5, disabled),
			first_name = COALESCE($6, first_name), last_name = COALESCE($7, last_name), display_name = COALESCE($8, display_name),
			job_title = COALESCE($9, job_title), time_zone = COALESCE($10, time_zone), country = COALESCE($11, country),
			company_name = COALESCE($12, company_name), region = COALESCE($13, region), updated = $14,
			claims = COALESCE($15, claims),
			email_verified = COALESCE($16, CASE WHEN COALESCE($3, email) = email THEN email_verified ELSE 0 END),
			epoch = epoch + $17
		WHERE id = $2 AND project_id = $1 RETURNING `+subscriberColumns+`, `+webhooksOf("subscribers"),
		projectID, id, c.Email, c.PasswordHash, flagOf(c.Disabled), c.FirstName, c.LastName, c.DisplayName,
		c.JobTitle, c.TimeZone, c.Country, c.CompanyName, c.Region, micros(at), claims, flagOf(c.Verified),
		flag(c.Begins())), &webhooks)
	if isUnique(err) {
		err = emailTaken()
	}
	return sub, webhooks, err
}

// endLogins ends the logins, OAuth grants and refresh tokens of a subscriber, and tells
// the clients of those logins.
func (t tx) endLogins(ctx context.Context, subscriberID string, at time.Time) error {
	if err := t.Later(ctx, `UPDATE login_sessions SET ended = $2 WHERE subscriber_id = $1 AND ended = 0`, subscriberID, micros(at)); err != nil {
		return fmt.Errorf("ending logins: %w", err)
	}
	if err := t.Later(ctx, `UPDATE grants SET revoked = $2 WHERE subscriber_id = $1 AND revoked = 0`, subscriberID, micros(at)); err != nil {
		return fmt.Errorf("revoking grants: %w", err)
	}
	return errors.Join(t.tellLogouts(ctx, "subscriber_id", subscriberID, at), t.endFamilies(ctx, subscriberID))
}

// DeleteSubscriber deletes the subscriber that a revocation names, with its
// addresses; its logins and grants go with it.
func (s *Subscribers) DeleteSubscriber(ctx context.Context, projectID string, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("subscriber.deleted", projectID, "subscriber", r.ID), func(t tx) error {
		return s.deleteSubscriber(ctx, t, projectID, r, false)
	})
}

// deleteSubscriber does so in a transaction. Webhooks are told who it was, or with
// nameless its id alone.
func (s *core) deleteSubscriber(ctx context.Context, t tx, projectID string, r revocation.Revocation, nameless bool) error {
	var webhooks int
	sub, err := scanSubscriber(t.Row(ctx, `UPDATE subscribers SET updated = updated WHERE id = $2 AND project_id = $1
		RETURNING `+subscriberColumns+`, `+webhooksOf("subscribers"), projectID, r.ID), &webhooks)
	if err != nil {
		return err
	}
	// Who redeems a code of it waits here for us, or we for them, so that no grant is
	// made whose client would not be told: PostgreSQL has those who refer to a row wait
	// for a change of its keys, and for no other.
	if err := t.Later(ctx, `UPDATE subscribers SET email = id WHERE id = $1`, r.ID); err != nil {
		return fmt.Errorf("locking subscriber: %w", err)
	}
	if err := t.endLogins(ctx, r.ID, s.now()); err != nil {
		return err
	}
	if err := t.Later(ctx, `DELETE FROM subscribers WHERE id = $1`, r.ID); err != nil {
		return fmt.Errorf("deleting subscriber: %w", err)
	}
	if err := t.deleteFactors(ctx, factor.Subscriber, "= $1", r.ID); err != nil {
		return err
	}
	for _, table := range []string{"phone_routes", "sip_addresses"} { // what led to it leads nowhere
		if err := t.Later(ctx, `DELETE FROM `+table+` WHERE resource_id = $1`, r.ID); err != nil {
			return fmt.Errorf("deleting from %s: %w", table, err)
		}
	}
	if err := t.Later(ctx, `DELETE FROM addresses WHERE resource_id = $1`, r.ID); err != nil {
		return fmt.Errorf("deleting addresses: %w", err)
	}
	if err := t.Later(ctx, `DELETE FROM mails WHERE subscriber_id = $1 OR recipient = $2 AND project_id = $3`, r.ID, sub.Email, sub.ProjectID); err != nil {
		return fmt.Errorf("deleting mails: %w", err)
	}
	if nameless {
		sub = fabric.Subscriber{ID: sub.ID, ProjectID: sub.ProjectID, Created: sub.Created, Updated: sub.Updated}
	}
	end := s.ending(r)
	err = tellAny(ctx, t, webhooks, sub, func(sub fabric.Subscriber) (fabric.Event, error) {
		return fabric.SubscriberEvent(fabric.SubscriberDeleted, sub, s.now())
	})
	if err != nil {
		return err
	}
	return t.revoke(ctx, end)
}
