package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// PutDevice inserts a device, or renames the one of that token, which keeps its
// id, key and beginning. More than most of a subscriber are problem.Invalid.
func (s *Subscribers) PutDevice(ctx context.Context, d fabric.Device, most int) (kept fabric.Device, err error) {
	err = s.change(ctx, audit.Of("device.registered", d.ProjectID, "subscriber", d.SubscriberID).With("type",
		d.Type), func(t tx) error {
		kept = d
		// Who registers waits for who does so for the same subscriber: that is how they
		// are counted.
		res, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE id = $1 AND project_id = $2`,
			d.SubscriberID, d.ProjectID)
		if err := oneRow(res, err, "subscriber"); err != nil {
			return err
		}
		if err := t.putDevice(ctx, &kept); err != nil {
			return err
		}
		var n int
		if err := t.Row(ctx, `SELECT count(*) FROM devices WHERE subscriber_id = $1`, d.SubscriberID).Scan(&n); err != nil {
			return fmt.Errorf("counting devices: %w", err)
		}
		t.event.Add("device", kept.ID)
		if n > most {
			return problem.BadParam("device_token", "there are %d devices already; delete one", most)
		}
		return nil
	})
	return kept, err
}

// putDevice inserts a device, unless the subscriber has one of that token. It needs
// the subscriber's lock.
func (t tx) putDevice(ctx context.Context, d *fabric.Device) error {
	var created int64
	err := t.Row(ctx, `UPDATE devices SET type = $3, name = $4 WHERE subscriber_id = $1 AND token = $2 RETURNING id, push_key, created`,
		d.SubscriberID, d.Token, d.Type, d.Name).Scan(&d.ID, &d.PushKey, &created)
	switch {
	case err == nil:
		d.Created = moment(created)
		return nil
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("renaming device: %w", err)
	}
	_, err = t.Exec(ctx, `INSERT INTO devices (id, project_id, subscriber_id, type, token, name, push_key, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		d.ID, d.ProjectID, d.SubscriberID, d.Type, d.Token, d.Name, d.PushKey, micros(d.Created))
	if err != nil {
		return fmt.Errorf("inserting device: %w", err)
	}
	return nil
}

// DeleteDevice deletes a device of a subscriber.
func (s *Subscribers) DeleteDevice(ctx context.Context, subscriberID, id string) error {
	return s.once(ctx, audit.Of("device.deleted", "", "subscriber", subscriberID).With("device", id),
		func(t tx) error {
			err := t.Row(ctx, `DELETE FROM devices WHERE id = $2 AND subscriber_id = $1 RETURNING project_id`,
				subscriberID, id).Scan(&t.event.ProjectID)
			return found(err, "device")
		})
}

// ListDevices returns a page of a subscriber's devices.
func (s *Subscribers) ListDevices(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[fabric.Device], error) {
	l := listing[fabric.Device]{
		thing: "devices", columns: `id, project_id, subscriber_id, type, token, name, push_key, created`,
		from: "devices",
		key:  []string{"id"}, start: startAt(q.From),
		scan: func(row scanner) (d fabric.Device, err error) {
			var created int64
			err = row.Scan(&d.ID, &d.ProjectID, &d.SubscriberID, &d.Type, &d.Token, &d.Name, &d.PushKey, &created)
			d.Created = moment(created)
			return d, found(err, "device")
		},
		id: func(d fabric.Device) string { return d.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	l.where.and(`subscriber_id = $%d`, subscriberID)
	return l.page(ctx, s.read(), q)
}
