package calls

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// maxDialed limits the bytes of a dialed address, because records store it.
const maxDialed = 256

// EchoAddress is an address of every project at which callers hear and see themselves.
const EchoAddress = "/public/echo"

// The values of invite's parameter anywhere. With onAnyNode, invite joins a room on the node
// that has it, or opens it here. With onThisNode, invite joins only rooms that are open here.
const (
	onAnyNode  = true
	onThisNode = false
)

// invite begins a call. In this order, it
//
//   - checks the limits,
//   - finds the address and decides whether the client may call it,
//   - opens the caller's media, so that the SDK receives its answer immediately,
//   - connects the call: it rings the destination, joins a room, runs a script, or returns the
//     caller's own media at EchoAddress.
//
// invite returns an error if the command is invalid, if a limit is exceeded, if the id is in use,
// or if the store fails. If the destination cannot be called, the call begins and immediately ends
// with a cause. SDKs show causes to their apps, but may retry a command that failed with an error.
func (c *Calls) invite(ctx context.Context, client Client, cmd Command, anywhere bool) (Reply, error) {
	if err := admitInvite(ctx, c, client, cmd); err != nil {
		return Reply{}, err
	}
	if cmd.Type == Screen || cmd.Type == Device {
		return Reply{}, c.addSource(ctx, client, cmd)
	}

	from, err := c.directory().partyOf(ctx, client, cmd.From)
	if err != nil {
		return Reply{}, err
	}
	to, cause, err := c.directory().destination(ctx, client, cmd.To)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case cause != Cause{}:
		return Reply{}, c.refuse(ctx, client, cmd, from, to, cause)
	case to.RoomID != "":
		return c.dialRoom(ctx, client, cmd, from, to, anywhere)
	case to.isOutside() && client.InsideOnly:
		return Reply{}, c.refuse(ctx, client, cmd, from, to, CallRejected)
	case to.isOutside():
		return Reply{}, c.dialOut(ctx, client, cmd, from, to)
	default:
		return Reply{}, dialInside(ctx, c, client, cmd, from, to)
	}
}

// admitInvite returns an error if an Invite is invalid, exceeds a limit, or has an id that is in
// use. It counts the call against the client's limits.
func admitInvite(ctx context.Context, c *Calls, client Client, cmd Command) error {
	if !isCanonical(cmd.Leg) {
		return problem.BadParam("callID", "callID must be a UUID in lower case")
	}
	if len(cmd.To) > maxDialed || strings.ContainsFunc(cmd.To, isInvisible) {
		return problem.BadParam("destination_number",
			"destination_number must have at most %d bytes and no control or invisible characters", maxDialed)
	}
	if err := c.counts().admitCall(client); err != nil {
		return err
	}
	return c.checkUnused(ctx, client.Token.ProjectID, cmd.Leg)
}

// dialInside begins a call that rings clients or phones of the project, runs a script, or returns
// the caller's own media.
func dialInside(ctx context.Context, c *Calls, client Client, cmd Command, from, to Party) error {
	k := c.newCall(client, cmd, from, to)
	if err := prepare(ctx, k, to); err != nil {
		k.stopTimers()
		return err
	}
	return beginIn(ctx, k, func() error { return k.begin(client, cmd, Cause{}) })
}

// beginIn runs begin in the mailbox of a new call. If ctx is done before begin has returned, the
// client gets an error and forgets the call. The call then ends as soon as it has begun. Otherwise, it
// would ring although its caller is gone.
func beginIn(ctx context.Context, k *call, begin func() error) error {
	err := runIn(ctx, k, begin)
	if err != nil && ctx.Err() != nil {
		k.post(func() {
			if len(k.legs) > 0 { // otherwise, the call has not begun
				k.end(TemporaryFailure)
			}
		})
	}
	return err
}

// prepare sets what the call needs to begin: its script or its route. A call to EchoAddress needs
// neither.
func prepare(ctx context.Context, k *call, to Party) (err error) {
	if to.ScriptID != "" {
		return k.runScript(ctx, to.ScriptID)
	}
	if k.echo {
		return nil
	}
	p := planner{calls: k.calls, project: k.project}
	k.route, err = p.plan(ctx, to, "", nil)
	return err
}

// isInvisible reports whether r is invisible or changes how other characters are displayed. In
// lists of calls, an address that contains r could look like another one.
func isInvisible(r rune) bool { return !unicode.IsPrint(r) }

// checkUnused returns an error if a leg of an answered call, on any node, already has this id. A
// node with such a leg could not take over a lost call that contains another leg with the same id.
func (c *Calls) checkUnused(ctx context.Context, projectID, leg string) error {
	_, err := c.store.FindLeg(ctx, projectID, leg)
	switch {
	case errors.Is(err, problem.NotFound):
		return nil
	case err != nil:
		return err
	}
	return problem.Taken("callID", "a call with this callID exists")
}

