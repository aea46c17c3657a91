package calls

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A room is an open conference room. Its members are calls, which share its mailbox. Each member is
// the call of one client that dialed the room's address, or a call that was moved in. Only the
// mailbox reads and changes a room, except for the fields marked as fixed.
type room struct {
	*mailbox
	calls    *Calls      // fixed
	mixer    Mixer       // fixed
	session  RoomSession // its ID, ProjectID, RoomID and Node are fixed
	settings roomSettings
	members  []*call // in the order of joining
	locked   bool
	ended    bool
	stage    stage
	updated  time.Time   // when the room was last sent to all members
	update   *time.Timer // runs until the room is sent again; nil if nothing has changed

	recordings recordings // the recordings of all members together
	unnoted    bool       // whether the last attempt to write session.Recorded has failed
	unsaved    bool       // whether a goroutine tries to write the session
}

// roomKey identifies a conference room.
type roomKey struct{ project, id string }

func (r *room) key() roomKey { return roomKey{r.session.ProjectID, r.session.RoomID} }

// errRoomOver is the error for a request to a room whose session has ended.
var errRoomOver = errors.New("the room session has ended")

// dialRoom makes a client a member of a room. The first client opens the room. If another node has
// the room, dialRoom forwards the command to that node. anywhere is as in invite.
func (c *Calls) dialRoom(
	ctx context.Context, client Client, cmd Command, from, to Party, anywhere bool,
) (Reply, error) {
	settings, err := c.rooms.settings(ctx, client.Token.ProjectID, to.RoomID)
	if err != nil {
		return Reply{}, err
	}
	if cause := settings.refuse(time.Now()); cause != (Cause{}) {
		return Reply{}, c.refuse(ctx, client, cmd, from, to, cause)
	}

	const attempts = 5
	for range attempts {
		r, node, err := c.rooms.open(ctx, client.Token.ProjectID, to, settings, anywhere)
		if err != nil {
			return Reply{}, err
		}
		if r == nil {
			reply, err := c.rooms.joinElsewhere(ctx, node, client, cmd)
			if !errors.Is(err, problem.NotFound) { // NotFound: the session has just ended there
				return reply, err
			}
			if err := pause(ctx, dialPause); err != nil {
				return Reply{}, err
			}
			continue
		}

		k := c.newCall(client, cmd, from, to)
		k.inRoom = r
		k.box.Store(r.mailbox)
		k.session = r.session.ID
		k.roomID = r.session.RoomID
		err = beginIn(ctx, k, func() error { return r.admit(k, client, cmd, settings) })
		if !errors.Is(err, errRoomOver) {
			return Reply{}, err
		}
	}
	return Reply{}, roomEnding()
}

// roomEnding returns the error for a client that dials a room whose session is still ending.
func roomEnding() error {
	return &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "the room session is ending; dial again in a moment",
		RetryAfter: time.Second,
	}
}

// dialPause is how long dialRoom waits for another node to write the end of a room session.
const dialPause = 100 * time.Millisecond

// pause waits for a duration. If ctx is done first, it returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// admit begins the call of a new member. If the client cannot join, the call ends with the reason.
func (r *room) admit(k *call, client Client, cmd Command, settings roomSettings) error {
	if r.ended {
		k.stopTimers()
		return errRoomOver
	}

	r.settings = settings
	cause := Cause{}
	switch {
	case r.locked:
		cause = CallRejected
	case settings.MaxMembers > 0 && r.present() >= settings.MaxMembers:
		cause = UserBusy
	case !r.hasPlace(Member{Name: k.record.From.Name}):
		cause = UserBusy
	}
	if cause == (Cause{}) {
		k.record.RoomSession = r.session.ID
	}

	err := k.begin(client, cmd, cause)
	if len(r.members) == 0 {
		r.end(NormalClearing) // the first client could not join
	}
	return err
}

// join makes the caller a member, once its media is open.
func (r *room) join(k *call) {
	l := k.caller()
	k.ringTimer.Stop()
	r.settings.limitStay(k, time.Now())
	if r.settings.joinsWithoutVideo(l) {
		l.member.VideoMuted = true
		l.ownVideoMute = true
		l.media.Mute(Video, true)
		k.keepControls()
	}

	r.members = append(r.members, k)
	r.mixer.Add(l.media)
	k.setState(InCall)
	l.tell(Event{Kind: Answered})
	l.join()
	l.tellState(InCall)

	m := l.member
	k.tellOthers(l, Event{Kind: MemberJoined, Member: &m})
	r.greet()
}

