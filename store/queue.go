package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/problem"
)

// A queue holds the jobs of one deliverer: receivers with leases, and their deliveries. Its queries
// contain placeholders:
//
//	{receivers}   the table of receivers
//	{on}          the condition for active receivers
//	{deliveries}  the table of deliveries
//	{receiver}    the column of a delivery that identifies its receiver
//	{job}         the column of a delivery that identifies it
//	{event}       the event of a delivery; see deliver.Job
//	{subject}     the subject of a delivery
//	{body}        the body of a delivery
//	{forget}      ", column = value" for each column that describes the last attempt
type queue struct {
	*core
	names *strings.Replacer // replaces the placeholders in queries
}

// keepsAnswers reports whether deliveries have columns for the duration of an attempt and for the
// receiver's answer.
func (q queue) keepsAnswers() bool { return q.names == webhookNames }

var _ deliver.Queue = queue{}

// DueReceivers returns receivers with due deliveries, at most the given number. It reads one index
// entry per receiver, no matter how many deliveries are waiting. Projects take turns: the first
// receiver of each project comes before any second receiver, and so on. The held receivers of a
// project count as its first receivers. A receiver without a holder is free, even if its lease seems
// to end in the future because the clock was set back.
func (q queue) DueReceivers(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return gather(ctx, q.read(), "finding due receivers", scanID, q.names.Replace(`SELECT id FROM {receivers} r
		WHERE {on} AND (lease <= $1 OR holder = '') AND rests <= $1
			AND EXISTS (SELECT 1 FROM {deliveries} d WHERE d.{receiver} = r.id AND d.state = 'pending' AND d.due <= $1)
		ORDER BY (SELECT count(*) FROM {receivers} h
				WHERE h.project_id = r.project_id AND h.lease > $1 AND h.holder <> '')
			+ ROW_NUMBER() OVER (PARTITION BY project_id ORDER BY lease, id), lease, id LIMIT $2`), micros(now), limit)
}

// HoldReceiver leases a receiver, or renews its lease. If another node holds the receiver, or the
// receiver is not active, the error is problem.Conflict. A new lease ends the receiver's rest, and
// replaces [woken].
func (q queue) HoldReceiver(
	ctx context.Context, id, holder string, now, until time.Time,
) (r deliver.Receiver, err error) {
	err = q.once(ctx, audit.None("a lease"), func(t tx) error {
		err := t.Row(ctx, q.names.Replace(`UPDATE {receivers} SET lease = $4, holder = $2,
				rests = CASE WHEN holder = $2 THEN rests ELSE 0 END
			WHERE id = $1 AND {on} AND (lease <= $3 OR holder IN ($2, ''))
			RETURNING id, project_id, url, failures`), id, holder, micros(now), micros(until)).Scan(
			&r.ID, &r.ProjectID, &r.URL, &r.Failures)
		claimed := problem.New(problem.Conflict, "conflict", "another node has claimed the receiver")
		return conflictIfMissing(claimed, checkRow(err, "receiver"))
	})
	return r, err
}

// DueJobs returns due deliveries to a receiver, at most the given number.
func (q queue) DueJobs(ctx context.Context, receiverID string, now time.Time, limit int) ([]deliver.Job, error) {
	scan := func(row scanner) (j deliver.Job, err error) {
		err = row.Scan(&j.ID, &j.Event, &j.Subject, &j.Body, &j.Attempts, scanTarget(&j.Queued))
		return j, err
	}
	return gather(ctx, q.read(), "reading deliveries", scan,
		q.names.Replace(`SELECT {job}, {event}, {subject}, {body}, attempts, queued FROM {deliveries}
			WHERE {receiver} = $1 AND state = 'pending' AND due <= $2 ORDER BY due, {job} LIMIT $3`),
		receiverID, micros(now), limit)
}

