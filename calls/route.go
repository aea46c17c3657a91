package calls

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// A route is a step in the search for a party that answers a call. All targets of a route ring at
// the same time. All routes are planned before the call begins, because the caller's media may only
// use codecs that every phone supports, and cannot change them later.
type route struct {
	targets []target
	ring    time.Duration
	gateway *fabric.Gateway // the gateway of the outside targets; nil if all targets are inside
	payer   string          // the account that the calls of this route count against
	refusal string          // why a target cannot be called; "" if all can

	busy, noAnswer *route // where the call goes next; nil ends the call
}

// A target is a party that rings, with its phones. The phone of a number is a connection to a
// gateway.
type target struct {
	party  Party
	phones []Phone
}

// The limits of routes.
const (
	maxRoutes  = 10 // routes of a call, so that circular forwards end
	maxRinging = 40 // clients that ring at the same time

	// resolveTime limits all look-ups of gateways for one call together. An Invite from a browser may take 5
	// seconds, and asking the nodes of phones may take 3 times pingFor.
	resolveTime = 2500 * time.Millisecond
)

// The reasons why a call is not forwarded.
const (
	reasonForwardGone    = "forward_unknown"
	reasonForwardLoop    = "forward_loop"
	reasonSecondGateway  = "second_gateway"
	reasonCannotBeRouted = "forward_not_possible"
)

// next returns the route to try after this one has ended with the given cause, or nil.
func (r *route) next(c Cause) *route {
	switch c.Text {
	case UserBusy.Text, "REJECT_ALL", CallRejected.Text, NormalClearing.Text:
		return r.busy
	}
	return r.noAnswer
}

// isDeadEnd reports whether the route has no targets, and no other route follows it.
func (r *route) isDeadEnd() bool { return len(r.targets) == 0 && r.busy == nil && r.noAnswer == nil }

// phones returns the phones of this route and of all routes that may follow.
func (r *route) phones() (ringing []Phone) {
	if r == nil {
		return nil
	}
	for _, t := range r.targets {
		ringing = append(ringing, t.phones...)
	}
	return slices.Concat(ringing, r.busy.phones(), r.noAnswer.phones())
}

// limitPhones leaves each target of this route, and of all routes that may follow, at most maxDevices
// phones. It leaves out the phones of the nodes in gone.
func (r *route) limitPhones(gone map[string]bool) {
	if r == nil {
		return
	}
	for i, t := range r.targets {
		isGone := func(p Phone) bool { return gone[p.Socket.Node] }
		phones := slices.DeleteFunc(slices.Clone(t.phones), isGone)
		r.targets[i].phones = phones[:min(len(phones), maxDevices)]
	}
	r.busy.limitPhones(gone)
	r.noAnswer.limitPhones(gone)
}

// isOutside reports whether all targets are called through a gateway.
func (r *route) isOutside() bool { return r != nil && r.gateway != nil && r.lines() == len(r.targets) }

// lines returns the number of targets that are called through a gateway.
func (r *route) lines() (n int) {
	for _, t := range r.targets {
		if t.party.isOutside() {
			n++
		}
	}
	return n
}

// A planner finds the routes of one call.
type planner struct {
	calls   *Calls
	project string
	planned int

	resolveBy  time.Time // when the time for look-ups of gateways ends; zero before the first one
	unresolved []string  // the ids of the gateways whose look-ups have failed
}

// plan returns the route of a call to a party. by is the account that pays if the call leaves
// through a gateway. before holds the keys of the parties that the call must not be forwarded to.
func (p *planner) plan(ctx context.Context, to Party, by string, before []string) (*route, error) {
	r, err := p.planRoute(ctx, to, by, before)
	if err != nil {
		return nil, err
	}
	if err := p.choosePhones(ctx, r); err != nil {
		return nil, err
	}
	return r, nil
}

// choosePhones determines which phones ring. A phone that has registered at a node that is gone cannot
// ring until it registers again. The nodes of all routes are asked at the same time, because a client waits
// only a few seconds for its call to begin.
func (p *planner) choosePhones(ctx context.Context, r *route) error {
	var nodes []string
	if p.calls.nodes != nil {
		for _, phone := range r.phones() {
			nodes = append(nodes, phone.Socket.Node)
		}
	}
	gone, err := p.calls.peers.goneNodes(ctx, nodes)
	if err != nil {
		return err
	}
	r.limitPhones(gone)
	return nil
}

