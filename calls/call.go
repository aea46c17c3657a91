package calls

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A call connects a caller with the clients that the call reaches. In a room, it connects the
// caller with the room. Only the call's mailbox reads and changes it, except for box, visible,
// controlsSaving, controlsFailing, recordings and the fields marked as fixed.
type call struct {
	box        atomic.Pointer[mailbox] // a room's mailbox while the call is in it; see moveTo
	calls      *Calls                  // fixed
	id         string                  // fixed: the id of the leg that dialed
	project    string                  // fixed
	session    string                  // identifies this meeting; a move changes the id
	roomID     string                  // the id of the room or address; a move changes it
	echo       bool                    // fixed: whether callers hear themselves
	inRoom     *room                   // the room that the call is in; nil for other calls
	moving     bool                    // a room's mailbox will make the call a member
	transfer   *transfer               // the transfer in progress; nil without a transfer
	script     *script                 // the script that controls the call; nil without a script
	transfers  int                     // the number of transfers that the sides have begun
	state      State
	record     Record
	late       changes // the changes of the record that could not be written yet
	legs       []*leg
	route      *route      // the targets that ring; nil for echo calls and in rooms
	admitted   *route      // the last route whose calls through a gateway were admitted
	outcome    Cause       // why the former targets of route did not take the call
	capTimer   *time.Timer // checks the limits of calls through a gateway; nil for other calls
	spending   spending    // the minutes of the payer and the project of a call through a gateway
	takenOver  bool        // another node took the call over because it considered this node lost
	recordings recordings
	unnoted    bool // whether the last attempt to write the record's recording fields failed
	ringTimer  *time.Timer
	endTimer   *time.Timer

	controlsChanged bool       // the controls have changed, and a goroutine will write them
	controlsSaving  sync.Mutex // held while the controls are written, never by the mailbox
	controlsFailing bool       // the last attempt to write the controls failed; needs controlsSaving

	visible atomic.Value // holds state, for statistics
}

func (k *call) key() legKey { return legKey{k.project, k.id} }

