package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// Callbacks holds the deliveries to status callbacks of recordings.
type Callbacks struct{ *core }

var _ recordings.DeliveryStore = (*Callbacks)(nil)

// CallbackQueue returns the queue of status callbacks. recordings.ParseDelivery parses the body of
// a job.
func (s *Callbacks) CallbackQueue() deliver.Queue { return s.queue() }

func (s *Callbacks) queue() queue { return queue{s.core, callbackNames} }

// callbackNames replaces the placeholders in the statements of a queue. Each receiver is an origin. If a
// host is down, all deliveries to it pause, whatever their paths. Receivers are always active, and no
// column describes the last attempt.
var callbackNames = strings.NewReplacer(
	"{receivers}", "callback_receivers",
	"{on}", "1 = 1",
	"{deliveries}", "callback_deliveries",
	"{receiver}", "receiver_id",
	"{job}", "id",
	"{event}", "event",
	"{subject}", "sid",
	"{body}", "method || '\n' || url || '\n' || fields",
	"{forget}", "",
)

// callbackProjectNames is like callbackNames, but queries select the deliveries of a project instead
// of a receiver. It lacks the placeholders that only the deliverer uses.
var callbackProjectNames = strings.NewReplacer(
	"{deliveries}", "callback_deliveries",
	"{receiver}", "project_id",
	"{job}", "id",
	"{forget}", "",
)

var callbackTable = table[recordings.Delivery]{
	name:  "callback_deliveries",
	thing: "delivery",
	columns: `id, project_id, sid, event, url, method, fields, state, created, due, attempts,
	status, error, ended`,
	fields: func(d *recordings.Delivery) []any {
		return []any{&d.ID, &d.ProjectID, &d.Sid, &d.Event, &d.URL, &d.Method, &d.Fields, &d.State, &d.Created, &d.Due,
			&d.Attempts, &d.Status, &d.Error, &d.Ended}
	},
}

// queueCallback queues the status of a recording for its callback, if the callback receives this
// status. It must be called in the transaction that sets the status. now is when the delivery begins
// to wait.
func (t recordingTx) queueCallback(ctx context.Context, r recordings.Recording, now time.Time) error {
	if !r.Callback.Wants(r.Status) {
		return nil
	}
	receiver, err := t.receiveCallbacks(ctx, r.ProjectID, r.Callback.URL, now)
	if err != nil {
		return err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("creating delivery id: %w", err)
	}

	err = t.Later(ctx, `INSERT INTO callback_deliveries
			(id, project_id, receiver_id, sid, event, url, method, fields, state, created, queued, due)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10, 0)`,
		id.String(), r.ProjectID, receiver, r.Sid, string(r.Status), r.Callback.URL, r.Callback.Method,
		r.CallbackFields().Encode(), micros(r.Updated), micros(now))
	if err != nil {
		return fmt.Errorf("queueing callback: %w", err)
	}
	return nil
}

// receiveCallbacks ensures that the origin of a URL is a receiver in the project, and returns the
// receiver's id. It also writes the row of an existing receiver, so that ForgetCallbacks does not
// delete it.
func (t recordingTx) receiveCallbacks(
	ctx context.Context, projectID, address string, now time.Time,
) (id string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("reading the URL of a callback: %w", err)
	}
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	digest := sha256.Sum256([]byte(projectID + "\n" + origin))
	id = hex.EncodeToString(digest[:16])
	err = t.Later(ctx, `INSERT INTO callback_receivers (id, project_id, url, used) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET used = excluded.used`, id, projectID, origin, micros(now))
	if err != nil {
		return "", fmt.Errorf("writing receiver of callbacks: %w", err)
	}
	return id, nil
}

