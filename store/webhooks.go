package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Webhooks holds webhooks and their deliveries.
type Webhooks struct{ *core }

var webhookTable = table[fabric.Webhook]{
	name:    "webhooks",
	thing:   "webhook",
	columns: `id, project_id, url, name, events, enabled, created, updated, failures, rests`,
	fields: func(w *fabric.Webhook) []any {
		return []any{&w.ID, &w.ProjectID, &w.URL, &w.Name, (*eventNames)(&w.Events), &w.Enabled, &w.Created, &w.Updated,
			&w.Failures, (*rest)(&w.Rests)}
	},
}

// eventNames is a list that is stored with a space at both ends, so that a query can match a name
// together with the spaces around it.
type eventNames []fabric.EventName

func (n *eventNames) Scan(src any) error { return listOf((*[]fabric.EventName)(n)).Scan(src) }

func (n *eventNames) value() (any, error) { return spaced(*n), nil }

func spaced(events []fabric.EventName) string {
	if len(events) == 0 {
		return " "
	}
	return " " + join(events) + " "
}

// A rest is the time until which nothing is sent to a receiver. The stored value may also be the
// constant woken, which is read as the zero time.
type rest time.Time

func (r *rest) Scan(src any) error {
	if us, ok := src.(int64); ok && us < 0 {
		src = int64(0)
	}
	return (*instant)(r).Scan(src)
}

func (r *rest) value() (any, error) { return micros(time.Time(*r)), nil }

// CreateWebhook inserts a webhook. limit is the maximum number of webhooks of a project. If it is
// reached, the error is problem.Invalid.
func (s *Webhooks) CreateWebhook(ctx context.Context, w fabric.Webhook, limit int) error {
	return s.change(ctx, webhookEvent("webhook.created", w), func(t tx) error {
		// Concurrent changes that add a webhook to the same project wait here for one another, so
		// that each of them counts the others' webhooks.
		res, err := t.Exec(ctx, `UPDATE projects SET updated = updated WHERE id = $1`, w.ProjectID)
		if err = requireRow(res, err, "project"); err != nil {
			return err
		}
		var n int
		if err := t.Row(ctx, `SELECT count(*) FROM webhooks WHERE project_id = $1`, w.ProjectID).Scan(&n); err != nil {
			return fmt.Errorf("counting webhooks: %w", err)
		}
		if n >= limit {
			return problem.BadParam("url", "the limit of %d webhooks is reached; delete one", limit)
		}
		return webhookTable.insertLater(ctx, t, &w)
	})
}

// FindWebhook finds a webhook by its project and id.
func (s *Webhooks) FindWebhook(ctx context.Context, projectID, id string) (fabric.Webhook, error) {
	return webhookTable.find(ctx, s.read(), `id = $2 AND project_id = $1`, projectID, id)
}

// ListWebhooks returns a page of a project's webhooks whose names, URLs or ids contain each word of
// text. If text is "", all webhooks match.
func (s *Webhooks) ListWebhooks(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[fabric.Webhook], error) {
	l := webhookTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.checks = containing(`name || ' ' || url || ' ' || id`, text)
	return l.page(ctx, s.read(), q)
}

// UpdateWebhook writes a webhook, unless it has changed since the caller read it. old is the time
// of the last change that the caller has seen. If the URL or Enabled changes, UpdateWebhook resets
// Failures and ends the rest of the webhook, even while a node holds the webhook. Otherwise it does not
// change these fields, because a node may have written them since the caller read them.
func (s *Webhooks) UpdateWebhook(ctx context.Context, w fabric.Webhook, old time.Time) error {
	return s.once(ctx, webhookEvent("webhook.updated", w), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE webhooks
				SET url = $3, name = $4, events = $5, enabled = $6, updated = $7,
					failures = CASE WHEN url <> $3 OR enabled <> $6 THEN 0 ELSE failures END,
					rests = CASE WHEN url <> $3 OR enabled <> $6 THEN $8 ELSE rests END
				WHERE id = $1 AND updated = $2`,
			w.ID, micros(old), w.URL, w.Name, spaced(w.Events), flag(w.Enabled), micros(w.Updated), woken)
		return requireUnchanged(res, err, "webhook")
	})
}

// DeleteWebhook deletes a webhook, and then its deliveries. If it cannot delete all of them,
// ForgetDeliveries deletes the rest.
func (s *Webhooks) DeleteWebhook(ctx context.Context, projectID, id string) error {
	err := s.once(ctx, audit.Of("webhook.deleted", projectID, "webhook", id), func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM webhooks WHERE id = $2 AND project_id = $1`, projectID, id)
		return requireRow(res, err, "webhook")
	})
	if err != nil {
		return err
	}
	_ = s.queue().forgetWhere(ctx, `{receiver} = $2`, id)
	return nil
}

// webhooksOf returns an expression that counts the enabled webhooks of the project to which a
// written row belongs. The statement that writes the row returns this number, so projects without
// webhooks need no additional query.
func webhooksOf(table string) string {
	return `(SELECT count(*) FROM webhooks w WHERE w.project_id = ` + table + `.project_id AND w.enabled = 1)`
}

// insertedReturning converts the error from an INSERT … RETURNING. It returns conflict if nothing was
// inserted because of ON CONFLICT DO NOTHING.
func insertedReturning(err error, thing string, conflict error) error {
	switch {
	case err == nil:
		return nil
	case isForeignKey(err):
		return problem.NoSuch("project")
	case errors.Is(err, sql.ErrNoRows):
		return conflict
	}
	return fmt.Errorf("inserting %s: %w", thing, err)
}

