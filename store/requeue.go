package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
)

// requeue is what makes a delivery wait as if it were new.
const requeue = `UPDATE {deliveries} SET state = 'pending', queued = $2, due = 0, attempts = 0, status = 0, error = '', ended = 0 WHERE {receiver} = $1`

// requeue makes a delivery wait again, and gives columns of it.
func (q queue) requeue(ctx context.Context, t tx, receiverID, id string, now time.Time, columns string) scanner {
	return t.Row(ctx, q.names.Replace(requeue+` AND {job} = $3`)+` RETURNING `+columns, receiverID, micros(now), id)
}

// requeueDead makes all dead letters of a receiver wait again.
func (q queue) requeueDead(ctx context.Context, receiverID string, now time.Time) (n int, err error) {
	err = q.change(ctx, audit.Of("deliveries.redelivered", "", q.receives(), receiverID), func(t tx) error {
		res, err := t.Exec(ctx, q.names.Replace(requeue+` AND state = 'dead'`), receiverID, micros(now))
		if err != nil {
			return fmt.Errorf("queueing dead letters: %w", err)
		}
		count, err := res.RowsAffected()
		if err != nil {
			return fmt.Errorf("queueing dead letters: %w", err)
		}
		if n = int(count); n == 0 {
			t.event.Drop()
		} else if err := t.placeReceiver(ctx, q, receiverID); err != nil {
			return err
		}
		t.event.Add("deliveries", strconv.Itoa(n))
		return q.wake(ctx, t, receiverID)
	})
	return n, err
}

// receives names what the receivers are: webhook or client.
func (q queue) receives() string { return strings.TrimSuffix(q.names.Replace("{receiver}"), "_id") }

// woken stands where rests would for a receiver that is to rest no more, until the next
// holds it: who holds it now, and is about to let it rest, does not know.
const woken = -1

// wake lets a receiver rest no more.
func (q queue) wake(ctx context.Context, t tx, receiverID string) error {
	if err := t.Later(ctx, q.names.Replace(`UPDATE {receivers} SET rests = $2 WHERE id = $1`), receiverID, woken); err != nil {
		return fmt.Errorf("waking receiver: %w", err)
	}
	return nil
}

// expire returns up what waits since before a moment.
func (q queue) expire(ctx context.Context, before, now time.Time) error {
	return q.once(ctx, audit.None("how far deliveries are"), func(t tx) error {
		_, err := t.Exec(ctx, q.names.Replace(`UPDATE {deliveries} SET state = 'dead', ended = $2,
				error = CASE WHEN error = '' AND status = 0 THEN 'it could not be sent in time' ELSE error END
			WHERE state = 'pending' AND queued < $1`), micros(before), micros(now))
		if err != nil {
			return fmt.Errorf("giving up deliveries: %w", err)
		}
		return nil
	})
}

// forget deletes what is over for long enough, and what no receiver has.
func (q queue) forget(ctx context.Context, delivered, dead time.Time) error {
	err := q.once(ctx, audit.None("deliveries that are over"), func(t tx) error {
		_, err := t.Exec(ctx, q.names.Replace(
			`DELETE FROM {deliveries} WHERE state = 'delivered' AND ended < $1 OR state = 'dead' AND ended < $2`), micros(delivered), micros(dead))
		return err
	})
	if err != nil {
		return fmt.Errorf("forgetting deliveries: %w", err)
	}
	// Whoever deletes receivers leaves what they had, since that may be much.
	gone, err := gather(ctx, q.read(), "listing receivers that are gone",
		func(row scanner) (id string, err error) { return id, row.Scan(&id) }, q.names.Replace(goneReceivers))
	for _, id := range gone {
		err = errors.Join(err, q.once(ctx, audit.None("deliveries that are over"), func(t tx) error {
			_, err := t.Exec(ctx, q.names.Replace(`DELETE FROM {deliveries} WHERE {receiver} = $1`), id)
			return err
		}))
	}
	if err != nil {
		return fmt.Errorf("forgetting deliveries to nobody: %w", err)
	}
	return nil
}

// goneReceivers lists those that have deliveries and are gone, by a look into an index
// for each that has any.
const goneReceivers = `WITH RECURSIVE told (id) AS (SELECT MIN({receiver}) FROM {deliveries}
		UNION ALL SELECT (SELECT MIN({receiver}) FROM {deliveries} WHERE {receiver} > told.id) FROM told WHERE told.id IS NOT NULL)
	SELECT id FROM told WHERE id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {receivers} r WHERE r.id = told.id)`