// planRoute is like plan, but each target still has all phones that have registered. before
// holds the keys of the parties that were planned earlier on this path.
func (p *planner) planRoute(ctx context.Context, to Party, by string, before []string) (*route, error) {
	p.planned++
	before = append(slices.Clone(before), to.key())
	r := &route{ring: p.calls.limits.Ring, payer: by}
	f, err := p.addTargets(ctx, r, to)
	if err != nil {
		return nil, err
	}
	if to.GroupID != "" || f.NoAnswer != "" {
		r.ring = min(r.ring, secondsOf(f))
	}

	forwarder := to.id()
	r.busy, err = p.forward(ctx, f.Busy, forwarder, before)
	if err != nil {
		return nil, err
	}
	r.noAnswer, err = p.forward(ctx, f.NoAnswer, forwarder, before)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// addTargets adds a party, or the members of its ring group, to a route. It returns how the party
// forwards calls that the targets do not take.
func (p *planner) addTargets(ctx context.Context, r *route, to Party) (f fabric.Forwarding, err error) {
	if to.GroupID != "" {
		return p.addGroup(ctx, r, to)
	}
	if to.SubscriberID != "" {
		f, err = p.forwardingOf(ctx, to.SubscriberID)
		if err != nil {
			return f, err
		}
	}
	return f, p.add(ctx, r, to)
}

// secondsOf returns how long a callee rings before its calls are forwarded.
func secondsOf(f fabric.Forwarding) time.Duration {
	if f.RingSeconds == 0 {
		return fabric.DefaultRingSeconds * time.Second
	}
	return time.Duration(f.RingSeconds) * time.Second
}

// forwardingOf returns the forwarding of a subscriber. Calls of a disabled subscriber are not
// forwarded.
func (p *planner) forwardingOf(ctx context.Context, id string) (f fabric.Forwarding, err error) {
	s, err := p.calls.fabric.Subscribers.Find(ctx, p.project, id)
	if errors.Is(err, problem.NotFound) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if s.Disabled {
		return f, nil
	}
	return s.Forwarding, nil
}

// forward plans the route to an address or phone number, or returns nil if text is "". If calls
// cannot be forwarded there, the route has no targets, and its refusal names the reason.
func (p *planner) forward(ctx context.Context, text, by string, before []string) (*route, error) {
	if text == "" {
		return nil, nil
	}
	to, reason, err := p.find(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case reason != "":
	case slices.Contains(before, to.key()), p.planned >= maxRoutes:
		reason = reasonForwardLoop
	default:
		return p.planRoute(ctx, to, by, before)
	}
	return &route{refusal: reason}, nil
}

// find returns the party at an address or phone number, or the reason why it cannot ring.
func (p *planner) find(ctx context.Context, text string) (to Party, reason string, err error) {
	if number, ok := fabric.ParseNumber(text); ok {
		return Party{Address: number, Name: number}, "", nil
	}
	a, err := p.calls.fabric.Addresses.FindAt(ctx, p.project, text)
	if errors.Is(err, problem.NotFound) {
		return to, reasonForwardGone, nil
	}
	if err != nil {
		return to, "", err
	}

	to, cause, err := p.calls.directory().partyAt(ctx, a)
	if err != nil {
		return to, "", err
	}
	switch {
	case cause == UnallocatedNumber:
		reason = reasonForwardGone
	case cause != Cause{}, to.RoomID != "", to.ScriptID != "":
		reason = reasonCannotBeRouted
	}
	return to, reason, nil
}

// addGroup adds the members of a ring group to a route, and returns the forwarding of the group.
// The members' own forwards do not apply.
func (p *planner) addGroup(ctx context.Context, r *route, to Party) (f fabric.Forwarding, err error) {
	t, err := p.calls.fabric.Resources.FindThing(ctx, p.project, to.GroupID)
	if errors.Is(err, problem.NotFound) {
		return f, nil // the group was deleted after its address was found
	}
	if err != nil {
		return f, err
	}

	g := fabric.RingGroupOf(*t.Resource)
	r.payer = to.GroupID
	for _, address := range g.Members {
		member, reason, err := p.find(ctx, address)
		if err != nil {
			return f, err
		}
		if reason == "" && member.GroupID != "" {
			reason = reasonCannotBeRouted
		}
		if reason != "" {
			r.refusal = cmp.Or(r.refusal, reason)
			continue
		}
		if err := p.add(ctx, r, member); err != nil {
			return f, err
		}
	}
	return g.Forwarding, nil
}

// add adds a party to the targets of a route, unless the party is already a target.
func (p *planner) add(ctx context.Context, r *route, to Party) error {
	if slices.ContainsFunc(r.targets, func(t target) bool { return t.party.key() == to.key() }) {
		return nil
	}
	if to.isOutside() {
		return p.addOutside(ctx, r, to)
	}
	phones, err := p.calls.directory().phonesOf(ctx, p.project, to)
	if err != nil {
		return err
	}
	r.targets = append(r.targets, target{to, phones})
	return nil
}

// addOutside adds a phone number or gateway to the targets of a route. If the project's rules
// forbid the call, it sets the route's refusal. All targets outside the project are called through
// the same gateway, because the record of a call contains only one gateway.
func (p *planner) addOutside(ctx context.Context, r *route, to Party) error {
	g, reason, err := p.calls.gatewayFor(ctx, p.project, to)
	if err != nil {
		return err
	}
	switch {
	case reason != "":
	case p.calls.trunk == nil:
		reason = reasonNoSIP
	case r.gateway != nil && r.gateway.ID != g.ID:
		reason = reasonSecondGateway
	}
	if reason != "" {
		r.refusal = reason
		return nil
	}

	number := ""
	if to.AddressID == "" {
		number = to.Address
	}

	if slices.Contains(p.unresolved, g.ID) {
		r.refusal = reasonUnreachable
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.resolveFor())
	defer cancel()
	phone, err := p.calls.trunk(ctx, g, number)
	if err != nil {
		p.calls.log.Warn("finding a SIP gateway", "gateway_id", g.ID, "error", err)
		p.unresolved = append(p.unresolved, g.ID)
		r.refusal = reasonUnreachable
		return nil
	}

	r.gateway = &g
	r.targets = append(r.targets, target{to, []Phone{phone}})
	return nil
}

// resolveFor returns how long the next look-up of a gateway may take. If other look-ups may follow, this is
// half of the time that is left, so that one gateway does not make all others unreachable.
func (p *planner) resolveFor() time.Duration {
	if p.planned == 0 {
		return resolveTime
	}
	if p.resolveBy.IsZero() {
		p.resolveBy = time.Now().Add(resolveTime)
	}
	return time.Until(p.resolveBy) / 2
}

// id returns the id of the account that pays for the calls that the party forwards.
func (p Party) id() string {
	if p.GroupID != "" {
		return p.GroupID
	}
	return p.owner()
}

// key returns a string that identifies a party among all parties that a call may reach.
func (p Party) key() string {
	if p.AddressID != "" {
		return p.AddressID
	}
	return p.Address
}