// queueEvent queues an event for each webhook that receives it, in the transaction of the change
// that the event describes. The statement is sent together with the next statement or with the commit.
func (t tx) queueEvent(ctx context.Context, e fabric.Event) error {
	err := t.Later(ctx, `INSERT INTO webhook_deliveries
			(webhook_id, id, event, subject, body, state, created, queued, due)
			SELECT id, $2, $3, $4, $5, 'pending', $6, $6, 0 FROM webhooks
			WHERE project_id = $1 AND enabled = 1 AND (events = ' * ' OR events LIKE $7)`,
		e.ProjectID, e.ID, string(e.Name), e.Subject, string(e.Body), micros(e.Created), "% "+string(e.Name)+" %")
	if err != nil {
		return fmt.Errorf("queueing event: %w", err)
	}
	return nil
}

// queueEventOf creates the event for v and queues it, if there are webhooks.
func queueEventOf[T any](ctx context.Context, t tx, webhooks int, v T, event func(T) (fabric.Event, error)) error {
	if webhooks == 0 {
		return nil
	}
	e, err := event(v)
	if err != nil {
		return fmt.Errorf("encoding event: %w", err)
	}
	return t.queueEvent(ctx, e)
}

// Queue returns the queue of deliveries to webhooks.
func (s *Webhooks) Queue() deliver.Queue { return s.queue() }

func (s *Webhooks) queue() queue { return queue{s.core, webhookNames} }

// webhookNames replaces the placeholders of a queue for webhooks.
var webhookNames = strings.NewReplacer(
	"{receivers}", "webhooks",
	"{on}", "enabled = 1",
	"{deliveries}", "webhook_deliveries",
	"{receiver}", "webhook_id",
	"{job}", "id",
	"{event}", "event",
	"{subject}", "subject",
	"{body}", "body",
	"{forget}", ", took = 0, response = '', refused = ''",
)

var deliveryTable = table[fabric.Delivery]{
	name:  "webhook_deliveries",
	thing: "delivery",
	columns: `id, webhook_id, event, subject, body, state, created, queued, due,
	attempts, status, error, ended, took, response, refused`,
	fields: func(d *fabric.Delivery) []any {
		return []any{&d.ID, &d.WebhookID, &d.Event, &d.Subject, &d.Body, &d.State, &d.Created, &d.Queued, &d.Due,
			&d.Attempts, &d.Status, &d.Error, &d.Ended, (*period)(&d.Took), &d.Response, &d.Refused}
	},
}

// FindDelivery finds a delivery by its webhook and id.
func (s *Webhooks) FindDelivery(ctx context.Context, webhookID, id string) (fabric.Delivery, error) {
	return deliveryTable.find(ctx, s.read(), `webhook_id = $1 AND id = $2`, webhookID, id)
}

// QueueDelivery queues an event for a single webhook.
func (s *Webhooks) QueueDelivery(
	ctx context.Context, webhookID string, e fabric.Event,
) (fabric.Delivery, error) {
	tested := audit.Of("webhook.tested", e.ProjectID, "webhook", webhookID)
	return resultOf(ctx, s.once, tested, func(t tx) (fabric.Delivery, error) {
		return deliveryTable.scan(t.Row(ctx,
			`INSERT INTO webhook_deliveries (webhook_id, id, event, subject, body, state, created, queued, due)
			VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6, 0) RETURNING `+deliveryTable.columns,
			webhookID, e.ID, string(e.Name), e.Subject, string(e.Body), micros(e.Created)))
	})
}

// ListDeliveries returns a page of a webhook's deliveries in a state, newest first. If state is "",
// the page includes deliveries in all states.
func (s *Webhooks) ListDeliveries(
	ctx context.Context, webhookID string, state fabric.DeliveryState, q page.Query,
) (page.Page[fabric.Delivery], error) {
	l := deliveryTable.listing(q.From)
	l.desc = true
	l.where.and(`webhook_id = $%d`, webhookID)
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// Redeliver queues a delivery again and wakes its webhook.
func (s *Webhooks) Redeliver(
	ctx context.Context, webhookID, id string, now time.Time,
) (fabric.Delivery, error) {
	q := s.queue()
	e := audit.Of("webhook.redelivered", "", "webhook", webhookID).With("delivery", id)
	return resultOf(ctx, s.change, e, func(t tx) (fabric.Delivery, error) {
		d, err := deliveryTable.scan(q.requeue(ctx, t, webhookID, id, now, deliveryTable.columns))
		if err != nil {
			return d, err
		}
		if err := t.placeReceiver(ctx, q, webhookID); err != nil {
			return d, err
		}
		return d, q.wake(ctx, t, webhookID)
	})
}

// RedeliverDead queues all dead deliveries to a webhook again.
func (s *Webhooks) RedeliverDead(ctx context.Context, webhookID string, now time.Time) (int, error) {
	return s.queue().requeueDead(ctx, webhookID, now)
}

// ExpireDeliveries marks pending deliveries as dead if they were queued before the given time.
func (s *Webhooks) ExpireDeliveries(ctx context.Context, before, now time.Time) error {
	return s.queue().expire(ctx, before, now)
}

// ForgetDeliveries deletes deliveries that succeeded before the first of the given times, and
// deliveries that became dead before the second. It also deletes the deliveries to deleted
// webhooks.
func (s *Webhooks) ForgetDeliveries(ctx context.Context, delivered, dead time.Time) error {
	return s.queue().forget(ctx, delivered, dead)
}
