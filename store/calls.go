package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Calls holds the records of calls.
type Calls struct{ *core }

var callTable = table[calls.Record]{
	"calls", "call", `id, project_id, call_id, state, cause, cause_code, node,
		from_name, from_address, from_address_id, from_subscriber,
		to_name, to_address, to_address_id, to_subscriber, dialed, video, recording_sid,
		received, lost, jitter, round_trip, transport, created, answered, ended`,
	func(r *calls.Record) []any {
		return []any{
			&r.Key, &r.ProjectID, &r.ID, &r.State, &r.Cause.Text, &r.Cause.Code, &r.Node,
			&r.From.Name, &r.From.Address, &r.From.AddressID, &r.From.SubscriberID,
			&r.To.Name, &r.To.Address, &r.To.AddressID, &r.To.SubscriberID, &r.Dialed, &r.Video, &r.RecordingSid,
			&r.Received, &r.Lost, (*period)(&r.Jitter), (*period)(&r.RoundTrip), &r.Transport,
			&r.Created, &r.Answered, &r.Ended,
		}
	},
}

// A period is a duration whose column has microseconds.
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

// SaveCall writes a record over the previous one of the same call, and queues its event. A new
// record whose call id the project has already is problem.Conflict.
func (s *Calls) SaveCall(ctx context.Context, r calls.Record) error {
	return s.change(ctx, callEvent(r), func(t tx) error {
		query, args, err := callTable.insertion(&r)
		if err != nil {
			return err
		}
		var webhooks int
		err = t.Row(ctx, query+` ON CONFLICT (id) DO UPDATE SET state = excluded.state, cause = excluded.cause,
				cause_code = excluded.cause_code, video = excluded.video, recording_sid = excluded.recording_sid,
				received = excluded.received, lost = excluded.lost, jitter = excluded.jitter,
				round_trip = excluded.round_trip, transport = excluded.transport,
				answered = excluded.answered, ended = excluded.ended
			WHERE calls.ended = 0
			RETURNING `+webhooksOf("calls"), args...).Scan(&webhooks)
		if isUnique(err) {
			return problem.Taken("callID", "a call with this callID has been made")
		}
		if err := insertedReturning(err, "call", nil); err != nil {
			return err
		}
		return queueEventOf(ctx, t, webhooks, r, calls.Record.Event)
	})
}

// callEvent is the audit event of a call: one, when it ends.
func callEvent(r calls.Record) audit.Event {
	if r.State != calls.Completed {
		return audit.None("the progress of calls")
	}
	e := audit.Of("call.ended", r.ProjectID, "call", r.ID).With("from", r.From.Address, "to", r.To.Address,
		"cause", r.Cause.Text, "seconds", fmt.Sprint(int(r.Duration(r.Ended).Seconds())))
	if r.From.SubscriberID != "" {
		e = e.By(audit.Subscriber, r.From.SubscriberID)
	}
	return e
}

// FindCall returns a call of a project by its call id.
func (s *Calls) FindCall(ctx context.Context, projectID, id string) (calls.Record, error) {
	return callTable.find(ctx, s.read(), `project_id = $1 AND call_id = $2`, projectID, id)
}

// ListCalls returns a page of a project's calls, newest first.
func (s *Calls) ListCalls(
	ctx context.Context, projectID string, f calls.Filter, q page.Query,
) (page.Page[calls.Record], error) {
	l := callTable.listing(q.From)
	l.desc = true
	l.where.and(`project_id = $%d`, projectID)
	if f.SubscriberID != "" {
		l.where.and(`(from_subscriber = $%d OR to_subscriber = $%[1]d)`, f.SubscriberID)
	}
	switch f.State {
	case "":
	case calls.Completed:
		l.where.and(`ended <> $%d`, int64(0))
	default:
		l.where.and(`state = $%d`, string(f.State))
	}
	return l.page(ctx, s.read(), q)
}

// RunningCalls returns some calls of a node that have not ended, oldest first.
func (s *Calls) RunningCalls(ctx context.Context, node string, most int) ([]calls.Record, error) {
	return callTable.gather(ctx, s.read(), `WHERE ended = 0 AND node = $1 ORDER BY id LIMIT $2`, node, most)
}

// RunningNodes returns the nodes that have calls which have not ended.
func (s *Calls) RunningNodes(ctx context.Context) ([]string, error) {
	return gather(ctx, s.read(), "listing nodes", scanID, `SELECT DISTINCT node FROM calls WHERE ended = 0`)
}

// AskHangUp notes that a running call is to end, for the node that carries it.
func (s *Calls) AskHangUp(ctx context.Context, projectID, id string) error {
	e := audit.Of("call.hung_up", projectID, "call", id)
	return s.once(ctx, e, func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE calls SET hang_up = 1 WHERE project_id = $1 AND call_id = $2 AND ended = 0`,
			projectID, id)
		return oneRow(res, err, "call")
	})
}

// HangUps returns the ids of a node's calls that are to end.
func (s *Calls) HangUps(ctx context.Context, node string) ([]string, error) {
	return gather(ctx, s.read(), "listing calls to end", scanID,
		`SELECT call_id FROM calls WHERE node = $1 AND hang_up <> 0 AND ended = 0`, node)
}
