package sip_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// forwarding chooses the destinations to which the calls of a subscriber are forwarded.
func (w *world) forwarding(subscriber, busy, noAnswer string, seconds int) {
	w.t.Helper()
	input := fabric.SubscriberInput{
		Forwarding: fabric.ForwardingInput{Busy: &busy, NoAnswer: &noAnswer, RingSeconds: &seconds},
	}
	must[fabric.Subscriber](w.t)(
		w.fabric.Subscribers.Update(w.t.Context(), w.project, w.subscribers[subscriber], input))
}

// group creates the ring group /public/sales.
func (w *world) group(busy, noAnswer string, members ...string) string {
	w.t.Helper()
	return w.create(fabric.RingGroupKind, map[string]json.RawMessage{
		"name":              quoted("sales"),
		"members":           must[[]byte](w.t)(json.Marshal(members)),
		"ring_seconds":      json.RawMessage("60"),
		"forward_busy":      quoted(busy),
		"forward_no_answer": quoted(noAnswer),
	}).ID
}

// registered returns the registered phone of a subscriber. It creates the subscriber if necessary.
func (w *world) registered(name string) *phone {
	w.t.Helper()
	if w.subscribers[name] == "" {
		w.subscriber(name)
	}
	p := w.newPhone(name)
	p.register()
	return p
}

// calling makes a phone dial a user, whose phone must ring.
func (p *phone) calling(user string) request {
	p.t.Helper()
	r, m := p.dial(user)
	if m.kind() != "180" {
		p.t.Fatalf("calling %s returned\n%s\nwant 180", user, m)
	}
	return r
}

// refuses responds to an invitation with an error status.
func (p *phone) refuses(invite message, status string) {
	p.t.Helper()
	p.respond(invite, status, "")
	p.expect("ACK")
}

// canceled waits until an invitation is canceled.
func (p *phone) canceled() message {
	p.t.Helper()
	m := p.expect("CANCEL")
	p.respond(m, "200 OK", "")
	return m
}

// TestForwardBusy forwards a call to carol because bob rejects it. carol answers. The caller stays
// in the same call, which has one record.
func TestForwardBusy(t *testing.T) {
	w := newWorld(t)
	bob, carol, alice := w.registered("bob"), w.registered("carol"), w.newPhone("alice")
	w.forwarding("bob", "/private/carol", "", 0)
	alice.calling("bob")
	bob.refuses(bob.expect("INVITE"), "486 Busy Here")
	invite := carol.expect("INVITE")
	carol.respond(invite, "200 OK", carol.offer("sendrecv"))
	carol.expect("ACK")
	answered := alice.expect("200")
	hear(t, alice, alice.mediaOf(answered), carol, "hello carol")
	hear(t, carol, carol.mediaOf(invite), alice, "hello alice")

	alice.send(alice.write(alice.inDialog("BYE", answered), ""))
	alice.expect("200")
	carol.respond(carol.expect("BYE"), "200 OK", "")
	w.isOver()
	r := w.recordHas(func(want *calls.Record) {
		want.To.Address = "/private/carol"
		want.To.SubscriberID = w.subscribers["carol"]
	})
	if r.Answered.IsZero() {
		t.Error("the record has no time of answer, want the time when carol answered")
	}
	if got := r.Document().Dialed; got != "/private/bob" {
		t.Errorf("the dialed address is %q, want /private/bob", got)
	}
}

// TestForwardNoAnswer forwards a call that nobody answers in time, and a call to a subscriber who
// is offline.
func TestForwardNoAnswer(t *testing.T) {
	w := newWorld(t)
	bob, carol, alice := w.registered("bob"), w.registered("carol"), w.newPhone("alice")
	w.forwarding("bob", "", "/private/carol", 5)
	r := alice.calling("bob")
	bob.respond(bob.expect("INVITE"), "180 Ringing", "")
	invite := carol.expect("INVITE")
	bob.canceled()
	carol.refuses(invite, "480 Temporarily Unavailable")
	alice.send(alice.acknowledge(r, alice.expect("480")))
	w.isOver()

	w.subscriber("dave")
	w.forwarding("dave", "", "/private/carol", 0)
	alice.calling("dave")
	carol.respond(carol.expect("INVITE"), "200 OK", carol.offer("sendrecv"))
	alice.expect("200")
}

// TestForwardEnds shows that a call ends if its forwards are circular, or lead to unknown addresses
// or to addresses that cannot ring. The caller learns why the last callee did not answer.
func TestForwardEnds(t *testing.T) {
	w := newWorld(t)
	bob, carol, alice := w.registered("bob"), w.registered("carol"), w.newPhone("alice")
	w.forwarding("bob", "/private/carol", "", 0)
	w.create("video_room", map[string]json.RawMessage{"name": quoted("standup")})
	for _, tt := range []struct{ to, refusal string }{
		{"/private/bob", "forward_loop"},
		{"/private/carol", "forward_loop"},
		{"/private/nobody", "forward_unknown"},
		{"/public/standup", "forward_not_possible"},
		{"", ""},
	} {
		w.forwarding("carol", tt.to, "", 0)
		r := alice.calling("bob")
		bob.refuses(bob.expect("INVITE"), "486 Busy Here")
		carol.refuses(carol.expect("INVITE"), "486 Busy Here")
		alice.send(alice.acknowledge(r, alice.expect("486")))
		w.isOver()
		w.recordHas(func(want *calls.Record) {
			want.To.Address = "/private/bob"
			want.Cause = calls.UserBusy
			want.Refusal = tt.refusal
		})
	}
}

