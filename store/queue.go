package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/problem"
)

// A queue is what one deliverer delivers: receivers with leases, and their deliveries.
type queue struct {
	*core
	// The tables, which receivers are told at all, and the columns that say to whom and
	// what a delivery is.
	names *strings.Replacer
}

var (
	webhookQueue = strings.NewReplacer("{receivers}", "webhooks", "{on}", "enabled = 1", "{deliveries}",
		"webhook_deliveries",
		"{receiver}", "webhook_id", "{job}", "id", "{event}", "event", "{subject}", "subject", "{body}", "body")
	_ deliver.Queue = queue{}
)

// Queue returns the queue of what webhooks are told.
func (s *Webhooks) Queue() deliver.Queue { return s.queue() }

func (s *Webhooks) queue() queue { return queue{s.core, webhookQueue} }

// DueReceivers returns the receivers for which something is due: one look into an index
// for each there is, however much waits. Projects take turns: whose receivers are held
// already, or come before, waits for the others.
func (q queue) DueReceivers(ctx context.Context, now time.Time, most int) ([]string, error) {
	return gather(ctx, q.read(), "looking for due receivers", scanID, q.names.Replace(`SELECT id FROM {receivers} r
		WHERE {on} AND lease <= $1 AND rests <= $1
			AND EXISTS (SELECT 1 FROM {deliveries} d WHERE d.{receiver} = r.id AND d.state = 'pending' AND d.due <= $1)
		ORDER BY (SELECT count(*) FROM {receivers} h WHERE h.project_id = r.project_id AND h.lease > $1)
			+ ROW_NUMBER() OVER (PARTITION BY project_id ORDER BY lease, id), lease, id LIMIT $2`), micros(now), most)
}

// HoldReceiver leases a receiver, or renews the lease. With a new holder a receiver is
// no longer one that was woken.
func (q queue) HoldReceiver(ctx context.Context, id, holder string, now, until time.Time) (r deliver.Receiver, err error) {
	err = q.once(ctx, audit.None("a lease"), func(t tx) error {
		err := t.Row(ctx, q.names.Replace(`UPDATE {receivers} SET lease = $4, holder = $2,
			rests = CASE WHEN holder = $2 THEN rests ELSE 0 END WHERE id = $1 AND {on} AND (lease <= $3 OR holder = $2)
			RETURNING id, project_id, url, failures`), id, holder, micros(now), micros(until)).Scan(
			&r.ID, &r.ProjectID, &r.URL, &r.Failures)
		if err := found(err, "receiver"); errors.Is(err, problem.NotFound) {
			return problem.New(problem.Conflict, "conflict", "the receiver is held by another")
		} else if err != nil {
			return err
		}
		return nil
	})
	return r, err
}

// DueJobs returns the deliveries to a receiver that are due.
func (q queue) DueJobs(ctx context.Context, receiverID string, now time.Time, most int) ([]deliver.Job, error) {
	scan := func(row scanner) (j deliver.Job, err error) {
		var queued int64
		err = row.Scan(&j.ID, &j.Event, &j.Subject, &j.Body, &j.Attempts, &queued)
		j.Queued = moment(queued)
		return j, err
	}
	return gather(ctx, q.read(), "reading deliveries", scan,
		q.names.Replace(`SELECT {job}, {event}, {subject}, {body}, attempts, queued FROM {deliveries}
		WHERE {receiver} = $1 AND state = 'pending' AND due <= $2 ORDER BY due, {job} LIMIT $3`), receiverID,
		micros(now), most)
}

// Settle writes what an attempt came to. What was asked for again while it was made waits on.
func (q queue) Settle(ctx context.Context, r deliver.Result) error {
	return q.once(ctx, audit.None("how far a delivery is"), func(t tx) error {
		_, err := t.Exec(ctx, q.names.Replace(`UPDATE {deliveries} SET state = $3, attempts = $4, status = $5, error = $6, due = $7, ended = $8
			WHERE {receiver} = $1 AND {job} = $2 AND state = 'pending' AND queued = $9`),
			r.ReceiverID, r.JobID, string(r.State), r.Attempts, r.Status, r.Error, micros(r.Due),
			micros(r.Ended), micros(r.Queued))
		if err != nil {
			return fmt.Errorf("settling delivery: %w", err)
		}
		return nil
	})
}

// ReleaseReceiver ends a lease at this moment, which is then the order of turns. One
// that was woken meanwhile does not rest.
func (q queue) ReleaseReceiver(ctx context.Context, id, holder string, now time.Time, failures int, rests time.Time) error {
	return q.once(ctx, audit.None("a lease"), func(t tx) error {
		_, err := t.Exec(ctx, q.names.Replace(`UPDATE {receivers} SET lease = $3, holder = '', failures = $4,
			rests = CASE WHEN rests = $6 THEN 0 ELSE CAST($5 AS BIGINT) END WHERE id = $1 AND holder = $2`),
			id, holder, micros(now), failures, micros(rests), woken)
		if err != nil {
			return fmt.Errorf("releasing receiver: %w", err)
		}
		return nil
	})
}

// Backlog tells how many deliveries wait, and since when.
func (q queue) Backlog(ctx context.Context) (n int, oldest time.Time, err error) {
	var us int64
	err = q.read().Row(ctx, q.names.Replace(`SELECT count(*), COALESCE(MIN(queued), 0) FROM {deliveries} WHERE state = 'pending'`)).Scan(&n, &us)
	if err != nil {
		return 0, oldest, fmt.Errorf("counting deliveries: %w", err)
	}
	return n, moment(us), nil
}

// Clock returns the time of the database.
func (q queue) Clock(ctx context.Context) (time.Time, error) { return q.clock(ctx) }
