package calls

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Records gives access to the stored calls of all nodes, running and past. It also works in a
// process that carries no calls, and is safe for concurrent use.
type Records struct{ store Store }

// NewRecords returns Records for the calls in s.
func NewRecords(s Store) *Records { return &Records{s} }

// Find returns a call of a project. If subscriberID is set, Find only returns calls that this
// subscriber made or received.
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

// HangUp ends a project's call for all members within a second, no matter which node carries it. It
// returns problem.NotFound if the call is unknown or has ended.
func (r *Records) HangUp(ctx context.Context, projectID, id string) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("call")
	}
	return r.store.AskHangUp(ctx, projectID, id)
}

// Mute mutes or unmutes a member of a room within a second, no matter which node carries the room.
// id is the id of the member's call. Mute returns problem.NotFound if the member is unknown or has
// left.
func (r *Records) Mute(ctx context.Context, projectID, id string, muted bool) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("member")
	}
	return r.store.AskMute(ctx, projectID, id, muted)
}

// Record notifies the node that carries a running call that the stored status of the call's
// recordings has changed, so that the node's recorder applies it. It returns problem.NotFound if
// the call is unknown or has ended.
func (r *Records) Record(ctx context.Context, projectID, id string) error {
	return r.store.AskRecord(ctx, projectID, id)
}

// Prune deletes the records of calls that ended before the given time, but not their recordings.
func (r *Records) Prune(ctx context.Context, before time.Time) error {
	return r.store.PruneCalls(ctx, before)
}
