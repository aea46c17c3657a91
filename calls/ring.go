package calls

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
)

// lookUp limits how long a call waits for the list of online sockets. It also limits how long a
// script waits while the party to connect is looked up.
const lookUp = 5 * time.Second

// maxDevices is the maximum number of a subscriber's sockets that ring, and also of the
// subscriber's phones.
const maxDevices = 10

// A ringer makes clients ring for a call, and handles their answers.
type ringer struct{ *call }

// ringRoute rings the targets of a route at the same time. If no target can ring, it forwards or
// ends the call.
func (k ringer) ringRoute(r *route) {
	k.route = r
	k.ringTimer.Reset(r.ring)
	ctx, cancel := context.WithTimeout(context.Background(), lookUp)
	defer cancel()

	targets, outcome := k.admit(r)
	for _, t := range targets {
		if cause := k.ringTarget(ctx, t); cause != (Cause{}) {
			outcome = outcome.orBetter(cause)
		}
	}

	k.outcome = outcome
	if !k.rings() {
		k.forwardOrEnd(outcome)
		return
	}
	switch {
	case k.transfer != nil:
		k.transfer.by.tell(Event{Kind: Transferring, State: Ringing})
	case k.state != Ringing:
		k.setState(Ringing)
		k.caller().tellState(Ringing)
	}
}

// rings reports whether any client rings.
func (k *call) rings() bool { return slices.ContainsFunc(k.legs, (*leg).isRinging) }

// ringTarget rings the clients of a target. If no client rings, it returns the reason.
func (k ringer) ringTarget(ctx context.Context, t target) Cause {
	sockets, err := k.socketsOf(ctx, t)
	if err != nil {
		k.calls.log.Error("finding the subscribers to ring", "call_id", k.id, "error", err)
		return Congestion
	}
	switch {
	case len(sockets) == 0:
		return UserNotRegistered
	case !t.party.isOutside() && k.calls.counts().isBusy(t.party.owner(), len(sockets), k.waiting().counted):
		return UserBusy
	}

	before := len(k.legs)
	for _, s := range sockets {
		k.ringSocket(s, t.party)
	}

	if len(k.legs) == before {
		return Congestion
	}
	return Cause{}
}

// socketsOf returns the connections of a target's clients: first the newest sockets, then the
// phones.
func (k ringer) socketsOf(ctx context.Context, t target) ([]Socket, error) {
	var sockets []Socket
	if id := t.party.SubscriberID; id != "" {
		online, err := k.calls.fabric.Presence.Sockets(ctx, k.project, id)
		if err != nil {
			return nil, err
		}
		for _, s := range online[:min(len(online), maxDevices)] {
			sockets = append(sockets, Socket{Node: s.Node, ID: s.ID})
		}
	}
	for _, p := range t.phones {
		sockets = append(sockets, p.Socket)
	}
	return sockets, nil
}

// ringSocket rings one client of a party, unless too many ring already.
func (k ringer) ringSocket(s Socket, to Party) {
	ringing := 0
	for _, l := range k.legs {
		if l.isRinging() {
			ringing++
		}
	}
	if ringing >= maxRinging {
		return
	}

	// This token stands for the client's real one, which is unknown until the client answers.
	// Revocations before IssuedAt do not end the leg.
	token := fabric.Token{Kind: fabric.SAT, ProjectID: k.project, SubscriberID: to.SubscriberID, IssuedAt: time.Now()}
	switch {
	case s.Gateway:
		token.Kind = fabric.Guest
		token.ID = k.route.gateway.ID
	case s.Endpoint:
		token.Kind = fabric.Guest
		token.ID = to.EndpointID
	default:
		token.ID = s.Credential // "" for browsers
	}

	l := k.newLeg(newID(), Client{Token: token, Socket: s}, to)
	l.inbound = true
	media, offer, err := k.calls.engine.Offer(watcher{l}, k.waiting().media, termsFor(s))
	if err != nil {
		k.calls.log.Error("opening media to ring a subscriber", "call_id", k.id, "error", err)
		return
	}

	l.media, l.callers = media, k.waiting().counted
	l.offer = offer
	k.addLeg(l)
	l.invite()
}

// admit returns the targets of a route that may ring. If the call would exceed a cap, or its record
// cannot be written, admit leaves out the targets behind the gateway, and returns the cause.
func (k ringer) admit(r *route) (targets []target, cause Cause) {
	if r.gateway == nil || k.admitted == r {
		return r.targets, Cause{}
	}
	before := k.record
	err := k.saveOutbound(r)
	if err == nil {
		return r.targets, Cause{}
	}

	k.record = before
	var over overCap
	if errors.As(err, &over) {
		k.record.Refusal = string(over)
	} else {
		k.calls.log.Error("writing the record of a call", "call_id", k.id, "error", err)
	}
	inside := slices.DeleteFunc(slices.Clone(r.targets), func(t target) bool { return t.party.isOutside() })
	return inside, Congestion
}

// legRefused forwards or ends the call after a ringing leg has left with cause c. If other clients
// still ring, it does nothing.
func (k ringer) legRefused(c Cause) {
	k.outcome = k.outcome.orBetter(c)
	if !k.rings() {
		k.forwardOrEnd(k.outcome)
	}
}

// forwardOrEnd tries the next route after the targets of a route did not take the call. c is the
// cause. After the last route, the call or its transfer ends.
func (k ringer) forwardOrEnd(c Cause) {
	if c == (Cause{}) {
		c = CallRejected // a rule forbids all targets
	}
	next := k.route.next(c)
	if k.record.Refusal == "" {
		k.record.Refusal = k.route.refusal
	}
	if next != nil && next.isDeadEnd() {
		k.record.Refusal = next.refusal
		next = nil
	}
	if next == nil {
		if k.transfer != nil {
			transferring(k).failTransfer(c)
		} else {
			k.end(c)
		}
		return
	}

	for _, l := range slices.Clone(k.legs) {
		if l.isRinging() {
			l.leave(OriginatorCancel)
		}
	}
	k.ringRoute(next)
}

// giveUp forwards or ends a call, or a transfer, that nobody answered in time.
func (k ringer) giveUp() {
	if len(k.legs) == 0 {
		return // the call has not begun, because its route is still being planned
	}
	if k.state == InCall && k.transfer == nil || k.state == Completed {
		return
	}
	if k.route == nil {
		k.end(NoAnswer)
		return
	}
	k.forwardOrEnd(NoAnswer)
}

// noteAnswer notes in the record which party answered the call. For a call through a gateway, it also
// starts the limits on the call's length and minutes.
func (k ringer) noteAnswer(l *leg) {
	k.record.To = l.party
	k.record.Refusal = ""
	if !l.party.isOutside() {
		k.record.Gateway = ""
		k.record.Payer = ""
		k.record.Lines = 1
		return
	}
	k.record.Lines = 1
	k.endTimer.Reset(min(k.calls.limits.Outbound.Longest, k.calls.limits.Most))
	k.watchCaps()
}

// isBusy reports whether the subscriber is already ringing for the maximum number of calls. A
// single caller may use all places except one, so that it cannot block all other callers.
func (c counts) isBusy(subscriberID string, sockets int, callers []account) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	act := c.accounts[subscriberID]
	if act == nil {
		return false
	}

	maxOfCaller := max(c.limits.Ringing-1, 1) * sockets
	return act.ringing >= c.limits.Ringing*sockets ||
		slices.ContainsFunc(callers, func(a account) bool { return act.ringingBy[a.id] >= maxOfCaller })
}
