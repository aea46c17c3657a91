package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
)

// Bits of the column asked.
const (
	askedHangUp = 1 << iota
	askedRecord
	askedMute
	askedUnmute
)

// AskHangUp marks a running call that should end. The node that has the call reads the mark.
func (s *Calls) AskHangUp(ctx context.Context, projectID, id string) error {
	return s.ask(ctx, audit.Of("call.hung_up", projectID, "call", id), projectID, id, askedHangUp)
}

// AskRecord marks a running call whose recordings have changed. The node that has the call reads
// the mark.
func (s *Calls) AskRecord(ctx context.Context, projectID, id string) error {
	return s.ask(ctx, audit.None("the change of the recording is audited"), projectID, id, askedRecord)
}

// AskMute marks a member of a room that should be muted or unmuted. The node that has the room reads
// the mark.
func (s *Calls) AskMute(ctx context.Context, projectID, id string, muted bool) error {
	action, what := "room.member_unmuted", int64(askedUnmute)
	if muted {
		action, what = "room.member_muted", askedMute
	}
	return s.once(ctx, audit.Of(action, projectID, "call", id), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE calls SET asked = (asked & $3) | $4
			WHERE project_id = $1 AND call_id = $2 AND ended = 0 AND state = $5 AND room_session <> ''`,
			projectID, id, ^(askedMute | askedUnmute), what, string(calls.InCall))
		return requireRow(res, err, "member")
	})
}

// ask sets the bits what in the column asked of a running call.
func (s *Calls) ask(ctx context.Context, e audit.Event, projectID, id string, what int64) error {
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE calls SET asked = asked | $3
			WHERE project_id = $1 AND call_id = $2 AND ended = 0`, projectID, id, what)
		return requireRow(res, err, "call")
	})
}

// TakeRequests returns the marked calls of a node, and deletes their marks, except for marks of
// calls that should end. Marks of other kinds that are set in the meantime remain. A mute is also written
// to the controls, because the node may die before it does so. If TakeRequests cannot delete all of these
// marks, it returns the calls together with the error.
func (s *Calls) TakeRequests(ctx context.Context, node string) ([]calls.Request, error) {
	requests, err := gather(ctx, s.read(), "listing requests for calls", scanRequest,
		`SELECT project_id, call_id, asked FROM calls WHERE node = $1 AND asked <> 0 AND ended = 0`, node)
	if err != nil {
		return nil, err
	}
	isOnce := func(r calls.Request) bool { return askedOnce(r) != 0 }
	if !slices.ContainsFunc(requests, isOnce) {
		return requests, nil
	}

	err = s.once(ctx, audit.None("the progress of calls"), func(t tx) error {
		for _, r := range requests {
			// If another node took the call over after the call was read, that node still needs the marks.
			_, err := t.Exec(ctx, `UPDATE calls SET asked = asked & $3
				WHERE project_id = $1 AND call_id = $2 AND node = $4`,
				r.ProjectID, r.CallID, ^askedOnce(r), node)
			if err != nil {
				return fmt.Errorf("deleting the requests for a call: %w", err)
			}
			if err := keepMute(ctx, t, r, node); err != nil {
				return err
			}
		}
		return nil
	})
	return requests, err
}

// keepMute writes the mute of a member to the controls of the call, for a node that takes the call over. It
// leaves out an unmute, because a member that muted itself stays muted.
func keepMute(ctx context.Context, t tx, r calls.Request, node string) error {
	if !r.Mute {
		return nil
	}
	_, err := t.Exec(ctx, `UPDATE calls
		SET caller_controls = caller_controls | $3, callee_controls = callee_controls | $3
		WHERE project_id = $1 AND call_id = $2 AND node = $4 AND room_session <> ''`,
		r.ProjectID, r.CallID, int64(calls.AudioMuted), node)
	if err != nil {
		return fmt.Errorf("writing a mute: %w", err)
	}
	return nil
}

// askedOnce returns the bits of the requests in r that are carried out only once.
func askedOnce(r calls.Request) (bits int64) {
	for bit, set := range map[int64]bool{askedRecord: r.Record, askedMute: r.Mute, askedUnmute: r.Unmute} {
		if set {
			bits |= bit
		}
	}
	return bits
}

func scanRequest(row scanner) (r calls.Request, err error) {
	var bits int64
	err = row.Scan(&r.ProjectID, &r.CallID, &bits)
	r.HangUp = bits&askedHangUp != 0
	r.Record = bits&askedRecord != 0
	r.Mute = bits&askedMute != 0
	r.Unmute = bits&askedUnmute != 0
	return r, err
}
