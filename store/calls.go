package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// Calls holds the records of calls.
type Calls struct{ *core }

var callTable = table[calls.Record]{
	name:  "calls",
	thing: "call",
	columns: `id, project_id, call_id, state, cause, cause_code, node,
		from_name, from_address, from_address_id, from_subscriber,
		to_name, to_address, to_address_id, to_subscriber, dialed, video, recording_sid,
		received, lost, jitter, round_trip, transport, guest, caller_leg, callee_leg,
		caller_controls, callee_controls, recorded, room_session, joined, gateway, payer, lines, reason, outbound_from,
		created, answered, ended, asked`,
	fields: func(r *calls.Record) []any {
		return []any{
			&r.Key, &r.ProjectID, &r.ID, &r.State, &r.Cause.Text, &r.Cause.Code, &r.Node,
			&r.From.Name, &r.From.Address, &r.From.AddressID, &r.From.SubscriberID,
			&r.To.Name, &r.To.Address, &r.To.AddressID, &r.To.SubscriberID, &r.Dialed, &r.Video, &r.RecordingSid,
			&r.Received, &r.Lost, (*period)(&r.Jitter), (*period)(&r.RoundTrip), &r.Transport,
			&r.Guest, &r.CallerLeg, &r.CalleeLeg, &r.CallerControls, &r.CalleeControls,
			&r.Recorded, &r.RoomSession, &r.Joined,
			&r.Gateway, &r.Payer, &r.Lines, &r.Refusal, &r.OutboundFrom,
			&r.Created, &r.Answered, &r.Ended, (*ending)(&r.Ending),
		}
	},
}

// A period is a duration that is stored in microseconds.
type period time.Duration

func (p *period) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a duration is %T, want int64", src)
	}
	*p = period(time.Duration(us) * time.Microsecond)
	return nil
}

func (p *period) value() (any, error) { return time.Duration(*p).Microseconds(), nil }

// An ending is true if a call has been asked to end. It is stored as one bit in the asked column.
type ending bool

func (e *ending) Scan(src any) error {
	bits, ok := src.(int64)
	if !ok {
		return fmt.Errorf("the asked column is %T, want int64", src)
	}
	*e = bits&askedHangUp != 0
	return nil
}

func (e *ending) value() (any, error) { return int64(0), nil } // the initial value of the column

// partyColumns are the columns with both parties and the dialed address. Erasing a subscriber
// empties those that describe the subscriber.
const partyColumns = `from_name, from_address, from_address_id, from_subscriber,
	to_name, to_address, to_address_id, to_subscriber, dialed`

// SaveCall writes a record, which replaces the previous record of the same call, and queues its
// event. If the project already has another call with the same call id, the error is
// problem.Conflict. If another node has taken over the call, the error is [calls.ErrTaken].
//
// The event names the parties as they are in the row, because a party may have been erased during
// the call.
func (s *Calls) SaveCall(ctx context.Context, r calls.Record) error {
	_, err := s.EndCall(ctx, r)
	return err
}

// EndCall is like SaveCall, and also reports whether it has written the record. written is false if
// the call had already ended.
func (s *Calls) EndCall(ctx context.Context, r calls.Record) (written bool, err error) {
	return resultOf(ctx, s.change, callEvent(r), func(t tx) (bool, error) { return t.saveCall(ctx, r) })
}

// saveCall writes a record and queues its events; see EndCall.
func (t tx) saveCall(ctx context.Context, r calls.Record) (written bool, err error) {
	query, args, err := callTable.insertion(&r)
	if err != nil {
		return false, err
	}

	// Lock the row, if there is one. PostgreSQL could overlook it in the next statement while another
	// transaction updates it, and report that the call id is in use.
	if _, err := t.Exec(ctx, `UPDATE calls SET node = node WHERE id = $1`, r.Key); err != nil {
		return false, fmt.Errorf("locking a call: %w", err)
	}

	var webhooks int
	err = t.Row(ctx, query+` ON CONFLICT (id) DO UPDATE SET state = excluded.state, cause = excluded.cause,
				cause_code = excluded.cause_code, video = excluded.video, recording_sid = excluded.recording_sid,
				recorded = excluded.recorded, received = excluded.received, lost = excluded.lost,
				jitter = excluded.jitter, round_trip = excluded.round_trip, transport = excluded.transport,
				callee_leg = excluded.callee_leg, room_session = excluded.room_session, joined = excluded.joined,
				reason = excluded.reason, gateway = excluded.gateway, lines = excluded.lines,
				outbound_from = excluded.outbound_from,
				payer = CASE WHEN excluded.gateway = '' THEN '' ELSE calls.payer END,
				to_name = `+answeredBy("to_name")+`, to_address = `+answeredBy("to_address")+`,
				to_address_id = `+answeredBy("to_address_id")+`, to_subscriber = `+answeredBy("to_subscriber")+`,
				answered = excluded.answered, ended = excluded.ended
			WHERE calls.ended = 0 AND calls.node = excluded.node
			RETURNING `+webhooksOf("calls")+`, `+partyColumns, args...).Scan(&webhooks,
		&r.From.Name, &r.From.Address, &r.From.AddressID, &r.From.SubscriberID,
		&r.To.Name, &r.To.Address, &r.To.AddressID, &r.To.SubscriberID, &r.Dialed)

	if isUnique(err) {
		return false, problem.Taken("callID", "a call with this callID has been made")
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, unsavedCall(ctx, t, r)
	}
	if err := insertedReturning(err, "call", nil); err != nil {
		return false, err
	}
	if err := queueEventOf(ctx, t, webhooks, r, calls.Record.Event); err != nil || !r.HasMember() {
		return true, err
	}
	return true, queueEventOf(ctx, t, webhooks, r, calls.Record.MemberEvent)
}

