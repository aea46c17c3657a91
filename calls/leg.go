package calls

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/selvage/selvage/internal/problem"
)

// A leg is one client's part in a call. Only functions in the call's mailbox read and write it,
// except for fields whose comments say otherwise.
type leg struct {
	// Fixed.
	call    *call
	id      string
	holder  string    // the holder of its client's token; see Client.holder
	inbound bool      // the client was called
	offer   string    // the description in the invitation; "" unless the client was called
	counted []account // the accounts that the leg counts against
	callers []account // the caller's accounts, which count this leg while it rings

	// Used outside of the mailbox, too.
	at      atomic.Value // the client's current Socket, which the mailbox may not know yet; see rebind
	pressed atomic.Int32 // keys that Pressed has posted to the mailbox, and that have not been handled

	member Member
	party  Party
	media  Media
	client Client
	active bool // the leg is a member: it dialed, or it answered
	held   bool
	ended  bool

	// How the leg notices that its client is gone.
	heard      int64     // result of Tokens.Heard when the token was last checked
	socketLost time.Time // zero while the client has a socket
	mediaLost  time.Time // zero while packets arrive
	described  time.Time // when the client's description arrived; zero before, and once media flows

	changes *rate.Limiter // limits notifications to members; a screen shares its owner's limiter
	pending []string      // changes to be sent later, as in Event.Updated

	// The client muted its microphone or camera itself, so nobody else may unmute it.
	ownAudioMute bool
	ownVideoMute bool

	video      bool      // the client sends video
	sees       string    // in a room, the member that the client sees
	handRaised time.Time // when the member last raised its hand
}

// A legKey identifies a leg. Clients choose most ids, so legs in two projects may have the same id.
type legKey struct{ project, id string }

func (l *leg) key() legKey { return legKey{l.call.project, l.id} }

// newLeg returns a leg without media for a client that dials. For a client that rings, set the
// leg's field inbound.
func (k *call) newLeg(id string, client Client, party Party) *leg {
	l := &leg{
		call:      k,
		id:        id,
		holder:    client.holder(),
		client:    client,
		party:     party,
		counted:   accountsOf(client),
		heard:     k.calls.fabric.Tokens.Heard(),
		member:    newMember(id, party),
		mediaLost: time.Now(),
		changes:   changeLimit(),
	}
	l.at.Store(client.Socket)
	return l
}

// newMember returns the member for the leg of a party.
func newMember(leg string, party Party) Member {
	m := Member{
		ID:           leg,
		Leg:          leg,
		Type:         Person,
		Name:         party.Name,
		SubscriberID: party.SubscriberID,
		AddressID:    party.AddressID,
	}
	if party.Address == Anonymous {
		m.SubscriberID = ""
	}
	return m
}

// rebind makes the leg use the present socket and token of its client. Later events go to this socket.
// The socket was stored in at before rebind was posted to the mailbox. If the client has got another
// socket in the meantime, rebind does nothing.
func (l *leg) rebind(to Client) {
	if l.at.Load().(Socket).ID != to.Socket.ID {
		return
	}
	l.client = to
	l.socketLost = time.Time{}
	l.checkSoon()
}

// checkSoon makes the next tick check the client's token, which may have been revoked just before its
// command arrived.
func (l *leg) checkSoon() { l.heard = l.call.calls.fabric.Tokens.Heard() - 1 }

// tell sends an event to the leg's client.
func (l *leg) tell(e Event) {
	k := l.call
	if k.takenOver {
		return
	}
	e.Project = k.project
	e.Node = k.calls.node
	e.At = time.Now()
	e.Leg = l.id
	e.MemberID = l.member.ID
	e.Inbound = l.inbound
	e.RoomSession = k.session
	e.RoomID = k.roomID
	e.Created = k.record.Created
	k.calls.tell(l.client.Socket, l.holder, e)
}

