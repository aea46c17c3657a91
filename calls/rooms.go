package calls

import (
	"context"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Rooms gives access to the stored room sessions of all nodes, both running and ended. Like
// [Records], it also works in a process that carries no calls, and is safe for concurrent use.
type Rooms struct {
	store RoomStore
	calls Store
}

// NewRooms returns a Rooms that reads sessions from one store and their members from another.
func NewRooms(sessions RoomStore, calls Store) *Rooms { return &Rooms{sessions, calls} }

// Find returns a room session of a project.
func (r *Rooms) Find(ctx context.Context, projectID, id string) (RoomSession, error) {
	if _, err := uuid.Parse(id); err != nil {
		return RoomSession{}, problem.NoSuch("room session")
	}
	return r.store.FindRoom(ctx, projectID, id)
}

// List returns a page of a project's room sessions, newest first.
func (r *Rooms) List(
	ctx context.Context, projectID string, f RoomFilter, q page.Query,
) (page.Page[RoomSession], error) {
	return r.store.ListRooms(ctx, projectID, f, q)
}

// Members returns a page of the members of a room session. The member whose call began last comes
// first.
func (r *Rooms) Members(ctx context.Context, projectID, id string, q page.Query) (page.Page[Record], error) {
	s, err := r.Find(ctx, projectID, id)
	if err != nil {
		return page.Page[Record]{}, err
	}
	return r.calls.ListCalls(ctx, projectID, Filter{RoomSession: s.ID}, q)
}

// End ends a room session for all members within a second, no matter which node carries it. It
// returns problem.NotFound if the session is unknown or has ended.
func (r *Rooms) End(ctx context.Context, projectID, id string) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("room session")
	}
	return r.store.AskEndRoom(ctx, projectID, id)
}

// Record makes the node that carries a room session start, pause or stop recording, as the stored
// status of the session's recordings requires. It returns problem.NotFound if the session is
// unknown or has ended.
func (r *Rooms) Record(ctx context.Context, projectID, id string) error {
	return r.store.AskRecordRoom(ctx, projectID, id)
}
