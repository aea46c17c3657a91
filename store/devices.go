package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

var deviceTable = table[fabric.Device]{
	name:    "devices",
	thing:   "device",
	columns: `id, project_id, subscriber_id, type, name, token_hash, sealed, created`,
	fields: func(d *fabric.Device) []any {
		return []any{
			&d.ID, &d.ProjectID, &d.SubscriberID, &d.Type, &d.Name, &d.TokenHash, &d.Sealed, &d.Created,
		}
	},
}

// PutDevice inserts a device. If the subscriber already has a device with the same token, PutDevice
// only changes its type and name. If the subscriber would then have more than maxDevices devices,
// PutDevice changes nothing and returns problem.Invalid. A subscriber may already have more devices
// than that if the maximum was lowered.
func (s *Subscribers) PutDevice(ctx context.Context, d fabric.Device, maxDevices int) (fabric.Device, error) {
	event := audit.Of("device.registered", d.ProjectID, "subscriber", d.SubscriberID).With("type", d.Type)
	return resultOf(ctx, s.change, event, func(t tx) (fabric.Device, error) {
		stored := d // a copy, since this function may run again
		if err := t.lockDevices(ctx, d); err != nil {
			return stored, err
		}
		if err := t.putDevice(ctx, &stored); err != nil {
			return stored, err
		}
		t.event.Add("device", stored.ID)
		return stored, t.checkDevices(ctx, d.SubscriberID, maxDevices)
	})
}

// lockDevices locks the subscriber of a device. Concurrent changes that add a device to the same
// subscriber wait here for one another, so that each of them counts the others' devices.
func (t tx) lockDevices(ctx context.Context, d fabric.Device) error {
	res, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE id = $1 AND project_id = $2`,
		d.SubscriberID, d.ProjectID)
	return requireRow(res, err, "subscriber")
}

// checkDevices returns problem.Invalid if a subscriber has more than maxDevices devices.
func (t tx) checkDevices(ctx context.Context, subscriberID string, maxDevices int) error {
	var n int
	err := t.Row(ctx, `SELECT count(*) FROM devices WHERE subscriber_id = $1`, subscriberID).Scan(&n)
	if err != nil {
		return fmt.Errorf("counting devices: %w", err)
	}
	if n > maxDevices {
		return problem.BadParam("device_token", "the limit of %d devices is reached; delete one", maxDevices)
	}
	return nil
}

// putDevice inserts a device, or changes the type and name of the device with the same token, if
// the subscriber has one. The caller must have locked the subscriber.
func (t tx) putDevice(ctx context.Context, d *fabric.Device) error {
	exists, err := t.findRow(ctx, "device", `UPDATE devices SET type = $3, name = $4
			WHERE subscriber_id = $1 AND token_hash = $2 RETURNING id, sealed, created`,
		[]any{d.SubscriberID, d.TokenHash, d.Type, d.Name}, &d.ID, &d.Sealed, scanTarget(&d.Created))
	if err != nil || exists {
		return err
	}
	return deviceTable.insert(ctx, t, d, "subscriber")
}

// DeleteDevice deletes one of a subscriber's devices.
func (s *Subscribers) DeleteDevice(ctx context.Context, subscriberID, id string) error {
	e := audit.Of("device.deleted", "", "subscriber", subscriberID).With("device", id)
	return s.once(ctx, e, func(t tx) error {
		err := t.Row(ctx, `DELETE FROM devices WHERE id = $2 AND subscriber_id = $1 RETURNING project_id`,
			subscriberID, id).Scan(&t.event.ProjectID)
		return checkRow(err, "device")
	})
}

// ListDevices returns a page of a subscriber's devices.
func (s *Subscribers) ListDevices(
	ctx context.Context, projectID, subscriberID string, q page.Query,
) (page.Page[fabric.Device], error) {
	l := deviceTable.listing(q.From)
	l.where.and(`project_id = $%d`, projectID)
	l.where.and(`subscriber_id = $%d`, subscriberID)
	return l.page(ctx, s.read(), q)
}
