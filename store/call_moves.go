package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
)

// SaveMove writes the room session of a call that has moved into a room or out of it, and queues
// the event of the member that joined or left. If the call has ended, SaveMove writes nothing. If
// another node has taken over the call, the error is [calls.ErrTaken].
func (s *Calls) SaveMove(ctx context.Context, r calls.Record, m calls.RoomChange) error {
	action := "call.moved_in"
	if !m.Left.IsZero() {
		action = "call.moved_out"
	}

	e := audit.Of(action, r.ProjectID, "call", r.ID).With("room", m.Session.RoomID, "room_session", m.Session.ID)
	if m.By != "" {
		e = e.By(audit.Subscriber, m.By)
	}

	return s.change(ctx, e, func(t tx) error {
		var webhooks int
		err := t.Row(ctx, `UPDATE calls SET room_session = $3, joined = $4 WHERE id = $1 AND node = $2 AND ended = 0
			RETURNING `+webhooksOf("calls")+`, `+partyColumns,
			r.Key, r.Node, r.RoomSession, micros(r.Joined)).Scan(&webhooks,
			&r.From.Name, &r.From.Address, &r.From.AddressID, &r.From.SubscriberID,
			&r.To.Name, &r.To.Address, &r.To.AddressID, &r.To.SubscriberID, &r.Dialed)
		if errors.Is(err, sql.ErrNoRows) {
			return unsavedCall(ctx, t, r)
		}
		if err != nil {
			return fmt.Errorf("writing that a call has moved: %w", err)
		}
		return queueEventOf(ctx, t, webhooks, r, func(r calls.Record) (fabric.Event, error) { return r.MoveEvent(m) })
	})
}
