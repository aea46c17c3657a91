package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// openRooms holds the conference rooms that are open on this node. Each has one session, with a row
// that prevents other nodes from opening the room. openRooms is safe for concurrent use.
type openRooms struct {
	calls   *Calls
	store   RoomStore
	opening sync.Mutex // held while a room is opened or taken over

	ends unwritten[RoomSession] // sessions that have ended here

	mu    sync.Mutex
	rooms map[roomKey]*room
}

func newOpenRooms(c *Calls, s RoomStore) *openRooms {
	return &openRooms{calls: c, store: s, rooms: make(map[roomKey]*room)}
}

func (o *openRooms) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.rooms)
}

// open returns the room at an address. If no node has the room, or the node that has the room is
// lost, this node opens the room or takes it over. If another node has the room, r is nil, and node is
// the name of that node. If anywhere is false, and the room is not open on this node, open returns
// errNotHere.
func (o *openRooms) open(ctx context.Context, projectID string, to Party, settings roomSettings, anywhere bool) (
	r *room, node string, err error,
) {
	o.opening.Lock()
	defer o.opening.Unlock()
	if r := o.find(roomKey{projectID, to.RoomID}); r != nil {
		return r, "", nil
	}
	if !anywhere {
		return nil, "", errNotHere
	}

	const attempts = 3
	for range attempts {
		s := RoomSession{
			ID:        uuid.Must(uuid.NewV7()).String(),
			ProjectID: projectID,
			RoomID:    to.RoomID,
			Address:   to.Address,
			Name:      to.Name,
			Node:      o.calls.node,
			Started:   time.Now().UTC(),
		}
		err := o.store.OpenRoom(ctx, s)
		if err == nil {
			return o.add(s, settings), "", nil
		}
		if !errors.Is(err, problem.Conflict) {
			o.calls.doubt.note(err)
			return nil, "", err
		}

		other, err := o.store.FindOpenRoom(ctx, projectID, to.RoomID)
		switch {
		case errors.Is(err, problem.NotFound):
			continue
		case err != nil:
			return nil, "", err
		case other.Node != o.calls.node && !o.calls.peers.isLost(ctx, other.Node):
			return nil, other.Node, nil
		}
		if other.Node == o.calls.node {
			if err := o.endUnwritten(ctx, other); err != nil {
				return nil, "", err
			}
			continue
		}

		r, err := o.take(ctx, other)
		if !errors.Is(err, ErrTaken) {
			return r, "", err
		}
	}
	return nil, "", fmt.Errorf("opening a room: another node opened and closed it %d times", attempts)
}

// add opens a room for a session whose row this node has written.
func (o *openRooms) add(s RoomSession, settings roomSettings) *room {
	r := &room{mailbox: &mailbox{}, calls: o.calls, mixer: o.calls.engine.NewMixer(), session: s, settings: settings}
	r.recordings.init(o.calls, r, Recorded{Project: s.ProjectID, RoomSession: s.ID})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rooms[r.key()] = r
	return r
}

// find returns the room with this key if it is open on this node, or nil.
func (o *openRooms) find(key roomKey) *room {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rooms[key]
}

// findSession returns the room with this session if it is open on this node, or nil.
func (o *openRooms) findSession(projectID, id string) *room {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, r := range o.rooms {
		if key.project == projectID && r.session.ID == id {
			return r
		}
	}
	return nil
}

func (o *openRooms) forget(r *room) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rooms[r.key()] == r {
		delete(o.rooms, r.key())
	}
}

// endUnwritten writes the end of a session of this node that is not open here. The end of
// the session could not be written before, or the session is an orphan.
func (o *openRooms) endUnwritten(ctx context.Context, s RoomSession) error {
	end, ok := o.ends.find(func(end RoomSession) bool { return end.ID == s.ID })
	if !ok {
		return o.endLost(ctx, s)
	}
	return problem.IgnoreNotFound(o.store.EndRoom(ctx, end))
}

// endLost writes the end of a session that is an orphan, or whose node is lost.
func (o *openRooms) endLost(ctx context.Context, s RoomSession) error {
	s.Ended = nowAfter(s.Started)
	if err := o.store.EndRoom(ctx, s); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil // another node was faster
}

// endLostOf writes the ends of a dead node's room sessions.
func (o *openRooms) endLostOf(ctx context.Context, node string) error {
	left, err := o.store.RunningRooms(ctx, node)
	if err != nil {
		return err
	}
	for _, s := range left {
		if err := o.endLost(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// carryOutRequests carries out the requests of backends and operators for this node's rooms.
func (o *openRooms) carryOutRequests(ctx context.Context) error {
	o.mu.Lock()
	idle := len(o.rooms) == 0
	o.mu.Unlock()
	if idle {
		return nil
	}

	asked, err := o.store.TakeRoomRequests(ctx, o.calls.node)
	// Even after an error, carry out the requests that were found: the store may not return them
	// again.
	for _, a := range asked {
		r := o.find(roomKey{a.ProjectID, a.RoomID})
		if r == nil || r.session.ID != a.Session {
			continue
		}
		if a.End {
			r.post(func() { r.end(managerRequest) })
		}
		if a.Record && o.calls.recorder != nil {
			go r.recordings.follow()
		}
	}
	return err
}

// joinElsewhere asks the node that has a room to make the client a member.
func (o *openRooms) joinElsewhere(ctx context.Context, node string, client Client, cmd Command) (r Reply, err error) {
	err = sendCommand(ctx, o.calls, node, joinRoomMessage, clientCommand{client, cmd}, &r)
	if err != nil {
		return Reply{}, err
	}
	return r, nil
}
