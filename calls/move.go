package calls

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// An answered call between two parties can move into a conference room, with both sides, and out
// again. The call keeps its ids, its record, its recordings and its media.
//
// In the room, the call uses the room's mailbox. Functions that were posted to the call's own
// mailbox earlier are posted to the room's mailbox when their turn comes; see call.post.

// The errors of calls that cannot move.
var (
	errNotMovable = problem.New(problem.Conflict, "not_movable",
		"only an answered call between two parties can move")
	errNotMovedIn = problem.New(problem.Conflict, "not_movable", "the call is not in a room, or a side of it has left")
	errNotRoom    = &problem.Error{
		Kind:    problem.Invalid,
		Code:    "no_room",
		Param:   "address",
		Message: "address must be that of a conference room",
	}
	errRoomNotOpen   = problem.New(problem.Conflict, "room_not_open", "the room is not open now")
	errRoomLocked    = problem.New(problem.Conflict, "room_locked", "the room is locked")
	errRoomFull      = problem.New(problem.Conflict, "room_full", "the room has no place for both sides of the call")
	errRoomElsewhere = problem.New(problem.Conflict, "room_elsewhere",
		"the room is in use on another server: both sides can dial the room's address instead, "+
			"or the call can move once the room is empty")
)

// A moveRequest asks the node that carries a call to move it.
type moveRequest struct {
	Project, Call string
	Address       string // the address of the room; "" to leave the room
	Origin        audit.Origin
}

// Move moves a running call of a project into the conference room at an address, with both sides.
// If address is "", the call leaves the room that it was moved into, and the two sides talk to each
// other again. Move works on every node.
//
// Move returns problem.NotFound if the call is unknown or has ended. It returns problem.Invalid if
// no room has the address, or if the room cannot mix the call's audio. It returns problem.Conflict
// if the call is not between two parties. It also returns problem.Conflict if the room is locked,
// full, not open now, or not on the call's node.
func (c *Calls) Move(ctx context.Context, projectID, id, address string) error {
	if _, err := uuid.Parse(id); err != nil {
		return problem.NoSuch("call")
	}
	m := moveRequest{Project: projectID, Call: id, Address: address, Origin: audit.From(ctx)}
	err := c.moveHere(ctx, m)
	if !errors.Is(err, errNotHere) || c.nodes == nil {
		return err
	}

	r, err := c.store.FindCall(ctx, projectID, id)
	if err != nil {
		return err
	}
	if !r.Ended.IsZero() || r.Node == c.node {
		return problem.NoSuch("call")
	}
	return c.nodes.Ask(ctx, r.Node, moveCallMessage, m, &struct{}{})
}

// moveHere carries out a request for a call of this node, or returns errNotHere.
func (c *Calls) moveHere(ctx context.Context, m moveRequest) error {
	k := c.find(m.Project, m.Call)
	if k == nil {
		return errNotHere
	}
	if m.Address == "" {
		return runIn(ctx, k, func() error { return k.leaveRoom(ctx, "") })
	}

	a, err := c.fabric.Addresses.FindAt(ctx, m.Project, m.Address)
	if errors.Is(err, problem.NotFound) {
		return errNotRoom
	}
	if err != nil {
		return err
	}
	to, _, err := c.directory().partyAt(ctx, a)
	if err != nil {
		return err
	}
	return k.enterRoom(ctx, to, nil, "")
}

// moveByClient carries out a Move command of a leg's client. The client may move the call only into
// rooms that it may dial.
func (c *Calls) moveByClient(ctx context.Context, client Client, l *leg, address string) error {
	k := l.call
	_, err := k.do(ctx, func() (Reply, error) {
		l.rebind(client)
		return Reply{}, l.mayMove()
	})
	if err != nil {
		return err
	}
	if address == "" {
		return runIn(ctx, k, func() error { return k.leaveRoom(ctx, client.Token.SubscriberID) })
	}

	if err := c.counts().admitMove(client); err != nil {
		return err
	}
	to, cause, err := c.directory().destination(ctx, client, address)
	if err != nil {
		return err
	}
	if cause != (Cause{}) {
		return errNotRoom
	}
	return k.enterRoom(ctx, to, nil, client.Token.SubscriberID)
}

// mayMove returns an error unless the leg is one side of the call.
func (l *leg) mayMove() error {
	if l.ended || !l.active || l.member.Type != Person {
		return errNotMovable
	}
	return nil
}

// enterRoom moves the call into the room of a party. If the party has no room, it returns
// errNotRoom. s is the script that controls the call, or nil. by is the subscriber who requested
// the move, or "".
func (k *call) enterRoom(ctx context.Context, to Party, s *script, by string) error {
	if to.RoomID == "" {
		return errNotRoom
	}
	c := k.calls
	settings, err := c.rooms.settings(ctx, k.project, to.RoomID)
	if errors.Is(err, problem.NotFound) {
		return errNotRoom
	}
	if err != nil {
		return err
	}
	if settings.refuse(time.Now()) != (Cause{}) {
		return errRoomNotOpen
	}

	if err := runIn(ctx, k, func() error { return k.movable(s) }); err != nil {
		return err // no room has been opened yet
	}

	const attempts = 5
	for range attempts {
		r, _, err := c.rooms.open(ctx, k.project, to, settings, true)
		if err != nil {
			return err
		}
		if r == nil {
			return errRoomElsewhere
		}
		if err := k.moveTo(ctx, r, settings, s, by); !errors.Is(err, errRoomOver) {
			return err
		}
	}
	return roomEnding()
}