// newCall returns a call without legs, and starts its timers.
func (c *Calls) newCall(client Client, cmd Command, from, to Party) *call {
	now := time.Now().UTC()
	k := &call{
		calls:   c,
		id:      cmd.Leg,
		project: client.Token.ProjectID,
		session: newID(),
		roomID:  to.AddressID,
		echo:    to.Address == EchoAddress,
		record: Record{
			Key:       uuid.Must(uuid.NewV7()).String(),
			ID:        cmd.Leg,
			ProjectID: client.Token.ProjectID,
			From:      from,
			To:        to,
			Dialed:    cmd.To,
			Node:      c.node,
			Created:   now,
			Lines:     1,
		},
	}

	k.box.Store(&mailbox{})
	if from.SubscriberID == "" {
		k.record.Guest = client.holder()
	}
	if k.roomID == "" {
		k.roomID = newID()
	}
	k.recordings.init(c, k, Recorded{Project: k.project, CallID: k.id})
	k.visible.Store(Created)
	k.ringTimer = time.AfterFunc(c.limits.Ring, func() { k.post(ringer{k}.giveUp) })
	k.limitLength()
	return k
}

// limitLength makes the call end after its maximum length.
func (k *call) limitLength() {
	k.endTimer = time.AfterFunc(k.timeLeft(), func() { k.post(func() { k.end(NormalClearing) }) })
}

// timeLeft returns how long the call may continue, but at least a second. Calls through a gateway
// have an additional limit, which counts from the answer. If only a transfer makes the call use the
// gateway, the limit counts from the transfer.
func (k *call) timeLeft() time.Duration {
	left := k.calls.limits.Most - time.Since(k.record.Created)
	if k.record.Gateway != "" && !k.record.Answered.IsZero() {
		left = min(left, k.calls.limits.Outbound.Longest-time.Since(k.record.outboundSince()))
	}
	return max(left, time.Second)
}

// begin opens the caller's media. It then connects the call to its destination or, if cause is set,
// ends it with that cause.
func (k *call) begin(client Client, cmd Command, cause Cause) error {
	c := k.calls
	l := k.newLeg(cmd.Leg, client, k.record.From)
	if !k.addLeg(l) {
		k.stopTimers()
		return problem.Taken("callID", "a call with this callID exists")
	}
	c.mu.Lock()
	c.calls[k.key()] = k
	c.mu.Unlock()
	k.ringTimer.Reset(c.limits.Ring)
	l.active = true
	l.described = time.Now()
	if !client.Socket.Phone.IsValid() { // a phone has just authenticated
		l.checkSoon()
	}

	terms := termsFor(client.Socket)
	terms.Codecs = commonCodecs(k.route.phones())
	if k.script != nil {
		terms.Codecs = scriptCodecs
	}
	media, answer, err := k.openMedia(l, cmd.SDP, terms)
	if err != nil {
		k.abandon(l)
		return err
	}
	l.media = media
	k.record.Video = slices.Contains(media.Kinds(), Video)
	l.noteVideo()
	cause, err = k.saveFirst(cause)
	if err != nil {
		c.doubt.note(err)
		media.Close()
		k.abandon(l)
		return err
	}
	l.tellState(Created)
	l.tell(Event{Kind: EarlyMedia, SDP: answer})

	switch {
	case cause != Cause{}:
		k.end(cause)
	case k.inRoom != nil:
		k.inRoom.join(k)
	case k.script != nil:
		go k.script.run()
	case k.echo:
		k.answerEcho()
	default:
		ringer{k}.ringRoute(k.route)
	}
	return nil
}

// openMedia answers the offer of a leg's client. In a room, the mixer answers. In a script, the
// script answers.
func (k *call) openMedia(l *leg, offer string, t Terms) (Media, string, error) {
	if k.inRoom != nil {
		return k.inRoom.mixer.Answer(watcher{l}, offer, t)
	}
	if k.script != nil {
		return k.script.openMedia(watcher{l}, offer, t)
	}
	return k.calls.engine.Answer(watcher{l}, offer, t)
}

// stopTimers stops the timers of a call that does not begin.
func (k *call) stopTimers() {
	k.ringTimer.Stop()
	k.endTimer.Stop()
}

// abandon removes a call that never began.
func (k *call) abandon(l *leg) {
	k.stopTimers()
	k.stopScript()
	k.state = Completed
	l.ended = true
	k.forgetLeg(l)
	k.calls.remove(k)
}

// answerEcho connects the caller's media to the caller itself.
func (k *call) answerEcho() {
	l := k.caller()
	for _, kind := range []Kind{Audio, Video} {
		l.media.Link(kind, l.media)
	}
	k.ringTimer.Stop()
	k.setState(InCall)
	l.tell(Event{Kind: Answered})
	l.join()
	l.tellState(InCall)
}