// Settle writes the result of an attempt. If the delivery was queued again during the attempt, it
// remains pending.
func (q queue) Settle(ctx context.Context, r deliver.Result) error {
	args := []any{
		r.ReceiverID, r.JobID, string(r.State), r.Attempts, r.Status, r.Error,
		micros(r.Due), micros(r.Ended), micros(r.Queued),
	}
	answer := ""
	if q.keepsAnswers() {
		answer = `, took = $10, response = $11, refused = $12`
		args = append(args, r.Took.Microseconds(), r.Response, r.Refused)
	}
	return q.once(ctx, audit.None("the progress of a delivery"), func(t tx) error {
		_, err := t.Exec(ctx, q.names.Replace(`UPDATE {deliveries}
				SET state = $3, attempts = $4, status = $5, error = $6, due = $7, ended = $8`+answer+`
				WHERE {receiver} = $1 AND {job} = $2 AND state = 'pending' AND queued = $9`), args...)
		if err != nil {
			return fmt.Errorf("settling delivery: %w", err)
		}
		return nil
	})
}

// ReleaseReceiver ends a lease. The receiver then comes after the other receivers of its project.
// If the receiver was woken in the meantime, it does not rest, and its failures do not increase.
func (q queue) ReleaseReceiver(
	ctx context.Context, id, holder string, now time.Time, failures int, rests time.Time,
) error {
	return q.once(ctx, audit.None("a lease"), func(t tx) error {
		_, err := t.Exec(ctx, q.names.Replace(`UPDATE {receivers} SET lease = $3, holder = '',
				failures = CASE WHEN rests = $6 AND failures < $4 THEN failures ELSE $4 END,
				rests = CASE WHEN rests = $6 THEN 0 ELSE CAST($5 AS BIGINT) END WHERE id = $1 AND holder = $2`),
			id, holder, micros(now), failures, micros(rests), woken)
		if err != nil {
			return fmt.Errorf("releasing receiver: %w", err)
		}
		return nil
	})
}

// Backlog returns the number of waiting deliveries, and when the oldest of them was queued.
func (q queue) Backlog(ctx context.Context) (n int, oldest time.Time, err error) {
	err = q.read().Row(ctx, q.names.Replace(`SELECT count(*), COALESCE(MIN(queued), 0)
		FROM {deliveries} WHERE state = 'pending'`)).Scan(&n, scanTarget(&oldest))
	if err != nil {
		return 0, oldest, fmt.Errorf("counting deliveries: %w", err)
	}
	return n, oldest, nil
}

// Clock returns the database's time.
func (q queue) Clock(ctx context.Context) (time.Time, error) { return q.clock(ctx) }

// requeued resets a delivery, so that it is due as if it were new.
const requeued = `UPDATE {deliveries} SET state = 'pending', queued = $2, due = 0, attempts = 0, status = 0,
	error = '', ended = 0{forget} WHERE {receiver} = $1`

// requeue queues a delivery again, and returns the given columns of its row.
func (q queue) requeue(ctx context.Context, t tx, receiverID, id string, now time.Time, columns string) scanner {
	return t.Row(ctx, q.names.Replace(requeued+` AND {job} = $3`)+` RETURNING `+columns, receiverID, micros(now), id)
}

