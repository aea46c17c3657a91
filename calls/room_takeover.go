package calls

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A room of a lost node is taken over as a whole, with the calls of all members. The first client
// that attaches to its leg or dials the room makes its node take the session over. The other
// clients then attach to this node, whichever node they reach. Members that do not come back leave
// the session one by one.

// takeOver makes this node carry a room session that is an orphan or whose node is lost. Otherwise, it does
// nothing, for example because the session has ended, or another node has taken it over.
func (o *openRooms) takeOver(ctx context.Context, projectID, id string) error {
	o.opening.Lock()
	defer o.opening.Unlock()
	s, err := o.store.FindRoom(ctx, projectID, id)
	if errors.Is(err, problem.NotFound) || err == nil && !s.Ended.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	isLost := orphans{o.calls}.hasRoom(s) || s.Node != o.calls.node && o.calls.peers.isLost(ctx, s.Node)
	if !isLost {
		return nil
	}
	r, err := o.take(ctx, s)
	if errors.Is(err, ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	r.post(r.endIfEmpty) // the calls of all members may have ended in the meantime
	return nil
}

// take takes a room session from its node, which is lost. It returns ErrTaken if another node has
// taken it already. The caller holds o.opening.
func (o *openRooms) take(ctx context.Context, s RoomSession) (*room, error) {
	settings, err := o.settings(ctx, s.ProjectID, s.RoomID)
	if err != nil && !errors.Is(err, problem.NotFound) { // NotFound: the room was deleted
		return nil, err
	}

	members, err := o.store.TakeRoom(ctx, s, o.calls.node)
	if err != nil {
		o.calls.doubt.note(err)
		return nil, err
	}

	o.calls.log.Info("taking over a room session from a lost node", "room_session_id", s.ID, "node", s.Node,
		"members", len(members))
	s.Node = o.calls.node
	r := o.add(s, settings)
	_, err = r.do(context.Background(), func() (Reply, error) { // the session is already here
		r.revive(members)
		return Reply{}, nil
	})
	return r, err
}

// revive adds the calls of a session that this node has taken over. The clients of these calls have
// to attach again.
func (r *room) revive(members []Record) {
	c := r.calls
	r.locked = r.session.Locked
	for _, m := range members {
		if c.hasLegOf(m) {
			c.log.Warn("not taking over a member of a room, because another call uses its id", "call_id", m.ID)
			c.doubt.begin() // the member's call is an orphan
			continue
		}
		m.Node = c.node
		k := c.revive(m, r)
		r.settings.limitStay(k, m.joined())
		r.members = append(r.members, k)
	}

	r.session.Most = max(r.session.Most, len(r.members))
	if c.recorder != nil {
		go r.recordings.resume(r.session.Recorded, r.session.recorded(time.Now()))
	}
}

// present returns how many people in the room have media. The other people have not come back from
// a lost node.
func (r *room) present() int { return len(r.people()) }