// answeredBy returns the new value of a column that describes the callee. When a call is answered,
// this is the value for the party who answered, unless the callee was erased.
func answeredBy(column string) string {
	return `CASE WHEN calls.answered = 0 AND excluded.answered > 0 AND calls.dialed <> ''
		THEN excluded.` + column + ` ELSE calls.` + column + ` END`
}

// SaveRecorded writes whether a call is being recorded, and its first recording. If the call has
// ended, SaveRecorded writes nothing. If another node has taken over the call, the error is
// [calls.ErrTaken].
func (s *Calls) SaveRecorded(ctx context.Context, r calls.Record) error {
	return s.once(ctx, audit.None("the progress of calls"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE calls SET recording_sid = $3, recorded = $4
			WHERE id = $1 AND node = $2 AND ended = 0`, r.Key, r.Node, r.RecordingSid, flag(r.Recorded))
		err = requireRow(res, err, "call")
		if errors.Is(err, problem.NotFound) {
			return unsavedCall(ctx, t, r)
		}
		return err
	})
}

// SaveControls writes the controls of both sides of a call. If the call has ended, or another node
// has taken it over, the error is [calls.ErrTaken].
func (s *Calls) SaveControls(ctx context.Context, r calls.Record) error {
	return s.once(ctx, audit.None("the progress of calls"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE calls SET caller_controls = $3, callee_controls = $4
			WHERE id = $1 AND node = $2 AND ended = 0`, r.Key, r.Node, int64(r.CallerControls), int64(r.CalleeControls))
		err = requireRow(res, err, "call")
		if errors.Is(err, problem.NotFound) {
			return calls.ErrTaken
		}
		return err
	})
}

// unsavedCall explains why a record was not written. It returns an error if another node has taken
// over the call, and nil if the call has ended. Nothing was changed, so nothing is audited.
func unsavedCall(ctx context.Context, t tx, r calls.Record) error {
	was, err := callTable.find(ctx, t, `id = $1`, r.Key)
	if err != nil {
		return err
	}
	if was.Node != r.Node {
		return calls.ErrTaken
	}
	t.event.Drop()
	return nil
}

// FindLeg returns the answered call in a project that has the given id or leg, unless the call has
// ended.
func (s *Calls) FindLeg(ctx context.Context, projectID, leg string) (calls.Record, error) {
	return callTable.find(ctx, s.read(), `project_id = $1 AND ended = 0 AND state = $2
		AND (call_id = $3 OR caller_leg = $3 OR callee_leg = $3)`, projectID, string(calls.InCall), leg)
}

