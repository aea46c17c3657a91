package store

import (
	"context"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

const deliveryColumns = `id, webhook_id, event, subject, body, state, created, queued, due, attempts, status, error, ended`

func scanDelivery(row scanner) (d fabric.Delivery, err error) {
	var created, queued, due, ended int64
	err = row.Scan(&d.ID, &d.WebhookID, &d.Event, &d.Subject, &d.Body, &d.State, &created, &queued, &due,
		&d.Attempts, &d.Status, &d.Error, &ended)
	d.Created, d.Queued, d.Due, d.Ended = moment(created), moment(queued), moment(due), moment(ended)
	return d, found(err, "delivery")
}

// FindDelivery finds a delivery of a webhook.
func (s *Webhooks) FindDelivery(ctx context.Context, webhookID, id string) (fabric.Delivery, error) {
	return scanDelivery(s.read().Row(ctx,
		`SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE webhook_id = $1 AND id = $2`, webhookID, id))
}

// QueueDelivery inserts a delivery of one webhook.
func (s *Webhooks) QueueDelivery(ctx context.Context, webhookID string, e fabric.Event) (d fabric.Delivery, err error) {
	err = s.once(ctx, audit.Of("webhook.tested", e.ProjectID, "webhook", webhookID), func(t tx) error {
		d, err = scanDelivery(t.Row(ctx,
			`INSERT INTO webhook_deliveries (webhook_id, id, event, subject, body, state, created, queued, due)
			VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6, 0) RETURNING `+deliveryColumns,
			webhookID, e.ID, string(e.Name), e.Subject, string(e.Body), micros(e.Created)))
		return err
	})
	return d, err
}

// ListDeliveries returns a page of a webhook's deliveries, the newest first.
func (s *Webhooks) ListDeliveries(ctx context.Context, webhookID string, state fabric.DeliveryState, q page.Query) (page.Page[fabric.Delivery], error) {
	l := listing[fabric.Delivery]{
		thing: "deliveries", columns: deliveryColumns, from: "webhook_deliveries", key: []string{"id"},
		start: startAt(q.From), desc: true,
		scan: scanDelivery, id: func(d fabric.Delivery) string { return d.ID },
	}
	l.where.and(`webhook_id = $%d`, webhookID)
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// Redeliver makes a delivery wait again, and its webhook rest no more.
func (s *Webhooks) Redeliver(ctx context.Context, webhookID, id string, now time.Time) (d fabric.Delivery, err error) {
	q := s.queue()
	err = s.change(ctx, audit.Of("webhook.redelivered", "", "webhook", webhookID).With("delivery", id),
		func(t tx) error {
			if d, err = scanDelivery(q.requeue(ctx, t, webhookID, id, now, deliveryColumns)); err != nil {
				return err
			}
			if err := t.placeReceiver(ctx, q, webhookID); err != nil {
				return err
			}
			return q.wake(ctx, t, webhookID)
		})
	return d, err
}

// RedeliverDead makes all dead letters of a webhook wait again.
func (s *Webhooks) RedeliverDead(ctx context.Context, webhookID string, now time.Time) (int, error) {
	return s.queue().requeueDead(ctx, webhookID, now)
}

// ExpireDeliveries returns up what waits since before a moment.
func (s *Webhooks) ExpireDeliveries(ctx context.Context, before, now time.Time) error {
	return s.queue().expire(ctx, before, now)
}

// ForgetDeliveries deletes what is over for long enough, and what no webhook has.
func (s *Webhooks) ForgetDeliveries(ctx context.Context, delivered, dead time.Time) error {
	return s.queue().forget(ctx, delivered, dead)
}
