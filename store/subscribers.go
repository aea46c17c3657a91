package store

import (
	"context"
	"fmt"
	"strings"
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

var subscriberTable = table[fabric.Subscriber]{
	name:  "subscribers",
	thing: "subscriber",
	columns: `id, project_id, email, reference, password_hash, claims, email_verified, disabled,
		epoch, created, updated, record_calls, forward_busy, forward_no_answer, ring_seconds` + personColumns(),
	fields: func(s *fabric.Subscriber) []any {
		fields := make([]any, 0, 15+len(fabric.PersonFields))
		fields = append(fields, &s.ID, &s.ProjectID, nullableOf(&s.Email), nullableOf(&s.Reference),
			&s.PasswordHash, asJSON{v: &s.Claims, zero: "{}"}, &s.Verified, &s.Disabled, &s.Epoch,
			&s.Created, &s.Updated, &s.RecordCalls, &s.Forwarding.Busy, &s.Forwarding.NoAnswer,
			&s.Forwarding.RingSeconds)
		for _, f := range fabric.PersonFields {
			fields = append(fields, f.Text(&s.Person))
		}
		return fields
	},
}

// personColumns lists the columns of a [fabric.Person], each after a comma.
func personColumns() string {
	var b strings.Builder
	for _, f := range fabric.PersonFields {
		b.WriteString(", " + f.Name)
	}
	return b.String()
}

// CreateSubscriber inserts a subscriber and its address, and queues the event about it. It deletes the
// links in by, which authorize this change. If several callers insert the same subscriber, the unique
// indexes let only one succeed.
func (s *Subscribers) CreateSubscriber(
	ctx context.Context, sub fabric.Subscriber, a fabric.Address, by ...fabric.Proof,
) error {
	sub.Epoch = 0
	query, args, err := subscriberTable.insertion(&sub)
	if err != nil {
		return err
	}

	return s.change(ctx, audit.Of("subscriber.created", sub.ProjectID, "subscriber", sub.ID), func(t tx) error {
		if sub.RecordCalls != fabric.RecordInherit {
			t.event.Add("record_calls", string(sub.RecordCalls))
		}
		for _, p := range by {
			t.event.Add("link", p.Purpose)
			if err := t.useLink(ctx, "", p, s.now()); err != nil {
				return err
			}
		}

		var webhooks int
		err := t.Row(ctx, query+` ON CONFLICT DO NOTHING RETURNING `+webhooksOf("subscribers"), args...).Scan(&webhooks)
		if err := insertedReturning(err, "subscriber", emailTaken()); err != nil {
			return err
		}
		if err := t.insertAddress(ctx, a, sub.Disabled); err != nil {
			return err
		}
		return t.queueSubscriberEvent(ctx, webhooks, fabric.SubscriberCreated, sub, sub.Created)
	})
}

func emailTaken() error { return problem.Taken("email", "Email has already been taken") }

// queueSubscriberEvent queues an event about a subscriber, if there are webhooks.
func (t tx) queueSubscriberEvent(
	ctx context.Context, webhooks int, name fabric.EventName, sub fabric.Subscriber, at time.Time,
) error {
	return queueEventOf(ctx, t, webhooks, sub, func(sub fabric.Subscriber) (fabric.Event, error) {
		return fabric.SubscriberEvent(name, sub, at)
	})
}

// FindSubscriber finds a subscriber by its id.
func (s *Subscribers) FindSubscriber(ctx context.Context, projectID, id string) (fabric.Subscriber, error) {
	return subscriberTable.find(ctx, s.read(), `id = $2 AND project_id = $1`, projectID, id)
}

// FindSubscriberByEmail finds a subscriber by its normalized email address.
func (s *Subscribers) FindSubscriberByEmail(ctx context.Context, projectID, email string) (fabric.Subscriber, error) {
	return subscriberTable.find(ctx, s.read(), `project_id = $1 AND email = $2`, projectID, email)
}

// FindSubscriberByReference finds a subscriber by its reference.
func (s *Subscribers) FindSubscriberByReference(
	ctx context.Context, projectID, reference string,
) (fabric.Subscriber, error) {
	return subscriberTable.find(ctx, s.read(), `project_id = $1 AND reference = $2`, projectID, reference)
}

// ListSubscribers returns a page of a project's subscribers.
func (s *Subscribers) ListSubscribers(
	ctx context.Context, projectID string, q page.Query,
) (page.Page[fabric.Subscriber], error) {
	l := subscriberTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// RehashPassword replaces the hash of a password with a new hash of the same password, if the
// stored hash equals old.
func (s *Subscribers) RehashPassword(ctx context.Context, projectID, subscriberID, old, new string) error {
	return s.once(ctx, audit.Of("subscriber.rehashed", projectID, "subscriber", subscriberID), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE subscribers SET password_hash = $4
			WHERE id = $2 AND project_id = $1 AND password_hash = $3`, projectID, subscriberID, old, new)
		return requireRow(res, err, "subscriber")
	})
}

// NextImported returns the first password hash after the given text, in byte order, that was imported or
// was made with parameters other than the current ones. It returns "" if there is none. The index
// subscribers_imported has the same condition.
func (s *Subscribers) NextImported(ctx context.Context, after string) (hash string, err error) {
	_, err = s.read().findRow(ctx, "subscriber", `SELECT password_hash FROM subscribers
		WHERE password_hash <> '' AND SUBSTR(password_hash, 1, 31) <> '$argon2id$v=19$m=19456,t=2,p=1$'
			AND password_hash > $1
		ORDER BY password_hash LIMIT 1`, []any{after}, &hash)
	return hash, err
}

// UpdateSubscriber writes the fields that are not nil, updates the subscriber's addresses, and
// queues the letters in c and the event about the change. If r is not nil, it also ends all logins of
// the subscriber and writes the revocation. In this case, it first locks the subscriber, so that it also
// ends logins that begin while it waits for the lock.
func (s *Subscribers) UpdateSubscriber(
	ctx context.Context, projectID, id string, c fabric.SubscriberChange, at time.Time, r *revocation.Revocation,
) (fabric.Subscriber, error) {
	e := subscriberEvent(projectID, id, c, r != nil)
	return resultOf(ctx, s.change, e, func(t tx) (fabric.Subscriber, error) {
		if err := t.requireRights(ctx, c.By, s.now()); err != nil {
			return fabric.Subscriber{}, err
		}
		if err := t.beginUpdate(ctx, projectID, id, c, r != nil, s.now); err != nil {
			return fabric.Subscriber{}, err
		}

		changed := later(at, s.now())
		sub, webhooks, err := t.updateSubscriber(ctx, projectID, id, c, changed)
		if err != nil {
			return sub, err
		}

		err = t.Later(ctx, `UPDATE addresses SET display_name = COALESCE(NULLIF($2, ''), name), hidden = $3
			WHERE resource_id = $1`, id, sub.FullName(), flag(sub.Disabled))
		if err != nil {
			return sub, fmt.Errorf("changing addresses: %w", err)
		}

		// Links that were sent earlier must not give access to an account whose credentials have
		// changed, that is disabled, or that is signed out everywhere.
		if c.PasswordHash != nil || c.Email != nil || r != nil {
			if err := t.endLinks(ctx, sub); err != nil {
				return sub, err
			}
		}
		if err := t.mails().queueLetters(ctx, c.Letters...); err != nil {
			return sub, err
		}
		err = t.queueSubscriberEvent(ctx, webhooks, fabric.SubscriberUpdated, sub, changed)
		if err != nil {
			return sub, err
		}
		if r == nil {
			return sub, nil
		}

		ended := *r
		ended.Until = later(ended.Until, changed)
		return sub, t.endLoginsUntil(ctx, ended, changed)
	})
}

// endLoginsUntil ends all logins, grants and refresh tokens of the subscriber r.ID, and writes the
// revocation. A node whose clock is ahead may have created logins with a time after r.Until. Each of
// these logins gets a revocation of its own.
func (t tx) endLoginsUntil(ctx context.Context, r revocation.Revocation, at time.Time) error {
	ahead, err := gather(ctx, t, "finding logins", scanID, `SELECT id FROM login_sessions
		WHERE subscriber_id = $1 AND ended = 0 AND auth_time > $2`, r.ID, micros(r.Until))
	if err != nil {
		return err
	}
	if err := t.endLogins(ctx, r.ID, at); err != nil {
		return err
	}
	for _, id := range ahead {
		of := revocation.Revocation{Kind: revocation.Session, ID: id, Until: r.Expires, Expires: r.Expires}
		if err := t.revoke(ctx, of); err != nil {
			return err
		}
	}
	return t.revoke(ctx, r)
}

// beginUpdate locks the subscriber if the change ends logins, is authorized by a link, or requires an
// epoch. It checks the epoch, and deletes the link.
func (t tx) beginUpdate(
	ctx context.Context, projectID, id string, c fabric.SubscriberChange, endsLogins bool, now func() time.Time,
) error {
	if !endsLogins && c.Proof == nil && c.Epoch == nil {
		return nil
	}
	_, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE id = $2 AND project_id = $1`, projectID, id)
	if err != nil {
		return fmt.Errorf("locking subscriber: %w", err)
	}
	if err := t.requireEpoch(ctx, id, c.Epoch); err != nil {
		return err
	}
	if c.Proof == nil {
		return nil
	}
	t.event.Add("link", c.Proof.Purpose)
	return t.useLink(ctx, id, *c.Proof, now())
}

// requireEpoch returns problem.Conflict if a locked subscriber is no longer in the given epoch. nil
// means any epoch.
func (t tx) requireEpoch(ctx context.Context, id string, want *int64) error {
	if want == nil {
		return nil
	}
	var epoch int64
	err := t.Row(ctx, `SELECT epoch FROM subscribers WHERE id = $1`, id).Scan(&epoch)
	if err != nil {
		return checkRow(err, "subscriber")
	}
	if epoch != *want {
		return problem.New(problem.Conflict, "password_changed", "the password was changed in the meantime")
	}
	return nil
}

// updateSubscriber is the statement of [tx.updateSubscriber]. Its last parameters are the fields of
// a [fabric.Person].
var updateSubscriber = func() string {
	var person strings.Builder
	for i, f := range fabric.PersonFields {
		fmt.Fprintf(&person, ", %[1]s = COALESCE($%[2]d, %[1]s)", f.Name, 14+i)
	}
	return `UPDATE subscribers SET
			email = COALESCE($3, email), password_hash = COALESCE($4, password_hash),
			disabled = COALESCE($5, disabled), updated = $6, claims = COALESCE($7, claims),
			email_verified = COALESCE($8, CASE WHEN COALESCE($3, email) = email THEN email_verified ELSE 0 END),
			epoch = epoch + $9, record_calls = COALESCE($10, record_calls),
			forward_busy = COALESCE($11, forward_busy), forward_no_answer = COALESCE($12, forward_no_answer),
			ring_seconds = COALESCE($13, ring_seconds)` + person.String() + `
		WHERE id = $2 AND project_id = $1 RETURNING ` + subscriberTable.columns + `, ` + webhooksOf("subscribers")
}()

// updateSubscriber updates a subscriber, and returns it with the number of enabled webhooks of the
// project. A new email address is unverified, unless the change says otherwise.
func (t tx) updateSubscriber(
	ctx context.Context, projectID, id string, c fabric.SubscriberChange, at time.Time,
) (sub fabric.Subscriber, webhooks int, err error) {
	if c.Locale != nil {
		if c.Claims, err = t.claimsWithLocale(ctx, projectID, id, *c.Locale); err != nil {
			return sub, 0, err
		}
	}
	var claims *string
	if c.Claims != nil {
		text, err := jsonText(*c.Claims)
		if err != nil {
			return sub, 0, err
		}
		claims = &text
	}

	args := []any{
		projectID, id, c.Email, c.PasswordHash, flagOf(c.Disabled), micros(at), claims, flagOf(c.Verified),
		flag(c.Begins()), (*string)(c.RecordCalls), c.Forwarding.Busy, c.Forwarding.NoAnswer,
		c.Forwarding.RingSeconds,
	}
	for _, f := range fabric.PersonFields {
		args = append(args, *f.Input(&c.Profile))
	}

	sub, err = subscriberTable.scanWith(t.Row(ctx, updateSubscriber, args...), &webhooks)
	if isUnique(err) {
		err = emailTaken()
	}
	return sub, webhooks, err
}

// claimsWithLocale locks a subscriber, and returns its claims with the given locale.
func (t tx) claimsWithLocale(
	ctx context.Context, projectID, id, locale string,
) (*fabric.StandardClaims, error) {
	var claims fabric.StandardClaims
	err := t.Row(ctx, `UPDATE subscribers SET updated = updated WHERE id = $2 AND project_id = $1
		RETURNING claims`, projectID, id).Scan(asJSON{v: &claims, zero: "{}"})
	if err != nil {
		return nil, checkRow(err, "subscriber")
	}
	claims.Locale = locale
	return &claims, nil
}

// endLogins ends all logins, OAuth grants and refresh tokens of a subscriber, and queues the
// logouts for the logins.
func (t tx) endLogins(ctx context.Context, subscriberID string, at time.Time) error {
	err := t.Later(ctx, `UPDATE login_sessions SET ended = $2 WHERE subscriber_id = $1 AND ended = 0`,
		subscriberID, micros(at))
	if err != nil {
		return fmt.Errorf("ending logins: %w", err)
	}
	err = t.Later(ctx, `UPDATE grants SET revoked = $2 WHERE subscriber_id = $1 AND revoked = 0`,
		subscriberID, micros(at))
	if err != nil {
		return fmt.Errorf("revoking grants: %w", err)
	}
	if err := t.queueLogouts(ctx, "subscriber_id", subscriberID, at); err != nil {
		return err
	}
	return t.endFamilies(ctx, subscriberID)
}

// DeleteSubscriber deletes the subscriber with the id r.ID, along with its addresses, logins and
// grants.
func (s *Subscribers) DeleteSubscriber(ctx context.Context, projectID string, r revocation.Revocation) error {
	return s.change(ctx, audit.Of("subscriber.deleted", projectID, "subscriber", r.ID), func(t tx) error {
		return s.deleteSubscriber(ctx, t, projectID, r, false)
	})
}

// deleteSubscriber deletes a subscriber within a transaction. The webhook event describes the
// subscriber, and its name is kept for readers of the audit trail. If nameless is set, the event
// contains only the id, and no name is kept.
func (c *core) deleteSubscriber(
	ctx context.Context, t tx, projectID string, r revocation.Revocation, nameless bool,
) error {
	var webhooks int
	sub, err := subscriberTable.scanWith(t.Row(ctx, `UPDATE subscribers SET updated = updated
		WHERE id = $2 AND project_id = $1
		RETURNING `+subscriberTable.columns+`, `+webhooksOf("subscribers"), projectID, r.ID), &webhooks)
	if err != nil {
		return err
	}

	// If a code of the subscriber is redeemed concurrently, one of the two changes must wait for
	// the other. Otherwise, a grant could be created whose client is not notified of the logout. In
	// PostgreSQL, inserting a row that references another one waits only for changes to the other
	// row's keys. Therefore, this statement changes a unique column.
	if err := t.Later(ctx, `UPDATE subscribers SET email = id WHERE id = $1`, r.ID); err != nil {
		return fmt.Errorf("locking subscriber: %w", err)
	}

	if err := t.endLogins(ctx, r.ID, c.now()); err != nil {
		return err
	}
	if err := t.deleteRowsOf(ctx, sub); err != nil {
		return err
	}

	ended := c.ending(r)
	if nameless {
		sub = fabric.Subscriber{ID: sub.ID, ProjectID: sub.ProjectID, Created: sub.Created, Updated: sub.Updated}
	} else if err := t.keepName(ctx, sub, c.now()); err != nil {
		return err
	}
	if err := t.queueSubscriberEvent(ctx, webhooks, fabric.SubscriberDeleted, sub, c.now()); err != nil {
		return err
	}
	return t.revoke(ctx, ended)
}

// deleteRowsOf removes a subscriber from its conversations, and deletes its row. It also deletes the rows
// that are not deleted because of a foreign key: factors, routes to the subscriber, addresses and emails.
func (t tx) deleteRowsOf(ctx context.Context, sub fabric.Subscriber) error {
	if err := t.leaveConversations(ctx, sub.ID); err != nil {
		return err
	}
	if err := t.Later(ctx, `DELETE FROM subscribers WHERE id = $1`, sub.ID); err != nil {
		return fmt.Errorf("deleting subscriber: %w", err)
	}

	if err := t.deleteFactors(ctx, factor.Subscriber, "= $1", sub.ID); err != nil {
		return err
	}
	for _, table := range []string{"phone_routes", "sip_addresses", "addresses"} {
		if err := t.Later(ctx, `DELETE FROM `+table+` WHERE resource_id = $1`, sub.ID); err != nil {
			return fmt.Errorf("deleting from %s: %w", table, err)
		}
	}

	err := t.Later(ctx, `DELETE FROM mails WHERE subscriber_id = $1 OR recipient = $2 AND project_id = $3`,
		sub.ID, sub.Email, sub.ProjectID)
	if err != nil {
		return fmt.Errorf("deleting mails: %w", err)
	}
	return nil
}