// TestForwardFan shows that one call rings only a limited number of times, even if each of many
// groups forwards it to two other groups.
func TestForwardFan(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		w.create(fabric.RingGroupKind, map[string]json.RawMessage{
			"name":              quoted(fmt.Sprintf("g%d", i)),
			"members":           json.RawMessage(`["/private/bob"]`),
			"forward_busy":      quoted(fmt.Sprintf("/public/g%d", 2*i+1)),
			"forward_no_answer": quoted(fmt.Sprintf("/public/g%d", 2*i+2)),
		})
	}
	bob, alice := w.registered("bob"), w.newPhone("alice")
	r, m := alice.dial("g0")
	if m.kind() != "180" {
		t.Fatalf("calling a group returned\n%s\nwant 180", m)
	}

	rings := 0
	var final message
	giveUp := time.Now().Add(deadline)
	for final == "" && time.Now().Before(giveUp) {
		for m := bob.next(silence); m.kind() == "INVITE"; m = bob.next(silence) {
			rings++
			bob.refuses(m, "486 Busy Here")
		}
		final = alice.next(silence)
	}

	if final.kind() != "486" {
		t.Fatalf("the caller got\n%s\nwant 486", final)
	}
	alice.send(alice.acknowledge(r, final))
	if rings < 3 || rings > 10 {
		t.Errorf("bob's phone rang %d times, want 3 to 10", rings)
	}
}

// TestForwardToNumber shows that a forward to a phone number follows the project's rules. The call
// counts against the limits of the subscriber who forwards it.
func TestForwardToNumber(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	alice := w.newPhone("alice")
	for _, tt := range []struct {
		name     string
		rule     fabric.OutboundCalls
		prefixes fabric.Prefixes
		number   string
		refusal  string
	}{
		{"off", fabric.OutboundOff, "+49", "+4930123456", fabric.ReasonOff},
		{"a different prefix", fabric.OutboundOn, "+43", "+4930123456", fabric.ReasonPrefix},
		{"premium rate", fabric.OutboundOn, "+49", "+49900123456", fabric.ReasonExpensive},
		{"premium rate with 00", fabric.OutboundOn, "+49", "0049 900 123456", fabric.ReasonExpensive},
		{"no gateway", fabric.OutboundOn, "+44", "+442079460000", fabric.ReasonNoGateway},
	} {
		w.permit(tt.rule, tt.prefixes)
		w.forwarding("bob", "", tt.number, 0)
		r, m := alice.dial("bob")
		alice.send(alice.acknowledge(r, m))
		w.isOver()
		if m.kind() != "480" {
			t.Errorf("%s: the call ended with %s, want 480", tt.name, m.kind())
		}
		if got := w.lastCall().Refusal; got != tt.refusal {
			t.Errorf("%s: the call was refused for %q, want %q", tt.name, got, tt.refusal)
		}
		if got := w.lastCall().Gateway; got != "" {
			t.Errorf("%s: the refused call used the gateway %s, want none", tt.name, got)
		}
	}

	w.permit(fabric.OutboundOn, "+49")
	w.forwarding("bob", "", "+4930123456", 0)
	for i := range 2 {
		caller := w.registered("caller-" + strconv.Itoa(i))
		caller.calling("bob")
		invite := carrier.expect("INVITE")
		carrier.respond(invite, "200 OK", carrier.offer("sendrecv"))
		carrier.expect("ACK")
		caller.expect("200")
	}
	w.recordHas(func(want *calls.Record) {
		want.Gateway = id
		want.Payer = w.subscribers["bob"]
		want.To.Address = "+4930123456"
	})

	// Bob may have two calls at a time. The caller's own limit is not affected.
	third := w.registered("third")
	r, m := third.dial("bob")
	third.send(third.acknowledge(r, m))
	eventually(t, "the call to end", func() bool { return w.lastCall().State == "ended" })
	w.recordHas(func(want *calls.Record) {
		want.Refusal = "too_many_calls_of_caller"
		want.Gateway = ""
	})
	third.calling("+4930777777")
	carrier.expect("INVITE")
}

// TestDisabledForwards shows that calls of a disabled subscriber are not forwarded.
func TestDisabledForwards(t *testing.T) {
	w := newWorld(t)
	w.registered("carol")
	w.forwarding("bob", "", "/private/carol", 0)
	disabled := true
	must[fabric.Subscriber](t)(w.fabric.Subscribers.Update(t.Context(), w.project, w.subscribers["bob"],
		fabric.SubscriberInput{Disabled: &disabled}))
	if _, m := w.newPhone("alice").dial("bob"); !strings.HasPrefix(m.kind(), "4") {
		t.Errorf("calling a disabled subscriber returned %s, want a refusal", m.kind())
	}
}