// movable returns an error unless the call can move into a room. s is the script that moves it, or
// nil.
func (k *call) movable(s *script) error {
	isConnected := k.state == InCall && !k.echo && len(k.people()) == sidesOf(k)
	isBusy := k.inRoom != nil || k.moving || k.transfer != nil || k.script != s || len(k.late) >= maxLate
	if !isConnected || isBusy {
		return errNotMovable
	}
	return nil
}

// sidesOf returns the number of sides of a call if none of them has left. A script is not a side.
func sidesOf(k *call) int {
	if k.script != nil {
		return 1
	}
	return 2
}

// moveTo makes the call use a room's mailbox and become a member of the room. If the room refuses
// the call, or has ended, the call continues as before, with its own mailbox. s and by are as in
// enterRoom.
func (k *call) moveTo(ctx context.Context, r *room, settings roomSettings, s *script, by string) error {
	result := make(chan error, 1)
	enter := func() {
		err := errRoomOver
		if !r.ended {
			err = errFault // returned if take panics
			r.run(func() { err = r.take(ctx, k, settings, by) })
		}
		r.endIfEmpty()
		k.moving = false
		switch {
		case errors.Is(err, errFault):
			k.end(TemporaryFailure)
		case err != nil:
			k.box.Store(&mailbox{})
		}
		result <- err
	}

	_, err := k.do(ctx, func() (Reply, error) {
		if err := k.movable(s); err != nil {
			r.post(r.endIfEmpty)
			return Reply{}, err
		}
		k.moving = true
		k.box.Store(r.mailbox)
		r.mailbox.post(enter)
		return Reply{}, nil
	})
	if err != nil {
		return err
	}

	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endIfEmpty ends the room session if it has no members, for example because the call for which it
// was opened did not move.
func (r *room) endIfEmpty() {
	if len(r.members) == 0 {
		r.end(NormalClearing)
	}
}

// take adds a call, with all its sides, to the members of the room. A script loses control of the call. If
// the room refuses the call, nothing changes. by is as in enterRoom.
func (r *room) take(ctx context.Context, k *call, settings roomSettings, by string) error {
	r.settings = settings
	people := k.people()
	switch {
	case k.state != InCall || len(people) != sidesOf(k):
		return errNotMovable // a side has already left
	case r.locked:
		return errRoomLocked
	case settings.MaxMembers > 0 && r.present()+len(people) > settings.MaxMembers:
		return errRoomFull
	case !r.hasPlace(k.room().Members...):
		return errRoomFull
	}

	k.unlink()
	if err := r.adopt(k); err != nil {
		k.link()
		return err
	}
	k.stopScript()

	k.inRoom = r
	k.session = r.session.ID
	k.roomID = r.session.RoomID
	k.record.RoomSession = r.session.ID
	k.record.Joined = time.Now().UTC()
	settings.limitStay(k, k.record.Joined)
	r.members = append(r.members, k)
	k.link()
	writer{k}.saveMove(ctx, RoomChange{Session: r.session, By: by})
	for _, l := range people {
		l.video = r.mixer.SendsVideo(l.media)
		if settings.joinsWithoutVideo(l) {
			l.member.VideoMuted = true
			l.ownVideoMute = true
			l.media.Mute(Video, true)
			k.keepControls()
		}
		l.join()
		m := l.member
		k.tellOthers(l, Event{Kind: MemberJoined, Member: &m})
	}
	for _, s := range (sources{k}).present() {
		s.video = r.mixer.SendsVideo(s.media)
		m := s.member
		k.tellOthers(s, Event{Kind: MemberJoined, Member: &m})
	}
	r.greet()
	return nil
}

// adopt prepares the media of a call for the room's mixer. If the audio of one side cannot be
// mixed, no media changes.
func (r *room) adopt(k *call) error {
	for i, l := range k.legs {
		if l.ended || l.media == nil {
			continue
		}
		err := r.mixer.Adopt(l.media)
		if err != nil && l.member.Type == Person {
			r.release(k.legs[:i])
			return err
		}
	}
	return nil
}

// release undoes adopt.
func (r *room) release(legs []*leg) {
	for _, l := range legs {
		if l.media != nil {
			r.mixer.Release(l.media)
		}
	}
}

// A RoomChange describes the move of a call into a room, or out of a room.
type RoomChange struct {
	Session RoomSession
	Joined  time.Time // when the call moved into the room that it leaves
	Left    time.Time // zero if the call moves into the room
	By      string    // the subscriber who requested the move; "" if somebody else did
}

// saveMove writes that the call has moved. The audit event has the origin in ctx.
func (k writer) saveMove(ctx context.Context, m RoomChange) {
	origin := audit.From(ctx)
	after := k.record
	k.write(change{
		record:  after,
		failure: "writing that a call has moved",
		write: func(ctx context.Context, r Record) error {
			return k.calls.store.SaveMove(audit.With(ctx, &origin), r, m)
		},
		isIn: func(stored Record) bool { return stored.RoomSession == after.RoomSession },
	})
}
