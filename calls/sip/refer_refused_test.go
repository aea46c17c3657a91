package sip_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// TestTransferTollFraud shows that a transfer to a phone number follows the same rules as calls
// that the transferring party dials. If the rules forbid the transfer, nothing is dialed. A call
// has only one payer.
func TestTransferTollFraud(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(nil)
	c := converse(t, w)
	for i, tt := range []struct {
		rule         fabric.OutboundCalls
		prefixes     fabric.Prefixes
		user, reason string
	}{
		{fabric.OutboundOff, "+49", "+4930123456", fabric.ReasonOff},
		{fabric.OutboundOff, "", "carrier", fabric.ReasonOff},
		{fabric.OutboundOn, "+43", "+4930123456", fabric.ReasonPrefix},
		{fabric.OutboundOn, "+49", "+49900123456", fabric.ReasonExpensive},
		{fabric.OutboundOn, "+49", "0049900123456", fabric.ReasonExpensive},
		{fabric.OutboundOn, "+49", "%2B49900123456", fabric.ReasonExpensive},
		{fabric.OutboundOn, "+44", "+442079460000", fabric.ReasonNoGateway},
	} {
		w.permit(tt.rule, tt.prefixes)
		c.transferInTurn(i, tt.user).notified("SIP/2.0 403 Forbidden")
		if reason := w.lastTransfer(); reason != tt.reason {
			t.Errorf("%s was refused for %q, want %q", tt.user, reason, tt.reason)
		}
	}

	if m := carrier.next(silence); m != "" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}

	w.permit(fabric.OutboundOn, "+49")
	c.bob.transfers(c.bobRequests("REFER"), "+4930123456")
	invite := carrier.expect("INVITE")
	c.bob.notified("SIP/2.0 180 Ringing")
	carrier.takes(invite)
	c.bob.notified("SIP/2.0 200 OK")
	c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
	hear(t, carrier, carrier.mediaOf(invite), c.alice, "hello alice")
	r := w.recordHas(func(want *calls.Record) {
		want.Gateway = id
		want.Payer = w.subscribers["bob"]
		want.Lines = 1
	})
	if !r.OutboundFrom.After(r.Answered) {
		t.Errorf("the call counts for bob from %v, want a time after its answer at %v", r.OutboundFrom, r.Answered)
	}

	// Alice may not transfer the carrier to another number at her own cost, because the call has
	// one payer.
	c.alice.transfers(c.alice.inDialog("REFER", c.answered), "+4930777777")
	c.alice.notified("SIP/2.0 503 Service Unavailable")
	if m := carrier.next(silence); m != "" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
	w.recordHas(func(want *calls.Record) {
		want.Payer = r.Payer
		want.Lines = 1
		want.Refusal = ""
	})
}

// TestTransferCaps shows that transfers count against the caps of the transferring party. A failed
// attempt counts against later transfers, but not against calls that the party dials.
func TestTransferCaps(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Limits.Outbound.Hourly = 1 })
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	c := converse(t, w)
	c.bob.transfers(c.bobRequests("REFER"), "+4930123456")
	invite := carrier.expect("INVITE")
	c.bob.notified("SIP/2.0 180 Ringing")
	carrier.refuses(invite, "486 Busy Here")
	c.bob.notified("SIP/2.0 486 Busy Here")
	w.recordHas(func(want *calls.Record) {
		want.Gateway = ""
		want.Payer = ""
		want.OutboundFrom = time.Time{}
	})

	// The failed attempt counts for an hour, although the record does not contain it.
	c.bob.transfers(c.bobRequests("REFER"), "+4930123456")
	c.bob.notified("SIP/2.0 503 Service Unavailable")
	if m := carrier.next(silence); m.kind() == "INVITE" {
		t.Errorf("after as many transfers as the cap, the gateway got\n%s\nwant nothing", m)
	}

	second := w.newPhone("bob")
	_, ringing := second.dial("+4930123457")
	if ringing.kind() != "180" {
		t.Fatalf("bob's own call returned\n%s\nwant 180", ringing)
	}
	carrier.expect("INVITE")
	c.bob.transfers(c.bobRequests("REFER"), "+4930123456")
	c.bob.notified("SIP/2.0 503 Service Unavailable")
	if m := carrier.next(silence); m.kind() == "INVITE" {
		t.Errorf("over the cap, the gateway got\n%s\nwant nothing", m)
	}
}