// invite sends the client of a ringing leg the invitation.
func (l *leg) invite() {
	l.tell(Event{Kind: Invited, SDP: l.offer, From: l.call.waiting().party, To: l.party})
}

// inviteLater sends the client the invitation again, unless it answers or reconnects in the meantime.
// SDKs ignore an invitation that they know, but they forget it as soon as the call is accepted. They
// send the answer later, when their media is ready.
func (l *leg) inviteLater() {
	to := l.client.Socket
	time.AfterFunc(inviteAgainAfter, func() {
		l.call.post(func() {
			if l.isRinging() && l.client.Socket == to {
				l.invite()
			}
		})
	})
}

// tellState sends the state of the call to the client.
func (l *leg) tellState(s State) {
	l.tell(Event{Kind: StateChanged, State: s, From: l.call.record.From, To: l.call.record.To})
}

// endIfGone ends the leg if its token was revoked or its client is gone. heard is the current result
// of Tokens.Heard.
func (l *leg) endIfGone(now time.Time, heard int64) {
	if l.ended {
		return
	}
	if l.checkRevoked(heard) {
		l.hangUp(TokenRevoked)
		return
	}

	var withoutSocket, withoutMedia time.Duration
	if !l.socketLost.IsZero() {
		withoutSocket = now.Sub(l.socketLost)
	}
	if !l.mediaLost.IsZero() {
		withoutMedia = now.Sub(l.mediaLost)
	}

	switch {
	case withoutSocket > comeBack && !l.isExpired(now):
		l.hangUp(RecoveryTimeout)
	case withoutSocket > attachWithin && l.media == nil:
		l.hangUp(NodeLost) // the client has not reconnected after its node was lost
	case withoutSocket > goneAfter && withoutMedia > goneAfter && l.media != nil:
		l.hangUp(RecoveryTimeout)
	case withoutMedia > noMedia && l.active && l.call.state == InCall:
		l.hangUp(MediaTimeout)
	}
}

// isExpired reports whether the client's token has expired. The relay then closes the client's socket,
// but the call continues while the client sends media. Tokens of phones do not expire.
func (l *leg) isExpired(now time.Time) bool {
	expires := l.client.Token.ExpiresAt
	return !expires.IsZero() && !now.Before(expires)
}

// awaitMedia restarts the time within which the client's media must arrive, unless it has arrived. A
// calling phone sends media only after the call is answered, which may take longer than noMedia.
func (l *leg) awaitMedia() {
	if !l.mediaLost.IsZero() {
		l.mediaLost = time.Now()
	}
}

// checkRevoked reports whether the token was revoked. It checks the token only if the node has
// received revocations since the last check. If the node cannot know because it receives no
// revocations, checkRevoked returns false, and the next tick checks the token again.
func (l *leg) checkRevoked(heard int64) bool {
	if l.heard == heard {
		return false
	}
	err := l.call.calls.fabric.Tokens.Revoked(l.client.Token)
	if err == nil {
		l.heard = heard
	}
	return errors.Is(err, problem.Unauthenticated)
}

// hangUp ends the leg. It also ends the call if the call needs the leg. If the leg was the last one
// ringing, hangUp forwards or ends the call.
func (l *leg) hangUp(c Cause) {
	if l.isRinging() {
		l.leave(c)
		ringer{l.call}.legRefused(c)
		return
	}
	l.depart(c)
}

// depart ends a leg that does not ring and notifies its client. If the call ends with the leg,
// depart ends the call as well. Otherwise, it also ends the person's screens and devices.
func (l *leg) depart(c Cause) {
	k := l.call
	if k.endsWith(l) {
		k.end(c)
		return
	}
	l.leaveSources(c)
	l.leave(c)
	k.link()
}

// departSilently is like depart, for a client that has hung up. It does not notify the client.
func (l *leg) departSilently(c Cause) {
	k := l.call
	if k.endsWith(l) {
		endBy(k, l, c)
		return
	}
	l.leaveSources(c)
	l.leaveSilently(c)
	k.link()
}

