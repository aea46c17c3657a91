package calls

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Each side of an answered call between two parties can transfer the call. A target then takes the
// place of that side. The same rules and caps apply as if that side had dialed the target, and the
// account of that side pays. Until somebody answers, the two sides can still talk, and the side
// that transfers the call may hang up. The call keeps its id and its record.

// maxTransfers is how many times the sides of one call may try to transfer it.
const maxTransfers = 10

// The errors of transfers that cannot begin.
var (
	errNotTransferable = problem.New(problem.Conflict, "not_transferable",
		"only an answered call between two parties can be transferred, one transfer at a time")
	errMayNotTransfer = problem.New(problem.Forbidden, "not_permitted",
		"only subscribers and SIP endpoints may transfer calls")
)

// A transfer is the search for a party that replaces a side of a call.
type transfer struct {
	by, stays *leg
	before    Record // the record before the transfer, to restore the bill if nobody answers
}

// A Transfer is the result of a transfer.
type Transfer struct {
	By      Party  // the side that transferred the call
	Swapped bool   // By was the caller, so the former callee is now the caller
	Cause   Cause  // why nobody took the call; zero if somebody did
	Refusal string // the rule that a refused transfer broke; "" for none
}

// A refusedTransfer is the error for a transfer to an address that cannot be called.
type refusedTransfer struct {
	cause  Cause
	reason string
}

func (r refusedTransfer) Error() string { return "the transfer was refused: " + r.cause.Text }

// transferByClient transfers the call of a leg at the request of the leg's client. Once the
// transfer has begun, events report its progress and its result.
func (c *Calls) transferByClient(ctx context.Context, client Client, l *leg, address string) error {
	if len(address) > maxDialed || strings.ContainsFunc(address, isInvisible) {
		return problem.BadParam("to", "to must have at most %d bytes and no control or invisible characters", maxDialed)
	}
	if !client.isMember() {
		return errMayNotTransfer
	}

	if err := c.counts().admitMove(client); err != nil {
		return err
	}
	k := transferring{l.call}
	stays, err := k.beginByClient(ctx, client, l)
	if err != nil {
		return err
	}

	to, r, err := c.planTransfer(ctx, client, stays, address)
	if err == nil && to.RoomID != "" {
		return k.transferToRoom(ctx, to, l)
	}
	k.post(func() { k.continueTransfer(r, err) })
	return nil
}

// transferring has the methods that transfer a call to a different party.
type transferring struct{ *call }

// beginByClient begins a transfer at the request of the leg's client, and returns the party that
// stays in the call. If ctx ends before the call has handled the request, the transfer fails.
func (k transferring) beginByClient(ctx context.Context, client Client, l *leg) (Party, error) {
	var stays Party
	var begun *transfer
	_, err := k.do(ctx, func() (Reply, error) {
		l.rebind(client)
		if err := k.beginTransfer(l); err != nil {
			return Reply{}, err
		}
		begun = k.transfer
		stays = begun.stays.party
		return Reply{}, nil
	})
	if err != nil {
		k.post(func() { // the call may have handled the request anyway
			if begun != nil && k.transfer == begun {
				k.failTransfer(TemporaryFailure)
			}
		})
		return Party{}, err
	}
	return stays, nil
}

// beginTransfer records that a transfer is in progress. It returns an error if the call cannot be
// transferred.
func (k transferring) beginTransfer(by *leg) error {
	people := k.people()
	i := slices.Index(people, by)
	if k.movable(nil) != nil || i < 0 || k.transfers >= maxTransfers {
		return errNotTransferable
	}
	k.transfers++
	k.transfer = &transfer{by: by, stays: people[1-i], before: k.record}
	return nil
}

// planTransfer returns the party at an address, and the route to it unless it is a room. stays is
// the party that would be connected with the party at the address.
func (c *Calls) planTransfer(
	ctx context.Context, client Client, stays Party, address string,
) (to Party, r *route, err error) {
	to, cause, err := c.directory().destination(ctx, client, address)
	switch {
	case err != nil:
		return to, nil, err
	case cause == Cause{} && to.isOutside() && client.InsideOnly:
		cause = CallRejected
	case cause == Cause{} && to.ScriptID != "":
		cause = NotImplemented
	case cause == Cause{} && (to.Address == EchoAddress || to.key() == stays.key()):
		cause = Incompatible // there is nobody else to talk to
	}
	if cause != (Cause{}) {
		return to, nil, refusedTransfer{cause: cause}
	}
	if to.RoomID != "" {
		return to, nil, nil
	}

	p := planner{calls: c, project: client.Token.ProjectID}
	if !to.isOutside() {
		r, err = p.plan(ctx, to, "", []string{stays.key()})
		return to, r, err
	}
	r = &route{ring: c.limits.Ring, payer: client.Token.Caller()}
	if err := p.addOutside(ctx, r, to); err != nil {
		return to, nil, err
	}
	if r.refusal != "" {
		return to, nil, refusedTransfer{cause: CallRejected, reason: r.refusal}
	}
	return to, r, nil
}