// TestReferRefused shows which requests for transfers are refused immediately, and that requests of
// a stranger have no effect.
func TestReferRefused(t *testing.T) {
	w := newWorld(t)
	carol := w.registered("carol")
	c := converse(t, w)
	for _, tt := range []struct{ name, to, status string }{
		{"foreign domain", "<sip:carol@example.org>", "404"},
		{"foreign address", "<sip:carol@192.0.2.1>", "404"},
		{"no user", "<sip:selvage.test>", "404"},
		{"a different scheme", "<tel:+4930123456>", "404"},
		{"a different method", "<sip:carol@selvage.test;method=BYE>", "404"},
		{"attended", "<sip:carol@selvage.test?Replaces=1%3Bto-tag%3D2%3Bfrom-tag%3D3>", "501"},
		{"two targets", "<sip:carol@selvage.test>\r\nRefer-To: <sip:alice@selvage.test>", "400"},
		{"an extension", "<sip:carol@selvage.test>\r\nRequire: multiple-refer", "420"},
	} {
		if m := c.bob.refers(c.bobRequests("REFER"), tt.to); m.kind() != tt.status {
			t.Errorf("%s: the response is\n%s\nwant %s", tt.name, m, tt.status)
		}
	}

	stranger := w.newPhone("bob")
	guess := c.bobRequests("REFER")
	guess.from = "guessed"
	for name, r := range map[string]request{
		"a different tag": guess,
		"no dialog":       {method: "REFER", uri: "sip:carol@selvage.test", to: "<sip:carol@selvage.test>", from: "x"},
	} {
		r.headers = "Refer-To: <sip:carol@selvage.test>\r\n"
		r.seq = 90
		stranger.callID = c.bob.callID
		stranger.send(stranger.write(r, ""))
		if m := stranger.next(silence); m.kind() != "" && m.kind() != "481" {
			t.Errorf("%s: the response is\n%s\nwant 481 or no response", name, m)
		}
	}

	if m := carol.next(silence); m != "" {
		t.Errorf("carol's phone got\n%s\nwant nothing", m)
	}

	c.bob.transfers(c.bobRequests("REFER"), "carol")
	carol.expect("INVITE")
	c.bob.notified("SIP/2.0 180 Ringing")
	if m := c.bob.refers(c.bobRequests("REFER"), "<sip:carol@selvage.test>"); m.kind() != "491" {
		t.Errorf("a second transfer at the same time returned\n%s\nwant 491", m)
	}
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "still here")
}

// TestManyRefers shows that a phone can make only a limited number of requests for transfers.
func TestManyRefers(t *testing.T) {
	c := converse(t, newWorld(t))
	refer := func() message { return c.bob.refers(c.bobRequests("REFER"), "<sip:carol@example.org>") }
	allowed := 0
	m := refer()
	for m.kind() == "404" && allowed < 1000 { // the number depends on the machine
		allowed++
		m = refer()
	}
	if allowed < 10 {
		t.Errorf("%d requests were allowed, want at least 10", allowed)
	}
	if m.kind() != "500" {
		t.Errorf("after %d allowed requests, the response is\n%s\nwant 500", allowed, m)
	}
}

// TestOutsiderTransfers shows that a gateway cannot transfer a call to a phone number. An endpoint
// that may not call phone numbers cannot do so either, but can transfer a call to a subscriber.
func TestOutsiderTransfers(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	w.permit(fabric.OutboundOn, "+49")
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}

	bob, carol := w.registered("bob"), w.registered("carol")
	carrier.callID = "inbound"
	carrier.send(carrier.write(carrier.invitation("+49305551234"), ""))
	carrier.expect("100")
	carrier.expect("180")
	bob.takes(bob.expect("INVITE"))
	answered := carrier.expect("200")
	m := carrier.refers(carrier.inDialog("REFER", answered), "<sip:+4930123456@selvage.test>")
	if m.kind() != "403" {
		t.Errorf("a gateway's transfer returned\n%s\nwant 403", m)
	}
	carrier.hangsUp(answered)

	_, inside := w.endpoint("inside", `, "call_handler": "block-pstn"`)
	inside.register()
	alice := w.newPhone("alice")
	alice.calling("inside")
	invite := inside.expect("INVITE")
	inside.takes(invite)
	alice.expect("200")
	refer := inside.inAnsweredDialog("REFER", invite)
	inside.transfers(refer, "+4930123456")
	inside.notified("SIP/2.0 403 Forbidden")
	inside.transfers(refer, "carol")
	carol.expect("INVITE")
	inside.notified("SIP/2.0 180 Ringing")
	if m := carrier.next(silence); m.kind() == "INVITE" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
}

// lastTransfer returns the rule that forbade the last transfer, according to the audit trail.
func (w *world) lastTransfer() string {
	w.t.Helper()
	failed := audit.Filter{Action: "call.transfer_failed"}
	events := must[page.Page[audit.Event]](w.t)(
		w.store.ListAudit(w.t.Context(), failed, page.Query{Size: 1})).Items
	if len(events) == 0 {
		w.t.Fatal("no transfer has failed")
	}
	return events[0].Detail["reason"]
}

// TestTransferTimesOut shows that a transfer does not take place if its request is canceled before
// the transfer begins. The transferring party can then still end the call by hanging up.
func TestTransferTimesOut(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := calls.Client{Token: fabric.Token{
		Kind:         fabric.SAT,
		ProjectID:    w.project,
		IssuedAt:     time.Now(),
		SubscriberID: w.subscribers["bob"],
	}}
	transfer := calls.Command{Op: calls.TransferTo, Leg: w.lastCall().CalleeLeg, To: "/private/x"}
	_, err := w.calls.Do(ctx, client, transfer)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	c.bob.send(c.bob.write(c.bobRequests("BYE"), ""))
	c.bob.expect("200")
	c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
	w.isOver()
}
