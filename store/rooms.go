package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
	name:    "room_sessions",
	thing:   "room session",
	columns: `id, project_id, room_id, address, name, node, most, locked, recorded, started, ended, asked`,
	fields: func(s *calls.RoomSession) []any {
		return []any{&s.ID, &s.ProjectID, &s.RoomID, &s.Address, &s.Name, &s.Node, &s.Most, &s.Locked, &s.Recorded,
			&s.Started, &s.Ended,
			(*ending)(&s.Ending)}
	},
}

// OpenRoom inserts a session and queues its event. If the room already has a running session, the
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

// SaveRoom writes the fields of a running session that can change. If the session has ended, or
// another node has taken it over, the error is [calls.ErrTaken].
func (s *Rooms) SaveRoom(ctx context.Context, r calls.RoomSession) error {
	return s.once(ctx, audit.None("the progress of room sessions"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE room_sessions SET most = $3, locked = $4, recorded = $5
			WHERE id = $1 AND node = $2 AND ended = 0`, r.ID, r.Node, r.Most, flag(r.Locked), flag(r.Recorded))
		err = requireRow(res, err, "room session")
		if errors.Is(err, problem.NotFound) {
			return calls.ErrTaken
		}
		return err
	})
}

// TakeRoom assigns a session and the answered calls of its members to node, if the node in the
// record still has the session. It returns these calls. If another node has taken over the session,
// or the session has ended, the error is [calls.ErrTaken].
func (s *Rooms) TakeRoom(ctx context.Context, r calls.RoomSession, node string) (members []calls.Record, err error) {
	err = s.change(ctx, audit.None("the progress of room sessions"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE room_sessions SET node = $3 WHERE id = $1 AND node = $2 AND ended = 0`,
			r.ID, r.Node, node)
		err = requireRow(res, err, "room session")
		if errors.Is(err, problem.NotFound) {
			return calls.ErrTaken
		}
		if err != nil {
			return err
		}

		const ofSession = ` room_session = $1 AND room_session <> '' AND node = $2 AND ended = 0 AND state = $3`
		_, err = t.Exec(ctx, `UPDATE calls SET node = $4 WHERE`+ofSession, r.ID, r.Node, string(calls.InCall), node)
		if err != nil {
			return fmt.Errorf("taking over the members of a room session: %w", err)
		}

		const order = ` ORDER BY CASE WHEN joined > 0 THEN joined ELSE answered END`
		members, err = callTable.gather(ctx, t, `WHERE`+ofSession+order, r.ID, node, string(calls.InCall))
		return err
	})
	return members, err
}

// EndRoom writes the end of a session and queues its event. If the session has ended, or another
// node has taken it over, the error is problem.NotFound.
func (s *Rooms) EndRoom(ctx context.Context, r calls.RoomSession) error {
	e := audit.Of("room.ended", r.ProjectID, "room_session", r.ID).With("room", r.RoomID,
		"members", fmt.Sprint(r.Most), "seconds", fmt.Sprint(int(r.Duration(r.Ended).Seconds())))
	return s.change(ctx, e, func(t tx) error {
		var webhooks int
		err := t.Row(ctx, `UPDATE room_sessions SET ended = $3, most = $4, recorded = 0
			WHERE id = $1 AND node = $2 AND ended = 0 RETURNING `+webhooksOf("room_sessions"),
			r.ID, r.Node, micros(r.Ended), r.Most).Scan(&webhooks)
		if errors.Is(err, sql.ErrNoRows) {
			return problem.NoSuch("room session") // the session has ended, or another node has it
		}
		if err != nil {
			return fmt.Errorf("ending a room session: %w", err)
		}
		return queueEventOf(ctx, t, webhooks, r, calls.RoomSession.Event)
	})
}

// FindOpenRoom returns the running session of a room.
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
		l.where.always(`ended = 0`) // must equal the condition of the index
	}
	if f.RoomID != "" {
		l.checks = append(l.checks, check{`room_id = $%d`, []any{f.RoomID}})
	}
	return l.page(ctx, s.read(), q)
}

// RunningRooms returns the running sessions of a node.
func (s *Rooms) RunningRooms(ctx context.Context, node string) ([]calls.RoomSession, error) {
	return roomTable.gather(ctx, s.read(), `WHERE ended = 0 AND node = $1 ORDER BY id`, node)
}

// AskEndRoom marks a session that should end. The node that has the session reads the mark.
func (s *Rooms) AskEndRoom(ctx context.Context, projectID, id string) error {
	return s.askRoom(ctx, audit.Of("room.hung_up", projectID, "room_session", id), projectID, id, askedHangUp)
}

// AskRecordRoom marks a session whose recordings have changed. The node that has the session reads
// the mark.
func (s *Rooms) AskRecordRoom(ctx context.Context, projectID, id string) error {
	return s.askRoom(ctx, audit.None("the change of the recording is audited"), projectID, id, askedRecord)
}

// askRoom adds the bits in what to the column asked of a running session.
func (s *Rooms) askRoom(ctx context.Context, e audit.Event, projectID, id string, what int64) error {
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE room_sessions SET asked = asked | $3
			WHERE project_id = $1 AND id = $2 AND ended = 0`, projectID, id, what)
		return requireRow(res, err, "room session")
	})
}

// TakeRoomRequests returns the marked sessions of a node, and deletes their marks for changed
// recordings. If it cannot delete all of these marks, it returns the sessions together with the error.
func (s *Rooms) TakeRoomRequests(ctx context.Context, node string) ([]calls.RoomRequest, error) {
	requests, err := gather(ctx, s.read(), "listing requests for room sessions", scanRoomRequest,
		`SELECT project_id, room_id, id, asked FROM room_sessions
		WHERE node = $1 AND asked <> 0 AND ended = 0`, node)
	if err != nil {
		return nil, err
	}
	isRecord := func(r calls.RoomRequest) bool { return r.Record }
	if !slices.ContainsFunc(requests, isRecord) {
		return requests, nil
	}

	err = s.once(ctx, audit.None("the progress of room sessions"), func(t tx) error {
		for _, r := range requests {
			if !r.Record {
				continue
			}
			// If another node has taken over the session since it was read, that node needs the mark.
			_, err := t.Exec(ctx, `UPDATE room_sessions SET asked = asked & $3 WHERE id = $1 AND node = $2`,
				r.Session, node, ^askedRecord)
			if err != nil {
				return fmt.Errorf("deleting the requests for a room session: %w", err)
			}
		}
		return nil
	})
	return requests, err
}

func scanRoomRequest(row scanner) (r calls.RoomRequest, err error) {
	var bits int64
	err = row.Scan(&r.ProjectID, &r.RoomID, &r.Session, &bits)
	r.End = bits&askedHangUp != 0
	r.Record = bits&askedRecord != 0
	return r, err
}

// PruneRooms deletes the sessions that ended before the given time, in short transactions.
func (s *Rooms) PruneRooms(ctx context.Context, before time.Time) error {
	return s.sweep(ctx, `DELETE FROM room_sessions WHERE id IN (
		SELECT id FROM room_sessions WHERE ended > 0 AND ended < $2 ORDER BY ended LIMIT $1)`, micros(before))
}
