package calls

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Records are the calls of all nodes, running and past, as their rows show them. A process
// that carries no calls has them as well. They are safe for concurrent use.
type Records struct{ store Store }

// NewRecords returns the calls that a store keeps.
func NewRecords(s Store) *Records { return &Records{s} }

// Find returns a call of a project. If subscriberID is set, only a call that this subscriber
// made or received is found.
func (r *Records) Find(ctx context.Context, projectID, subscriberID, id string) (Record, error) {
	if _, err := uuid.Parse(id); err != nil {
		return Record{}, problem.NoSuch("call")
	}
	rec, err := r.store.FindCall(ctx, projectID, id)
	if err != nil {
		return Record{}, err
	}
	if subscriberID != "" && rec.From.SubscriberID != subscriberID && rec.To.SubscriberID != subscriberID {
		return Record{}, problem.NoSuch("call")
	}
	return rec, nil
}

// List returns a page of a project's calls, newest first.
func (r *Records) List(ctx context.Context, projectID string, f Filter, q page.Query) (page.Page[Record], error) {
	return r.store.ListCalls(ctx, projectID, f, q)
}

// HangUp ends a project's call for everybody, on whichever node it is, within a second. It
// returns problem.NotFound if the call is unknown or has ended.
func (r *Records) HangUp(ctx context.Context, projectID, id string) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("call")
	}
	return r.store.AskHangUp(ctx, projectID, id)
}

// Record asks the node that carries a running call to follow the recordings that lists show of
// it. A call that is unknown or has ended is problem.NotFound.
func (r *Records) Record(ctx context.Context, projectID, id string) error {
	return r.store.AskRecord(ctx, projectID, id)
}

// Prune deletes the records of calls that ended before a time. Their recordings stay.
func (r *Records) Prune(ctx context.Context, before time.Time) error {
	return r.store.PruneCalls(ctx, before)
}