// TakeCall assigns an answered call to node, if the node in the record still has the call. If
// another node has taken over the call, or the call has ended, the error is [calls.ErrTaken].
func (s *Calls) TakeCall(ctx context.Context, r calls.Record, node string) error {
	return s.once(ctx, audit.None("the progress of calls"), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE calls SET node = $3 WHERE id = $1 AND node = $2 AND ended = 0 AND state = $4`,
			r.Key, r.Node, node, string(calls.InCall))
		err = requireRow(res, err, "call")
		if errors.Is(err, problem.NotFound) {
			return calls.ErrTaken
		}
		return err
	})
}

// queueRecorded queues the event of a completed recording, if the recording belongs to a call or
// room session of this installation.
func (t recordingTx) queueRecorded(ctx context.Context, rec recordings.Recording) error {
	if rec.ConferenceSid != "" {
		return queueRecordedOf(ctx, t.tx, rec, roomTable, `project_id = $1 AND id = $2`, rec.ConferenceSid,
			calls.RoomSession.RecordingEvent)
	}
	return queueRecordedOf(ctx, t.tx, rec, callTable, `project_id = $1 AND call_id = $2`, rec.CallSid,
		calls.Record.RecordingEvent)
}

// queueRecordedOf queues the event of a completed recording. The event describes the row that meets
// a condition. If there is no such row, or the project has no enabled webhook, nothing is queued.
func queueRecordedOf[T any](ctx context.Context, t tx, rec recordings.Recording, of table[T], condition, id string,
	event func(T, string, time.Duration, time.Time) (fabric.Event, error)) error {
	var webhooks int
	err := t.Row(ctx, `SELECT `+webhooksOf(of.name)+` FROM `+of.name+` WHERE `+condition,
		rec.ProjectID, id).Scan(&webhooks)
	if errors.Is(err, sql.ErrNoRows) || err == nil && webhooks == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the call of a recording: %w", err)
	}

	r, err := of.find(ctx, t, condition, rec.ProjectID, id)
	if err != nil {
		return err
	}

	return queueEventOf(ctx, t, webhooks, r, func(r T) (fabric.Event, error) {
		return event(r, rec.Sid, rec.Duration(), rec.Updated)
	})
}

// callEvent returns the audit event for a call. Only the end of a call is audited.
func callEvent(r calls.Record) audit.Event {
	if r.State != calls.Completed {
		return audit.None("the progress of calls")
	}
	e := audit.Of("call.ended", r.ProjectID, "call", r.ID).With("from", auditedParty(r.From),
		"to", auditedParty(r.To), "cause", r.Cause.Text, "seconds", fmt.Sprint(int(r.Duration(r.Ended).Seconds())))
	if r.Gateway != "" {
		e = e.With("gateway", r.Gateway)
	}
	if r.Refusal != "" {
		e = e.With("reason", r.Refusal)
	}
	if r.From.SubscriberID != "" {
		e = e.By(audit.Subscriber, r.From.SubscriberID)
	}
	return e
}

// auditedParty returns the id that stands for a party in the audit trail. Names and addresses are
// not used, because they could not be erased from the trail. It returns "" for guests and for
// unknown addresses.
func auditedParty(p calls.Party) string { return cmp.Or(p.SubscriberID, p.AddressID) }

// FindCall returns the call in a project with the given call id.
func (s *Calls) FindCall(ctx context.Context, projectID, id string) (calls.Record, error) {
	return callTable.find(ctx, s.read(), `project_id = $1 AND call_id = $2`, projectID, id)
}

// RunningCalls returns a node's calls that have not ended, oldest first. It returns at most
// limit calls.
func (s *Calls) RunningCalls(ctx context.Context, node string, limit int) ([]calls.Record, error) {
	return callTable.gather(ctx, s.read(), `WHERE ended = 0 AND node = $1 ORDER BY id LIMIT $2`, node, limit)
}

// RunningNodes returns the nodes with calls or room sessions that have not ended.
func (s *Calls) RunningNodes(ctx context.Context) ([]string, error) {
	return gather(ctx, s.read(), "listing nodes", scanID, `SELECT node FROM calls WHERE ended = 0
		UNION SELECT node FROM room_sessions WHERE ended = 0`)
}

// PruneCalls deletes the records of calls that ended before the given time, in short transactions.
func (s *Calls) PruneCalls(ctx context.Context, before time.Time) error {
	return s.sweep(ctx, `DELETE FROM calls WHERE id IN (
		SELECT id FROM calls WHERE ended > 0 AND ended < $2 ORDER BY ended LIMIT $1)`, micros(before))
}

// eraseCalls removes the subscriber from the records of calls, and deletes the webhook deliveries
// about these calls.
func (e *erasure) eraseCalls(ctx context.Context) error {
	args := []any{e.projectID, e.id}
	named := params(len(args), len(e.names))
	for _, name := range e.names {
		args = append(args, name)
	}
	isParty := func(side string) string {
		condition := side + `_subscriber = $2`
		if len(e.names) > 0 {
			condition += ` OR ` + side + `_address <> '' AND LOWER(` + side + `_address) IN (` + named + `)`
		}
		return `project_id = $1 AND (` + condition + `)`
	}

	itsCalls := `SELECT call_id FROM calls WHERE ` + isParty("from") + `
		UNION SELECT call_id FROM calls WHERE ` + isParty("to")
	var found int64
	err := e.tx.Row(ctx, `SELECT COUNT(*) FROM (`+itsCalls+`) AS entries`, args...).Scan(&found)
	if err != nil {
		return fmt.Errorf("counting calls: %w", err)
	}
	if found > 0 {
		e.result.Anonymized["calls"] = found
		if err := e.deleteDeliveries(ctx, `IN (`+itsCalls+`)`, args...); err != nil {
			return err
		}
	}

	alsoCleared := map[string]string{"from": "", "to": ", dialed = ''"}
	for side, more := range alsoCleared {
		err = e.tx.Later(ctx, `UPDATE calls SET `+side+`_name = '', `+side+`_address = '', `+
			side+`_address_id = '', `+side+`_subscriber = ''`+more+` WHERE `+isParty(side), args...)
		if err != nil {
			return fmt.Errorf("erasing from calls: %w", err)
		}
	}
	err = e.tx.Later(ctx, `UPDATE calls SET payer = '' WHERE project_id = $1 AND payer = $2 AND gateway <> ''`,
		e.projectID, e.id)
	if err != nil {
		return fmt.Errorf("erasing from calls: %w", err)
	}
	return nil
}