// continueTransfer rings the targets of a route, or ends the transfer if err is not nil.
func (k transferring) continueTransfer(r *route, err error) {
	if k.transfer == nil || k.state == Completed {
		return // the call ended while the route was planned
	}
	var refused refusedTransfer
	switch {
	case errors.As(err, &refused):
		k.record.Refusal = refused.reason
		k.failTransfer(refused.cause)
	case err != nil:
		k.calls.log.Error("transferring a call", "call_id", k.id, "error", err)
		k.failTransfer(TemporaryFailure)
	default:
		ringer(k).ringRoute(r)
	}
}

// transferToRoom moves both sides into a room, and makes the one that transfers the call leave.
func (k transferring) transferToRoom(ctx context.Context, to Party, by *leg) error {
	_, err := k.do(ctx, func() (Reply, error) {
		if k.transfer != nil && by.ended {
			k.failTransfer(NormalClearing)
		}
		k.transfer = nil
		return Reply{}, nil
	})
	if err == nil {
		err = k.enterRoom(ctx, to, nil, by.party.SubscriberID)
	}
	if err != nil {
		return err
	}

	_, err = k.do(ctx, func() (Reply, error) {
		by.tell(Event{Kind: Transferring, State: InCall})
		if !by.ended {
			by.depart(NormalClearing)
		}
		return Reply{}, nil
	})
	return err
}

// bill updates the record of a call that is about to be transferred through a gateway. If the call
// already uses a gateway, its lines are added. A record has only one gateway and one payer, so bill
// returns an overCap error if either would change.
func (t *transfer) bill(r *Record) error {
	switch {
	case t.before.Gateway == "":
		r.OutboundFrom = time.Now().UTC()
	case t.before.Gateway != r.Gateway, t.before.Payer != r.Payer:
		return overCap(reasonOtherGateway)
	default:
		r.Lines += t.before.Lines
	}
	return nil
}

// restore sets the bill of a record to what it was before the transfer.
func (t *transfer) restore(r *Record) {
	r.Gateway = t.before.Gateway
	r.Payer = t.before.Payer
	r.Lines = t.before.Lines
	r.OutboundFrom = t.before.OutboundFrom
	r.Refusal = t.before.Refusal
}

// failTransfer ends a transfer that nobody has answered, for the given cause. The sides of the call
// continue to talk, unless the one that transferred it has hung up.
func (k transferring) failTransfer(c Cause) {
	t := k.transfer
	k.transfer = nil
	k.ringTimer.Stop()
	for _, l := range slices.Clone(k.legs) {
		if l.isRinging() {
			l.leave(OriginatorCancel)
		}
	}

	refusal := k.record.Refusal
	t.restore(&k.record)
	k.saveTransfer(Transfer{By: t.by.party, Cause: c, Refusal: refusal})
	if k.script != nil {
		k.script.resume(c, refusal)
		return
	}
	if t.by.ended {
		k.record.Refusal = refusal
		k.end(c)
		return
	}
	t.by.tell(Event{Kind: Transferring, State: Completed, Cause: c})
}

// replace prepares a transferred call for the leg that is about to answer it. The side that
// transferred the call leaves, and the other side becomes the caller.
func (k transferring) replace(l *leg) {
	t := k.transfer
	k.transfer = nil
	k.handOver()
	k.noteTransfer(l, t)
	t.by.tell(Event{Kind: Transferring, State: InCall})
	if !t.by.ended {
		t.by.leaveSources(NormalClearing)
		t.by.leave(NormalClearing)
	}
	k.legs = slices.DeleteFunc(k.legs, func(other *leg) bool { return other == t.stays })
	k.legs = slices.Insert(k.legs, 0, t.stays)
}

// noteTransfer writes the new parties of a transferred call into its record.
func (k transferring) noteTransfer(l *leg, t *transfer) {
	done := Transfer{By: t.by.party, Swapped: t.stays.id == k.record.CalleeLeg}
	r := &k.record
	if done.Swapped {
		r.From = t.stays.party
		r.CallerLeg = t.stays.id
		r.Guest = ""
		if t.stays.party.SubscriberID == "" {
			r.Guest = t.stays.holder
		}
	}

	r.To = l.party
	r.CalleeLeg = l.id
	r.Refusal = t.before.Refusal
	switch {
	case !l.party.isOutside():
		t.restore(r)
	case t.before.Gateway == "":
		r.Lines = 1
	default:
		r.Lines = t.before.Lines + 1
	}
	k.saveTransfer(done)
}

// joinTransferred makes l, which has replaced a side of the call, a member.
func (k transferring) joinTransferred(l *leg) {
	if k.record.Gateway != "" && k.capTimer == nil {
		k.endTimer.Reset(k.timeLeft())
		k.watchCaps()
	}
	l.tell(Event{Kind: Answered})
	l.join()
	l.tellState(InCall)
	m := l.member
	k.tellOthers(l, Event{Kind: MemberJoined, Member: &m})
	k.keepControls()
	k.recordAgain()
}

// saveTransfer writes the result of a transfer.
func (k transferring) saveTransfer(t Transfer) {
	after := k.record
	writer(k).write(change{
		record:  after,
		failure: "saving the result of a transfer",
		write:   func(ctx context.Context, r Record) error { return k.calls.store.SaveTransfer(ctx, r, t) },
		isIn: func(stored Record) bool {
			isAnswered := t.Cause == Cause{}
			return isAnswered && stored.CalleeLeg == after.CalleeLeg
		},
	})
}