// ListCallbacks returns a page of a project's deliveries in a state, newest first. If state is "",
// it includes all deliveries.
func (s *Callbacks) ListCallbacks(
	ctx context.Context, projectID string, state deliver.State, q page.Query,
) (page.Page[recordings.Delivery], error) {
	l := callbackTable.listing(q.From)
	l.desc = true
	l.where.and(`project_id = $%d`, projectID)
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// RedeliverCallback queues a delivery again and wakes its receiver.
func (s *Callbacks) RedeliverCallback(
	ctx context.Context, projectID, id string, now time.Time,
) (d recordings.Delivery, err error) {
	e := audit.Of("callback.redelivered", projectID, "callback", id)
	err = s.change(ctx, e, func(t tx) error {
		q := queue{s.core, callbackProjectNames}
		row := q.requeue(ctx, t, projectID, id, now, callbackTable.columns)
		if d, err = callbackTable.scan(row); err != nil {
			return err
		}
		return s.wakeReceiver(ctx, t, projectID, d.URL, now)
	})
	return d, err
}

// wakeReceiver ends the pause of the receiver for a URL. If the receiver was deleted, wakeReceiver
// creates it again.
func (s *Callbacks) wakeReceiver(ctx context.Context, t tx, projectID, address string, now time.Time) error {
	receiver, err := t.recordings().receiveCallbacks(ctx, projectID, address, now)
	if err != nil {
		return err
	}
	return s.queue().wake(ctx, t, receiver)
}

// RedeliverDeadCallbacks queues all dead deliveries in a project again, in short transactions, because
// there may be many. Each transaction has its own event.
func (s *Callbacks) RedeliverDeadCallbacks(
	ctx context.Context, projectID string, now time.Time,
) (n int, err error) {
	for some := (deadLetters{more: true}); some.more; n += some.n {
		e := audit.Of("callbacks.redelivered", projectID, "project", projectID)
		after := some.last
		err := s.change(ctx, e, func(t tx) (err error) {
			some, err = queue{s.core, callbackProjectNames}.requeueSome(ctx, t, projectID, after, now)
			if err != nil || some.n == 0 {
				return err
			}
			return s.wakeReceivers(ctx, t, projectID, after, some.last, now)
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// wakeReceivers ends the pauses of the receivers of a project's pending deliveries with an id above
// after and up to last.
func (s *Callbacks) wakeReceivers(ctx context.Context, t tx, projectID, after, last string, now time.Time) error {
	addresses, err := gather(ctx, t, "listing receivers", scanID, `SELECT MIN(url) FROM callback_deliveries
		WHERE project_id = $1 AND state = 'pending' AND id > $2 AND id <= $3 AND queued = $4 GROUP BY receiver_id`,
		projectID, after, last, micros(now))
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if err := s.wakeReceiver(ctx, t, projectID, address, now); err != nil {
			return err
		}
	}
	return nil
}

// ExpireCallbacks marks pending deliveries as dead if they were queued before the given time.
func (s *Callbacks) ExpireCallbacks(ctx context.Context, before, now time.Time) error {
	return s.queue().expire(ctx, before, now)
}

// receiverIdle is how long a receiver is kept after the last delivery was queued for it.
const receiverIdle = time.Hour

// ForgetCallbacks deletes deliveries that succeeded before the time delivered, and deliveries that
// became dead letters before the time dead. It also deletes the receivers that have no
// pending deliveries and for which nothing was queued during receiverIdle. A change that queues a
// delivery also writes the receiver's row. If both changes happen concurrently, one therefore waits
// for the other.
func (s *Callbacks) ForgetCallbacks(ctx context.Context, delivered, dead, now time.Time) error {
	err := s.queue().forgetWhere(ctx, `state = 'delivered' AND ended < $2 OR state = 'dead' AND ended < $3`,
		micros(delivered), micros(dead))
	if err != nil {
		return fmt.Errorf("deleting callbacks: %w", err)
	}
	return s.once(ctx, audit.None("receivers without deliveries"), func(t tx) error {
		_, err := t.Exec(ctx, `DELETE FROM callback_receivers WHERE used < $1 AND NOT EXISTS (
			SELECT 1 FROM callback_deliveries d WHERE d.receiver_id = callback_receivers.id AND d.state = 'pending')`,
			micros(now.Add(-receiverIdle)))
		if err != nil {
			return fmt.Errorf("deleting receivers of callbacks: %w", err)
		}
		return nil
	})
}
