package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// PutDevice inserts a device, or renames the one of that token, which keeps its
// id, key and beginning. More than most of a subscriber are problem.Invalid.
func (s *Store) PutDevice(ctx context.Context, d fabric.Device, most int) (kept fabric.Device, err error) {
	err = s.change(ctx, func(t tx) error {
		kept = d
		// Who registers waits for who does so for the same subscriber: that is how they
		// are counted.
		res, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE id = $1 AND project_id = $2`, d.SubscriberID, d.ProjectID)
		if err := oneRow(res, err, "subscriber"); err != nil {
			return err
		}
		var created int64
		err = t.Row(ctx, `INSERT INTO devices (id, project_id, subscriber_id, type, token, name, push_key, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (subscriber_id, token) DO UPDATE SET type = excluded.type, name = excluded.name RETURNING id, push_key, created`,
			d.ID, d.ProjectID, d.SubscriberID, d.Type, d.Token, d.Name, d.PushKey, micros(d.Created)).Scan(&kept.ID, &kept.PushKey, &created)
		if err != nil {
			return fmt.Errorf("inserting device: %w", err)
		}
		kept.Created = moment(created)
		var n int
		if err := t.Row(ctx, `SELECT count(*) FROM devices WHERE subscriber_id = $1`, d.SubscriberID).Scan(&n); err != nil {
			return fmt.Errorf("counting devices: %w", err)
		}
		if n > most {
			return problem.BadParam("device_token", "there are %d devices already; delete one", most)
		}
		return nil
	})
	return kept, err
}

// DeleteDevice deletes a device of a subscriber.
func (s *Store) DeleteDevice(ctx context.Context, subscriberID, id string) error {
	return s.once(ctx, func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM devices WHERE id = $2 AND subscriber_id = $1`, subscriberID, id)
		return oneRow(res, err, "device")
	})
}