// do runs f in the call's mailbox and returns its result. If ctx is done first, f still runs.
func (k *call) do(ctx context.Context, f func() (Reply, error)) (Reply, error) {
	var r Reply
	err := errFault // remains if f panics
	done := make(chan struct{})
	k.post(func() {
		defer close(done)
		r, err = f()
	})
	select {
	case <-done:
		return r, err
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

// runIn is like [call.do], but for a function that has no result other than its error.
func runIn(ctx context.Context, k *call, f func() error) error {
	_, err := k.do(ctx, func() (Reply, error) { return Reply{}, f() })
	return err
}

// caller returns the leg that dialed. After a transfer, caller returns the leg that stayed.
func (k *call) caller() *leg { return k.legs[0] }

// waiting returns the leg that is waiting for somebody to answer.
func (k *call) waiting() *leg {
	if k.transfer != nil {
		return k.transfer.stays
	}
	return k.caller()
}

// endsWith reports whether the call ends when l ends. This is the case if l is the caller's or the
// callee's leg, and not a screen or a device. A call that was moved into a room ends only with its
// last side. The side that transfers a call may leave without ending it.
func (k *call) endsWith(l *leg) bool {
	isSide := l.member.Type == Person && (l == k.caller() || l.active)
	if !isSide {
		return false
	}
	if k.transfer != nil && l == k.transfer.by {
		return false
	}
	if k.inRoom == nil {
		return true
	}
	isOtherSide := func(o *leg) bool {
		return o != l && o.active && !o.ended && o.member.Type == Person
	}
	return !slices.ContainsFunc(k.legs, isOtherSide)
}

// setState changes the state and writes the record. If the record cannot be written, the call
// continues, and an answer or the end of the call is written later. If another node has taken the call
// over, this node stops sending events to the call's clients.
func (k *call) setState(s State) {
	err := k.trySetState(s)
	switch {
	case errors.Is(err, ErrTaken):
		k.takenOver = true
	case err != nil && s == Completed:
		writer{k}.endLater()
	case err != nil && s == InCall:
		writer{k}.writeLater(writer{k}.answer())
	}
	if err != nil {
		k.calls.log.Error("writing the record of a call", "call_id", k.id, "state", string(s), "error", err)
	}
}

func (k *call) trySetState(s State) error {
	k.state = s
	k.visible.Store(s)
	k.record.State = s
	switch s {
	case InCall:
		k.record.Answered = nowAfter(k.record.Created)
	case Completed:
		k.record.Ended = k.record.endNow()
	}
	return k.save()
}

// measure copies the measurements of the caller's media into the record.
func (k *call) measure() {
	if k.caller().media == nil || k.caller().ended {
		return
	}
	q := k.caller().media.Quality()
	k.record.Received = int64(q.Received)
	k.record.Lost = int64(q.Lost)
	k.record.Jitter = q.Jitter
	k.record.RoundTrip = q.RoundTrip
	k.record.Transport = q.Path.Transport
}

// saveTimeout limits how long a call waits for its record to be written.
const saveTimeout = 5 * time.Second

// errEndsWait is the error for the end of a call or room session that is not written, because another
// end could not be written.
var errEndsWait = errors.New("other ends wait to be written")

// save first writes the changes that could not be written yet, and then the record. If the end of another call
// could not be written, the database probably does not answer. The end of this call then waits, too.
// Otherwise, each member of a room would delay the end of the next one by saveTimeout.
func (k *call) save() error {
	if k.state == Completed && k.calls.ends.isFailing() {
		return errEndsWait
	}
	save := func(ctx context.Context) error { return callEnd{k.record, &k.late}.save(ctx, k.calls.store) }
	if k.state == InCall { // an answer can be written later
		return k.calls.slowness.first(save)
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	return save(ctx)
}

// end ends the call for all legs.
func (k *call) end(c Cause) { endBy(k, nil, c) }

// endBy ends the call for all legs. hungUp is the leg of the client that hung up, or nil. This
// client is not notified.
func endBy(k *call, hungUp *leg, c Cause) {
	if k.state == Completed {
		return
	}

	k.ringTimer.Stop()
	k.endTimer.Stop()
	if k.capTimer != nil {
		k.capTimer.Stop()
	}
	k.stopScript()
	k.record.Recorded = false
	if k.transfer != nil {
		k.transfer.restore(&k.record)
	}

	k.measure()
	k.record.Cause = c
	answered := k.state == InCall
	k.setState(Completed)
	k.recordings.stop() // only now, so that the event of a recording describes a call that has ended
	k.calls.meter.Ended(k.record)

	for _, l := range slices.Clone(k.legs) {
		cause := l.causeOfEnd(hungUp, c, answered)
		if l == hungUp {
			l.leaveSilently(cause)
		} else {
			l.leave(cause)
		}
	}
	k.calls.remove(k)
	if k.inRoom != nil {
		k.inRoom.leave(k)
	}
}

// causeOfEnd returns the cause to send to the leg when its call has ended with cause c. A leg that
// still rings gets OriginatorCancel if the caller hung up or waited too long, or if the leg rang
// for a transfer.
func (l *leg) causeOfEnd(hungUp *leg, c Cause, answered bool) Cause {
	if l.call.transfer != nil && l.isRinging() {
		return OriginatorCancel
	}
	if !answered && l.inbound && (hungUp == l.call.caller() || c == NoAnswer) {
		return OriginatorCancel
	}
	return c
}

// tellMembers sends an event to the clients of all members.
func (k *call) tellMembers(e Event) { k.tellOthers(nil, e) }

// tellOthers sends an event to the clients of all members except one.
func (k *call) tellOthers(except *leg, e Event) {
	legs := k.legs
	if k.inRoom != nil {
		legs = k.inRoom.legs()
	}
	var to []*leg
	for _, l := range legs {
		if l != except && l.active && !l.ended {
			to = append(to, l)
		}
	}
	k.calls.tellAll(to, e)
}

// room returns the call as its members see it.
func (k *call) room() *Room {
	if k.inRoom != nil {
		r := k.inRoom.show()
		r.Recording = r.Recording || k.recordings.any()
		return r
	}
	r := &Room{
		ID:          k.roomID,
		Session:     k.session,
		Name:        k.record.To.Address,
		DisplayName: k.record.To.Name,
		Recording:   k.recordings.any(),
	}
	for _, l := range k.legs {
		if l.active && !l.ended {
			r.Members = append(r.Members, l.member)
		}
	}
	return r
}

// addLeg registers a leg. It returns false if the id is in use. If the client of a ringing leg has just
// reconnected, the leg uses the new socket.
func (k *call) addLeg(l *leg) bool {
	c := k.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.legs[l.key()] != nil {
		return false
	}

	c.legs[l.key()] = l
	if l.inbound {
		l.client = c.left.assign(l.client, l)
	}
	for _, a := range l.counted {
		act := c.counts().activityOf(a)
		act.legs++
		if l.inbound {
			act.addRinging(l, 1)
		}
	}

	c.projects[k.project]++
	k.legs = append(k.legs, l)
	return true
}

// forgetLeg undoes addLeg, except that the leg stays in k.legs. The legs of people stay there while
// the call exists; sources.drop removes those of screens and devices.
func (k *call) forgetLeg(l *leg) {
	c := k.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.legs, l.key())
	for _, a := range l.counted {
		act := c.counts().activityOf(a)
		act.legs--
		if l.inbound && !l.active {
			act.addRinging(l, -1)
		}
	}
	if c.projects[k.project]--; c.projects[k.project] == 0 {
		delete(c.projects, k.project)
	}
}

// uncountRinging stops counting the leg as ringing. It is called when the leg has answered.
func (k *call) uncountRinging(l *leg) {
	c := k.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range l.counted {
		c.counts().activityOf(a).addRinging(l, -1)
	}
}

func (c *Calls) remove(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, k.key())
}
