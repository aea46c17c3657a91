package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Rooms holds the sessions of conference rooms.
type Rooms struct{ *core }

var _ calls.RoomStore = (*Rooms)(nil)

var roomTable = table[calls.RoomSession]{
	"room_sessions", "room session",
	`id, project_id, room_id, address, name, node, most, started, ended, asked`,
	func(s *calls.RoomSession) []any {
		return []any{&s.ID, &s.ProjectID, &s.RoomID, &s.Address, &s.Name, &s.Node, &s.Most, &s.Started, &s.Ended,
			(*ending)(&s.Ending)}
	},
}

// OpenRoom inserts a session and queues its event. If the room has a session that has not ended, the
// error is problem.Conflict.
func (s *Rooms) OpenRoom(ctx context.Context, r calls.RoomSession) error {
	e := audit.Of("room.started", r.ProjectID, "room_session", r.ID).With("room", r.RoomID)
	return s.change(ctx, e, func(t tx) error {
		query, args, err := roomTable.insertion(&r)
		if err != nil {
			return err
		}
		var webhooks int
		err = t.Row(ctx, query+` ON CONFLICT (project_id, room_id) WHERE ended = 0 DO NOTHING
			RETURNING `+webhooksOf("room_sessions"), args...).Scan(&webhooks)
		if err := insertedReturning(err, "room session", problem.Taken("room", "the room has a session")); err != nil {
			return err
		}
		return queueEventOf(ctx, t, webhooks, r, calls.RoomSession.Event)
	})
}

// EndRoom writes the end of a session and queues its event. If the session has ended, the error is
// problem.NotFound.
func (s *Rooms) EndRoom(ctx context.Context, r calls.RoomSession) error {
	e := audit.Of("room.ended", r.ProjectID, "room_session", r.ID).With("room", r.RoomID,
		"members", fmt.Sprint(r.Most), "seconds", fmt.Sprint(int(r.Duration(r.Ended).Seconds())))
	return s.change(ctx, e, func(t tx) error {
		var webhooks int
		err := t.Row(ctx, `UPDATE room_sessions SET ended = $2, most = $3 WHERE id = $1 AND ended = 0
			RETURNING `+webhooksOf("room_sessions"), r.ID, micros(r.Ended), r.Most).Scan(&webhooks)
		if errors.Is(err, sql.ErrNoRows) {
			return problem.NoSuch("room session") // it has ended
		}
		if err != nil {
			return fmt.Errorf("ending a room session: %w", err)
		}
		return queueEventOf(ctx, t, webhooks, r, calls.RoomSession.Event)
	})
}

// FindOpenRoom returns the room's session that has not ended.
func (s *Rooms) FindOpenRoom(ctx context.Context, projectID, roomID string) (calls.RoomSession, error) {
	return roomTable.find(ctx, s.read(), `project_id = $1 AND room_id = $2 AND ended = 0`, projectID, roomID)
}

// FindRoom returns a session of a project.
func (s *Rooms) FindRoom(ctx context.Context, projectID, id string) (calls.RoomSession, error) {
	return roomTable.find(ctx, s.read(), `project_id = $1 AND id = $2`, projectID, id)
}

// ListRooms returns a page of a project's sessions, newest first.
func (s *Rooms) ListRooms(
	ctx context.Context, projectID string, f calls.RoomFilter, q page.Query,
) (page.Page[calls.RoomSession], error) {
	l := roomTable.listing(q.From)
	l.desc = true
	l.where.and(`project_id = $%d`, projectID)
	if f.Running {
		l.where.always(`ended = 0`) // as in its index
	}
	if f.RoomID != "" {
		l.checks = append(l.checks, check{`room_id = $%d`, []any{f.RoomID}})
	}
	return l.page(ctx, s.read(), q)
}

// RunningRooms returns the sessions of a node that have not ended.
func (s *Rooms) RunningRooms(ctx context.Context, node string) ([]calls.RoomSession, error) {
	return roomTable.gather(ctx, s.read(), `WHERE ended = 0 AND node = $1 ORDER BY id`, node)
}

// AskEndRoom marks a session that should end. The node that hosts the session reads the mark.
func (s *Rooms) AskEndRoom(ctx context.Context, projectID, id string) error {
	return s.once(ctx, audit.Of("room.hung_up", projectID, "room_session", id), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE room_sessions SET asked = 1
			WHERE project_id = $1 AND id = $2 AND ended = 0`, projectID, id)
		return requireRow(res, err, "room session")
	})
}

// PruneRooms deletes the sessions that ended before the given time, in short transactions.
func (s *Rooms) PruneRooms(ctx context.Context, before time.Time) error {
	return s.sweep(ctx, `DELETE FROM room_sessions WHERE id IN (
		SELECT id FROM room_sessions WHERE ended > 0 AND ended < $2 ORDER BY ended LIMIT $1)`, micros(before))
}