// TestRingGroup rings two subscribers and a phone number at the same time. If one of them refuses,
// the others keep ringing. The first answer ends the ringing.
func TestRingGroup(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	group := w.group("", "", "/private/bob", "/private/carol", "+4930123456", "/private/bob")
	bob, carol, alice := w.registered("bob"), w.registered("carol"), w.newPhone("alice")
	alice.calling("sales")
	atBob, atCarol, outside := bob.expect("INVITE"), carol.expect("INVITE"), carrier.expect("INVITE")
	ringing := w.recordHas(func(want *calls.Record) {
		want.Payer = group
		want.Lines = 1
	})
	if ringing.Gateway == "" {
		t.Error("while the call rings, its record names no gateway")
	}

	bob.refuses(atBob, "603 Decline")
	carol.respond(atCarol, "200 OK", carol.offer("sendrecv"))
	carol.expect("ACK")
	carrier.respond(outside, "180 Ringing", "")
	carrier.hasReason(carrier.canceled(), "elsewhere")
	answered := alice.expect("200")
	hear(t, alice, alice.mediaOf(answered), carol, "hello carol")
	w.recordHas(func(want *calls.Record) {
		want.To.Address = "/private/carol"
		want.Gateway = ""
		want.Payer = ""
	})
}

// TestSlowLookUps shows that a gateway whose name cannot be looked up takes only a part of the time for
// all look-ups of a call, and only once, so that the other members of a ring group still ring.
func TestSlowLookUps(t *testing.T) {
	type lookUp struct {
		limit  time.Time
		number string
	}
	lookUps := make(chan lookUp, 10)
	w := newWorld(t, func(c *calls.Config) {
		c.Trunk = func(ctx context.Context, _ fabric.Gateway, number string) (calls.Phone, error) {
			limit, _ := ctx.Deadline()
			lookUps <- lookUp{limit, number}
			return calls.Phone{}, context.DeadlineExceeded
		}
	})

	for _, prefix := range []string{"+49", "+44"} {
		w.newCarrier(map[string]json.RawMessage{
			"name":     quoted("Carrier to " + prefix),
			"prefixes": json.RawMessage(`["` + prefix + `"]`),
		})
	}
	w.permit(fabric.OutboundOn, "+49 +44")
	w.group("", "", "+4930123456", "+4930123457", "+442012345678", "/private/bob")
	w.registered("bob")

	began := time.Now()
	w.newPhone("alice").calling("sales")
	first, second := <-lookUps, <-lookUps
	if second.number != "+442012345678" {
		t.Errorf("the second look-up is for %s, want one for the other gateway", second.number)
	}
	if first.limit.Sub(began) < time.Second || !second.limit.After(first.limit) {
		t.Errorf("the look-ups end %v and %v after the call began, want the second one to have more time",
			first.limit.Sub(began), second.limit.Sub(began))
	}
}

// TestRingGroupRefuses shows the causes with which calls to a group end if nobody answers. Numbers
// that the project's rules forbid do not ring.
func TestRingGroupRefuses(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.group("", "", "/private/bob", "/private/carol", "+4930123456")
	bob, alice := w.registered("bob"), w.newPhone("alice")
	for _, tt := range []struct {
		bobSends  string
		aliceGets string
		cause     string
	}{
		{"486 Busy Here", "486", "USER_BUSY"},
		{"480 Temporarily Unavailable", "480", "NO_ANSWER"},
	} {
		r := alice.calling("sales")
		bob.refuses(bob.expect("INVITE"), tt.bobSends)
		alice.send(alice.acknowledge(r, alice.expect(tt.aliceGets)))
		w.isOver()
		w.recordHas(func(want *calls.Record) {
			want.Cause.Text = tt.cause
			want.Refusal = fabric.ReasonOff
		})
	}

	if m := carrier.next(silence); m != "" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
}

// TestRingGroupForwards forwards a call to carol because no member of a group answers. Each line
// that the group uses at a gateway counts against the group's cap.
func TestRingGroupForwards(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	w.group("", "/private/carol", "+4930123456", "+4930123457")
	carol, alice := w.registered("carol"), w.newPhone("alice")
	alice.calling("sales")
	first, second := carrier.expect("INVITE"), carrier.expect("INVITE")
	if got := w.lastCall().Lines; got != 2 {
		t.Errorf("the call uses %d lines of the gateway, want 2", got)
	}

	w.newPhone("bob").calling("sales") // the group may use two lines at a time
	carol.expect("INVITE")
	for _, invite := range []message{first, second} {
		carrier.reply(invite, "480 Temporarily Unavailable", "")
		carrier.expect("ACK")
	}
	carol.respond(carol.expect("INVITE"), "200 OK", carol.offer("sendrecv"))
	carol.expect("ACK")
	alice.expect("200")
}