// greet updates the room after a call has become a member. With the first member, it starts the
// recording of the session if the room's settings require one. It also counts the members. If
// there are other members and the settings require it, it plays the chime.
func (r *room) greet() {
	if r.session.Most == 0 && r.settings.Record {
		r.recordFromStart()
	}
	r.session.Most = max(r.session.Most, len(peopleIn(r.legs())))
	if r.settings.Tones && len(r.members) > 1 {
		r.mixer.ChimeUp()
	}
	r.choose()
}

// leave removes a member whose call has ended. The room session ends with its last member.
func (r *room) leave(k *call) {
	before := len(r.members)
	r.forget(k)
	switch {
	case len(r.members) == before:
		return // the call never joined
	case len(r.members) == 0:
		r.end(k.record.Cause)
		return
	}
	if r.settings.Tones {
		r.mixer.ChimeDown()
	}
	r.choose()
}

// end ends the room session and the calls of all members.
func (r *room) end(c Cause) {
	if r.ended {
		return
	}
	r.ended = true
	r.recordings.stop()
	members := r.members
	r.members = nil
	for _, k := range members {
		k.end(c)
	}

	r.stage.stop()
	r.mixer.Close()
	r.session.Ended = nowAfter(r.session.Started)
	// Clients that dial meanwhile wait for the mailbox. If the room were forgotten earlier, open would
	// find the running session in the database, and write its end without the number of its members.
	defer r.calls.rooms.forget(r)
	if err := r.saveEnd(); err != nil && !errors.Is(err, problem.NotFound) {
		r.calls.log.Error("writing the record of a room session", "room_session_id", r.session.ID, "error", err)
		r.calls.rooms.ends.add(r.session)
	}
}

// saveEnd writes the end of the session. If the end of another session could not be written, this one
// waits, too. Otherwise, many rooms could not end before the server stops.
func (r *room) saveEnd() error {
	if r.calls.rooms.ends.isFailing() {
		return errEndsWait
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	return r.calls.rooms.store.EndRoom(ctx, r.session)
}

// post runs f in the room's mailbox. If f panics, the room session ends.
func (r *room) post(f func()) { r.mailbox.post(func() { r.run(f) }) }

// do runs f in the room's mailbox and returns its result, or errRoomOver if the session has ended.
// If ctx is done first, f still runs.
func (r *room) do(ctx context.Context, f func() (Reply, error)) (Reply, error) {
	var reply Reply
	err := errRoomOver // remains if f panics
	done := make(chan struct{})
	r.mailbox.post(func() {
		defer close(done)
		r.run(func() { reply, err = f() })
	})
	select {
	case <-done:
		return reply, err
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

// run calls f unless the session has ended. If f panics, run ends the session.
func (r *room) run(f func()) {
	defer func() {
		if cause := recover(); cause != nil {
			r.calls.log.Error("panic in a room", "room_session_id", r.session.ID,
				"error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
			r.end(TemporaryFailure)
		}
	}()
	if !r.ended {
		f()
	}
}

// legs returns the legs of all members, with their screens and devices.
func (r *room) legs() (present []*leg) {
	for _, k := range r.members {
		for _, l := range k.legs {
			if l.active && !l.ended {
				present = append(present, l)
			}
		}
	}
	return present
}

// leg returns the leg with a member id, or nil.
func (r *room) leg(memberID string) *leg {
	for _, l := range r.legs() {
		if l.member.ID == memberID {
			return l
		}
	}
	return nil
}

// show returns the room as its members see it.
func (r *room) show() *Room {
	s := &Room{
		ID:          r.session.RoomID,
		Session:     r.session.ID,
		Name:        r.session.Address,
		DisplayName: r.session.Name,
		Locked:      r.locked,
		Recording:   r.recordings.any(),
	}
	for _, l := range r.legs() {
		s.Members = append(s.Members, l.member)
	}
	return s
}

// updateEvery is the minimum time between two RoomUpdated events. Each contains all members.
const updateEvery = time.Second

// tellUpdated sends the room to the clients of all members. If it did so less than updateEvery ago,
// it waits until updateEvery has passed.
func (r *room) tellUpdated() {
	if r.update != nil {
		return
	}
	if wait := updateEvery - time.Since(r.updated); wait > 0 {
		r.update = time.AfterFunc(wait, func() {
			r.post(func() {
				r.update = nil
				r.tellUpdated()
			})
		})
		return
	}

	r.updated = time.Now()
	for _, l := range r.legs() {
		l.tell(Event{Kind: RoomUpdated, Room: l.call.room()})
	}
}

// link adds the legs of a call to the mixer, so that they hear the other members. It removes legs
// that are on hold.
func (r *room) link(k *call) {
	for _, l := range k.legs {
		switch {
		case l.ended || !l.active || l.media == nil:
		case l.owner().held:
			r.mixer.Remove(l.media)
		default:
			r.mixer.Add(l.media)
		}
	}
	r.choose()
}