// requeueDead queues all dead deliveries to a receiver again, in short transactions, because there may
// be many. Each transaction has its own event.
func (q queue) requeueDead(ctx context.Context, receiverID string, now time.Time) (n int, err error) {
	for some := (deadLetters{more: true}); some.more; n += some.n {
		e := audit.Of("deliveries.redelivered", "", q.receiverKind(), receiverID)
		after := some.last
		err := q.change(ctx, e, func(t tx) (err error) {
			if some, err = q.requeueSome(ctx, t, receiverID, after, now); err != nil {
				return err
			}
			if some.n > 0 {
				if err := t.placeReceiver(ctx, q, receiverID); err != nil {
					return err
				}
			}
			return q.wake(ctx, t, receiverID)
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// deadLetters describes dead deliveries that requeueSome has queued again.
type deadLetters struct {
	n    int    // their number
	last string // the highest id
	more bool   // there may be others
}

// requeueSome queues dead deliveries to a receiver again: the first sweepBatch whose ids are above
// after. A delivery that meanwhile dies again is therefore not queued a second time. The event of the
// transaction contains the number of queued deliveries. If no delivery was queued, the event is dropped.
func (q queue) requeueSome(
	ctx context.Context, t tx, receiverID, after string, now time.Time,
) (some deadLetters, err error) {
	var found int
	err = t.Row(ctx, q.names.Replace(`SELECT COUNT(*), COALESCE(MAX({job}), '') FROM (
			SELECT {job} FROM {deliveries} WHERE {receiver} = $1 AND state = 'dead' AND {job} > $2
			ORDER BY {job} LIMIT $3) AS entries`), receiverID, after, sweepBatch).Scan(&found, &some.last)
	if err != nil {
		return some, fmt.Errorf("finding dead letters: %w", err)
	}

	res, err := t.Exec(ctx, q.names.Replace(requeued+` AND state = 'dead' AND {job} > $3 AND {job} <= $4`),
		receiverID, micros(now), after, some.last)
	n, err := countChanged(res, err, "dead letters")
	if err != nil {
		return some, err
	}
	some.n = int(n)
	some.more = found == sweepBatch
	if some.n == 0 {
		t.event.Drop()
	}
	t.event.Add("deliveries", strconv.Itoa(some.n))
	return some, nil
}

// receiverKind returns the kind of the queue's receivers: webhook or client.
func (q queue) receiverKind() string { return strings.TrimSuffix(q.names.Replace("{receiver}"), "_id") }

// woken is a value of the column rests. It means that the receiver must not rest, even if its
// current holder asks for a rest on release. The next lease replaces it.
const woken = -1

// wake ends the rest of a receiver.
func (q queue) wake(ctx context.Context, t tx, receiverID string) error {
	err := t.Later(ctx, q.names.Replace(`UPDATE {receivers} SET rests = $2 WHERE id = $1`), receiverID, woken)
	if err != nil {
		return fmt.Errorf("waking receiver: %w", err)
	}
	return nil
}

// expire marks pending deliveries as dead if they were queued before the given time, in short
// transactions, because there may be many.
func (q queue) expire(ctx context.Context, before, now time.Time) error {
	err := q.sweep(ctx, q.names.Replace(`UPDATE {deliveries} SET state = 'dead', ended = $3,
			error = CASE WHEN error = '' AND status = 0 THEN 'it could not be sent in time' ELSE error END`+
		firstWhere(`state = 'pending' AND queued < $2`)), micros(before), micros(now))
	if err != nil {
		return fmt.Errorf("giving up deliveries: %w", err)
	}
	return nil
}

// forget deletes deliveries that succeeded before the first of the given times, deliveries that
// became dead before the second, and the deliveries to deleted receivers.
func (q queue) forget(ctx context.Context, delivered, dead time.Time) error {
	err := q.forgetWhere(ctx, `state = 'delivered' AND ended < $2 OR state = 'dead' AND ended < $3`,
		micros(delivered), micros(dead))
	if err != nil {
		return fmt.Errorf("deleting deliveries: %w", err)
	}

	// Deleting a receiver does not delete its deliveries, because there may be many.
	deleted, err := gather(ctx, q.read(), "listing deleted receivers", scanID, q.names.Replace(deletedReceivers))
	if err != nil {
		return fmt.Errorf("deleting deliveries without a receiver: %w", err)
	}
	var errs []error
	for _, id := range deleted {
		errs = append(errs, q.forgetWhere(ctx, `{receiver} = $2`, id))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("deleting deliveries without a receiver: %w", err)
	}
	return nil
}

// forgetWhere deletes the deliveries that meet a condition, in short transactions, because there may
// be many. The parameters of the condition begin with $2.
func (q queue) forgetWhere(ctx context.Context, condition string, args ...any) error {
	return q.sweep(ctx, q.names.Replace(`DELETE FROM {deliveries}`+firstWhere(condition)), args...)
}

// firstWhere returns a WHERE clause that selects the first $1 deliveries that meet a condition. The condition
// is checked again, because a delivery may change meanwhile.
func firstWhere(condition string) string {
	return ` WHERE ({receiver}, {job}) IN (SELECT {receiver}, {job} FROM {deliveries} WHERE ` + condition + ` LIMIT $1)
		AND ` + withoutIndex(condition)
}

// deletedReceivers lists receivers that have deliveries but no longer exist. It reads one index
// entry per receiver.
const deletedReceivers = `WITH RECURSIVE told (id) AS (SELECT MIN({receiver}) FROM {deliveries}
		UNION ALL SELECT (SELECT MIN({receiver}) FROM {deliveries} WHERE {receiver} > told.id)
			FROM told WHERE told.id IS NOT NULL)
	SELECT id FROM told WHERE id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {receivers} r WHERE r.id = told.id)`
