package sip_test

import (
	"encoding/json"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// connecting returns a webhook's answer that connects the caller to an address.
func connecting(to string) string { return `{"verbs": [{"verb": "connect", "to": "` + to + `"}]}` }

// TestScriptConnects connects alice, who hears ringing until bob answers. Her call then continues
// like any other call, without its script.
func TestScriptConnects(t *testing.T) {
	w, h := newScripted(t, nil, connecting("/private/bob"))
	bob, alice := w.registered("bob"), w.newPhone("alice")
	m := alice.answeredBy("menu")
	invite := bob.expect("INVITE")
	alice.hearsTone(m)
	bob.takes(invite)
	hear(t, alice, alice.mediaOf(m), bob, "hello bob")
	hear(t, bob, bob.mediaOf(invite), alice, "hello alice")
	w.recordHas(func(want *calls.Record) {
		want.To.Address = "/private/bob"
		want.Dialed = "/public/menu"
	})

	alice.hangsUp(m)
	bob.respond(bob.expect("BYE"), "200 OK", "")
	w.isOver()
	if len(h.asked) != 1 {
		t.Errorf("the webhook got %d requests, want 1", len(h.asked))
	}
}

// TestScriptConnectsNobody asks the webhook again because bob is busy, and connects carol instead.
func TestScriptConnectsNobody(t *testing.T) {
	w, h := newScripted(t, nil, connecting("/private/bob"), connecting("/private/carol"))
	bob, carol, alice := w.registered("bob"), w.registered("carol"), w.newPhone("alice")
	m := alice.answeredBy("menu")
	bob.refuses(bob.expect("INVITE"), "486 Busy Here")
	invite := carol.expect("INVITE")
	carol.takes(invite)
	hear(t, alice, alice.mediaOf(m), carol, "hello carol")
	<-h.asked
	h.wasTold(t, result{Verb: "connect", Error: "USER_BUSY"})
}

// TestScriptLeavesTransfers connects alice with bob after nine attempts to reach somebody else. The
// attempts do not count as transfers of the call, so alice can transfer it.
func TestScriptLeavesTransfers(t *testing.T) {
	w, h := newScripted(t, nil)
	w.subscriber("carol")
	for range 9 {
		h.answers <- connecting("/private/carol")
	}
	h.answers <- connecting("/private/bob")
	bob, alice := w.registered("bob"), w.newPhone("alice")
	m := alice.answeredBy("menu")
	invite := bob.expect("INVITE")
	bob.takes(invite)
	hear(t, alice, alice.mediaOf(m), bob, "hello bob")

	carol := w.registered("carol")
	alice.transfers(alice.inDialog("REFER", m), "carol")
	carol.expect("INVITE")
}

// TestScriptConnectHungUp shows that bob's phone stops ringing when the caller of a script hangs
// up.
func TestScriptConnectHungUp(t *testing.T) {
	w, _ := newScripted(t, nil, connecting("/private/bob"))
	bob, alice := w.registered("bob"), w.newPhone("alice")
	m := alice.answeredBy("menu")
	bob.respond(bob.expect("INVITE"), "180 Ringing", "")
	alice.hangsUp(m)
	bob.canceled()
	w.isOver()
}

// TestScriptMayNotConnect shows that a script reaches only what the project's rules permit.
func TestScriptMayNotConnect(t *testing.T) {
	for _, tt := range []struct{ to, cause, reason string }{
		{"+442079460000", "CALL_REJECTED", fabric.ReasonPrefix},
		{"+49900123456", "CALL_REJECTED", fabric.ReasonExpensive},
		{"0049 900 123456", "CALL_REJECTED", fabric.ReasonExpensive},
		{"/private/nobody", "CALL_REJECTED", "forward_unknown"},
		{"/public/menu", "CALL_REJECTED", "forward_not_possible"},
		{"/public/echo", "CALL_REJECTED", "forward_unknown"},
		{"/private/bob", "USER_NOT_REGISTERED", ""},
	} {
		t.Run(tt.to, func(t *testing.T) {
			w, h := newScripted(t, nil, connecting(tt.to))
			carrier, _ := w.newCarrier(nil)
			w.permit(fabric.OutboundOn, "+49")
			alice := w.newPhone("alice")
			r, m := alice.dial("menu")
			if m.kind() != "200" {
				alice.send(alice.acknowledge(r, m))
			}

			<-h.asked
			h.wasTold(t, result{Verb: "connect", Error: tt.cause, Reason: tt.reason})
			if m := carrier.next(silence); m != "" {
				t.Errorf("the gateway got\n%s\nwant nothing", m)
			}
		})
	}
}

// TestScriptConnectsNumber connects callers with a phone number. The script pays, and its caps
// apply to all of its callers together.
func TestScriptConnectsNumber(t *testing.T) {
	const number = "+4930123456"
	oneCall := func(c *calls.Config) { c.Limits.Outbound.Running = 1 }
	w, h := newScripted(t, oneCall, connecting(number), connecting(number))
	carrier, gateway := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	w.permit(fabric.OutboundOn, "+49")
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	m := alice.answeredBy("menu")
	invite := carrier.expect("INVITE")
	carrier.takes(invite)
	hear(t, alice, alice.mediaOf(m), carrier, "hello")
	first := <-h.asked
	r := w.recordHas(func(want *calls.Record) {
		want.Gateway = gateway
		want.Payer = first.Script.ID
		want.To.Address = number
	})
	if r.OutboundFrom.IsZero() {
		t.Error("the record has no time from which the call uses the gateway")
	}

	bob.answeredBy("menu")
	<-h.asked
	if second := <-h.asked; second.Last.Reason != "too_many_calls_of_caller" {
		t.Errorf("the webhook was told the reason %q, want too_many_calls_of_caller", second.Last.Reason)
	}
	if m := carrier.next(silence); m != "" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
}