// leaveSources ends the screens and devices of a leg that is about to leave. For the caller's leg,
// it also copies the measurements of the media into the record.
func (l *leg) leaveSources(c Cause) {
	if l == l.call.caller() {
		l.call.measure()
	}
	for _, source := range slices.Clone(l.call.legs) {
		if source != l && source.owner() == l {
			source.leave(c)
		}
	}
}

// owner returns the leg of the person that the leg belongs to. This is the leg itself, or the leg
// of the member that shares the screen or has the device.
func (l *leg) owner() *leg {
	if l.member.Type == Person {
		return l
	}
	for _, other := range l.call.legs {
		if other.member.ID == l.member.Parent {
			return other
		}
	}
	return l
}

// isRinging reports whether the leg's client rings.
func (l *leg) isRinging() bool { return l.inbound && !l.active && !l.ended }

// leave ends only this leg and notifies its client.
func (l *leg) leave(c Cause) { l.close(c, true) }

// leaveSilently ends only this leg. It does not notify the client, which has hung up.
func (l *leg) leaveSilently(c Cause) { l.close(c, false) }

// close ends only this leg. If the leg was a member, close notifies the other members. If notify is
// true, it also notifies the leg's own client.
func (l *leg) close(c Cause, notify bool) {
	if l.ended {
		return
	}
	l.ended = true
	if l.media != nil {
		l.media.Close()
	}
	l.call.forgetLeg(l)

	// SDKs forget the call when they receive HungUp, so all other events come first.
	if notify {
		l.tellState(Completed)
		if l.active {
			l.tell(Event{Kind: Left, Cause: c})
		}
		l.tell(Event{Kind: HungUp, Cause: c})
	}
	in := l.call.inRoom
	refused := in != nil && !slices.Contains(in.members, l.call) // the room did not admit the call
	if l.active && !refused {
		gone := l.member
		l.call.tellOthers(l, Event{Kind: MemberLeft, Member: &gone, Cause: c})
	}
	if l.member.Type != Person {
		sources{l.call}.drop(l)
	}
}

// A watcher passes what the engine observes to the call's mailbox.
type watcher struct{ leg *leg }

func (w watcher) Connected(Path) {
	now := time.Now()
	w.leg.call.post(func() {
		l := w.leg
		l.mediaLost = time.Time{}
		if s := l.call.script; s != nil {
			s.noteConnected()
		}
		if !l.described.IsZero() {
			l.call.calls.meter.Connected(now.Sub(l.described))
			l.described = time.Time{}
		}
	})
}

func (w watcher) Lost() {
	w.leg.call.post(func() { w.leg.mediaLost = time.Now() })
}

func (w watcher) Failed(err error) {
	w.leg.call.post(func() {
		k := w.leg.call
		k.calls.log.Error("the media of a call failed", "call_id", k.id, "leg_id", w.leg.id, "error", err)
		if !w.leg.ended {
			w.leg.hangUp(TemporaryFailure)
		}
	})
}

func (w watcher) Talking(talking bool) {
	w.leg.call.post(func() {
		l := w.leg
		if l.ended || !l.active || l.member.Talking == talking {
			return
		}
		l.member.Talking = talking
		m := l.member
		l.call.tellMembers(Event{Kind: MemberTalking, Member: &m})
		if l.call.inRoom != nil {
			l.call.inRoom.choose()
		}
	})
}

// Pressed passes a key on to the script. If maxDigits keys are waiting, it drops the key, because a
// client can send telephone events faster than the mailbox handles them.
func (w watcher) Pressed(digit byte) {
	l := w.leg
	if l.pressed.Add(1) > maxDigits {
		l.pressed.Add(-1)
		return
	}
	l.call.post(func() {
		l.pressed.Add(-1)
		if s := l.call.script; s != nil {
			s.press(string(digit))
		}
	})
}

func newID() string { return uuid.NewString() }
