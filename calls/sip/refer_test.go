package sip_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// bobRequests returns a request from bob's phone within the conversation.
func (c conversation) bobRequests(method string) request {
	c.bob.callID = c.invite.header("Call-ID")[0]
	return request{method: method, uri: "sip:selvage@" + c.bob.udp.String(), to: c.invite.header("From")[0],
		from: "phone-bob"}
}

// refers sends r with the Refer-To header to, and returns the response.
func (p *phone) refers(r request, to string) message {
	p.t.Helper()
	r.headers += "Refer-To: " + to + "\r\n"
	p.send(p.write(r, ""))
	return p.next(deadline)
}

// side makes one side of the call transfer it to a user: alice if i is odd, and otherwise bob. The
// sides take turns because each may make only five attempts within seconds.
func (c conversation) side(i int, user string) *phone {
	if i%2 == 1 {
		c.alice.transfers(c.alice.inDialog("REFER", c.answered), user)
		return c.alice
	}
	c.bob.transfers(c.bobRequests("REFER"), user)
	return c.bob
}

// transfers makes a phone transfer its call to a user. The server must accept the request.
func (p *phone) transfers(r request, user string) {
	p.t.Helper()
	if m := p.refers(r, fmt.Sprintf("\"Someone\" <sip:%s@selvage.test>", user)); m.kind() != "202" {
		p.t.Fatalf("transferring to %s returned\n%s\nwant 202", user, m)
	}
	p.notified("SIP/2.0 100 Trying")
}

// notified expects a notification with the given status, and answers it.
func (p *phone) notified(status string) message {
	p.t.Helper()
	m := p.expect("NOTIFY")
	p.respond(m, "200 OK", "")
	if got := strings.TrimSpace(m.body()); got != status {
		p.t.Fatalf("%s was notified of %q, want %q", p.user, got, status)
	}
	state := "terminated;reason=noresource"
	if strings.HasPrefix(status, "SIP/2.0 1") {
		state = "active;expires=180"
	}
	if got := m.header("Subscription-State"); len(got) != 1 || got[0] != state {
		p.t.Errorf("the notification of %q has the state %q, want %s", status, got, state)
	}
	return m
}

// takes answers an invitation with a 200.
func (p *phone) takes(invite message) {
	p.t.Helper()
	p.respond(invite, "200 OK", p.offer("sendrecv"))
	p.expect("ACK")
}

// hangsUp ends the call of a phone that dialed. answered is the 200 that it received.
func (p *phone) hangsUp(answered message) {
	p.t.Helper()
	p.send(p.write(p.inDialog("BYE", answered), ""))
	p.expect("200")
}

// TestCalleeTransfers makes bob transfer alice's call to carol. Alice stays in the same call, which
// has one record.
func TestCalleeTransfers(t *testing.T) {
	w := newWorld(t)
	carol := w.registered("carol")
	c := converse(t, w)
	c.bob.transfers(c.bobRequests("REFER"), "carol")
	invite := carol.expect("INVITE")
	if from := invite.header("From")[0]; !strings.Contains(from, `"alice" <sip:alice@`) {
		t.Errorf("carol's phone shows the caller %s, want alice", from)
	}
	c.bob.notified("SIP/2.0 180 Ringing")
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "wait for carol")

	carol.takes(invite)
	c.bob.notified("SIP/2.0 200 OK")
	c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
	hear(t, c.alice, c.alice.mediaOf(c.answered), carol, "hello carol")
	hear(t, carol, carol.mediaOf(invite), c.alice, "hello alice")
	r := w.lastCall()
	if r.From.SubscriberID != w.subscribers["alice"] || r.To.SubscriberID != w.subscribers["carol"] ||
		r.State != calls.InCall || r.Dialed != "/private/bob" {
		t.Errorf("the record is %+v, want alice's call to bob, with carol as callee", r)
	}

	c.alice.hangsUp(c.answered)
	carol.respond(carol.expect("BYE"), "200 OK", "")
	w.isOver()
	if all := must[page.Page[calls.Record]](t)(
		w.records.List(t.Context(), w.project, calls.Filter{}, page.Query{Size: 9})); len(all.Items) != 1 {
		t.Errorf("there are %d records, want 1", len(all.Items))
	}
}

// TestCallerTransfers makes alice, who called bob, transfer bob to carol. Then, carol transfers bob
// to dave. In the record, the party that stays becomes the caller.
func TestCallerTransfers(t *testing.T) {
	w := newWorld(t)
	carol, dave := w.registered("carol"), w.registered("dave")
	c := converse(t, w)
	c.alice.transfers(c.alice.inDialog("REFER", c.answered), "carol")
	c.alice.notified("SIP/2.0 180 Ringing")
	invite := carol.expect("INVITE")
	carol.takes(invite)
	c.alice.notified("SIP/2.0 200 OK")
	c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
	hear(t, c.bob, c.bob.mediaOf(c.invite), carol, "hello carol")
	if r := w.lastCall(); r.From.SubscriberID != w.subscribers["bob"] || r.To.SubscriberID != w.subscribers["carol"] {
		t.Errorf("the record has the parties %+v and %+v, want bob and carol", r.From, r.To)
	}

	carol.callID = invite.header("Call-ID")[0]
	carol.transfers(request{method: "REFER", uri: "sip:selvage@" + w.udp.String(), to: invite.header("From")[0],
		from: "phone-carol"}, "dave")
	second := dave.expect("INVITE")
	dave.takes(second)
	carol.notified("SIP/2.0 180 Ringing")
	carol.notified("SIP/2.0 200 OK")
	carol.respond(carol.expect("BYE"), "200 OK", "")
	hear(t, dave, dave.mediaOf(second), c.bob, "hello bob")

	c.bob.send(c.bob.write(c.bobRequests("BYE"), ""))
	c.bob.expect("200")
	dave.respond(dave.expect("BYE"), "200 OK", "")
	w.isOver()
	if r := w.lastCall(); r.To.SubscriberID != w.subscribers["dave"] || r.Cause != calls.NormalClearing {
		t.Errorf("at the end, the record is %+v, want a call between bob and dave", r)
	}
}

// TestTransferFails shows that the parties of a call can still talk after a transfer that nobody
// answered, and that the phone may try again.
func TestTransferFails(t *testing.T) {
	w := newWorld(t)
	carol := w.registered("carol")
	w.subscriber("offline")
	c := converse(t, w)
	for i, tt := range []struct{ user, refusal, status string }{
		{"carol", "486 Busy Here", "486 Busy Here"}, {"carol", "603 Decline", "403 Forbidden"},
		{"nobody", "", "404 Not Found"}, {"offline", "", "480 Temporarily Unavailable"},
		{"alice", "", "488 Not Acceptable Here"}, {"echo", "", "488 Not Acceptable Here"},
	} {
		p := c.side(i, tt.user)
		if tt.refusal != "" {
			carol.refuses(carol.expect("INVITE"), tt.refusal)
			p.notified("SIP/2.0 180 Ringing")
		}
		want := "refer" // later notifications name the REFER
		if i >= 2 {
			want = fmt.Sprintf("refer;id=%d", p.seq)
		}
		if event := p.notified("SIP/2.0 " + tt.status).header("Event"); len(event) != 1 || event[0] != want {
			t.Errorf("the notification has the event %q, want %s", event, want)
		}
	}

	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "still here")
	if r := w.lastCall(); r.To.SubscriberID != w.subscribers["bob"] || r.Refusal != "" {
		t.Errorf("the record is %+v, want the call to bob as before", r)
	}

	// Circular forwards end. Forwards to the party that is being transferred also end.
	w.forwarding("carol", "/private/alice", "", 0)
	c.bob.transfers(c.bobRequests("REFER"), "carol")
	carol.refuses(carol.expect("INVITE"), "486 Busy Here")
	c.bob.notified("SIP/2.0 180 Ringing")
	c.bob.notified("SIP/2.0 486 Busy Here")
	c.alice.hangsUp(c.answered)
	c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestTransferrerHangsUp shows that a transfer continues after the phone that began it has hung up.
// If nobody answers, the call ends. If the other side hangs up, all phones stop ringing.
func TestTransferrerHangsUp(t *testing.T) {
	for _, end := range []string{"answered", "refused", "left alone"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t)
			carol := w.registered("carol")
			c := converse(t, w)
			c.bob.transfers(c.bobRequests("REFER"), "carol")
			invite := carol.expect("INVITE")
			carol.respond(invite, "180 Ringing", "")
			c.bob.notified("SIP/2.0 180 Ringing")
			c.bob.send(c.bob.write(c.bobRequests("BYE"), ""))
			c.bob.expect("200")

			switch end {
			case "answered":
				carol.takes(invite)
				hear(t, c.alice, c.alice.mediaOf(c.answered), carol, "hello carol")
				c.alice.hangsUp(c.answered)
				carol.respond(carol.expect("BYE"), "200 OK", "")
			case "refused":
				carol.refuses(invite, "486 Busy Here")
				c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
			case "left alone":
				c.alice.hangsUp(c.answered)
				carol.canceled()
			}
			w.isOver()
		})
	}
}

// TestTransferTollFraud shows that a transfer to a phone number follows the same rules and caps as
// calls that the transferring party dials. If the rules or caps forbid the transfer, nothing is
// dialed.
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
		c.side(i, tt.user).notified("SIP/2.0 403 Forbidden")
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
	r := w.lastCall()
	if r.Gateway != id || r.Payer != w.subscribers["bob"] || r.Lines != 1 || !r.OutboundFrom.After(r.Answered) {
		t.Errorf("the record is %+v, want a call through %s that counts for bob from now on", r, id)
	}

	// Alice may not transfer the carrier to another number at her own cost, because the call has
	// one payer.
	c.alice.transfers(c.alice.inDialog("REFER", c.answered), "+4930777777")
	c.alice.notified("SIP/2.0 503 Service Unavailable")
	if m := carrier.next(silence); m != "" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
	if after := w.lastCall(); after.Payer != r.Payer || after.Lines != 1 || after.Refusal != "" {
		t.Errorf("afterwards, the record is %+v, want it unchanged", after)
	}
}

// TestTransferCaps shows that transfers count against the caps of the transferring party, together
// with the calls that it dials.
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
	if r := w.lastCall(); r.Gateway != "" || r.Payer != "" || !r.OutboundFrom.IsZero() {
		t.Errorf("after a transfer that failed, the record is %+v, want that of an internal call", r)
	}

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
		{"nobody", "<sip:selvage.test>", "404"},
		{"a different scheme", "<tel:+4930123456>", "404"},
		{"a different method", "<sip:carol@selvage.test;method=BYE>", "404"},
		{"attended", "<sip:carol@selvage.test?Replaces=1%3Bto-tag%3D2%3Bfrom-tag%3D3>", "501"},
		{"two", "<sip:carol@selvage.test>\r\nRefer-To: <sip:alice@selvage.test>", "400"},
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
		r.headers, r.seq = "Refer-To: <sip:carol@selvage.test>\r\n", 90
		stranger.callID = c.bob.callID
		stranger.send(stranger.write(r, ""))
		if m := stranger.next(silence); m.kind() != "" && m.kind() != "481" {
			t.Errorf("%s: the response is\n%s\nwant 481 or none", name, m)
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
	kinds := make(map[string]int)
	for sent := 0; kinds["500"] == 0 && sent < 1000; sent++ { // the number depends on the machine
		kinds[c.bob.refers(c.bobRequests("REFER"), "<sip:carol@example.org>").kind()]++
	}
	if kinds["404"] < 10 || kinds["500"] != 1 || len(kinds) != 2 {
		t.Errorf("the responses are %v, want at least 10 times 404, and then 500", kinds)
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
	inside.callID = invite.header("Call-ID")[0]
	refer := request{method: "REFER", uri: "sip:selvage@" + w.udp.String(), to: invite.header("From")[0],
		from: "phone-inside"}
	inside.transfers(refer, "+4930123456")
	inside.notified("SIP/2.0 403 Forbidden")
	inside.transfers(refer, "carol")
	carol.expect("INVITE")
	inside.notified("SIP/2.0 180 Ringing")
	if m := carrier.next(silence); m.kind() == "INVITE" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
}

// TestTransferToRoom makes bob transfer alice into a room, where she is then alone.
func TestTransferToRoom(t *testing.T) {
	w := newWorld(t)
	must[fabric.Resource](t)(w.fabric.Resources.Create(t.Context(), w.project,
		w.fabric.Resources.Kinds().ByType("video_room"), map[string]json.RawMessage{"name": quoted("standup")}))
	carol := w.newPhone("carol")
	w.subscriber("carol")
	c := converse(t, w)
	c.bob.transfers(c.bobRequests("REFER"), "standup")
	c.bob.notified("SIP/2.0 200 OK")
	c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
	if _, m := carol.dial("standup"); m.kind() != "200" {
		t.Fatalf("joining the room returned\n%s\nwant 200", m)
	}

	if r := w.calls.Stats(); r.Rooms != 1 || r.Calls != 2 || r.Legs != 2 {
		t.Errorf("there are %d rooms with %d calls and %d legs, want 1, 2 and 2", r.Rooms, r.Calls, r.Legs)
	}
	c.alice.hangsUp(c.answered)
}

// lastTransfer returns the rule that forbade the last transfer, according to the audit trail.
func (w *world) lastTransfer() string {
	w.t.Helper()
	p := must[page.Page[audit.Event]](w.t)(w.store.ListAudit(w.t.Context(),
		audit.Filter{Action: "call.transfer_failed"}, page.Query{Size: 1}))
	if len(p.Items) == 0 {
		w.t.Fatal("no transfer has failed")
	}
	return p.Items[0].Detail["reason"]
}

// TestTransferTimesOut shows that a transfer does not take place if its request is canceled before
// the transfer begins. The transferring party can then still end the call by hanging up.
func TestTransferTimesOut(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := calls.Client{Token: fabric.Token{Kind: fabric.SAT, ProjectID: w.project, IssuedAt: time.Now(),
		SubscriberID: w.subscribers["bob"]}}
	_, err := w.calls.Do(ctx, client,
		calls.Command{Op: calls.TransferTo, Leg: w.lastCall().CalleeLeg, To: "/private/x"})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	c.bob.send(c.bob.write(c.bobRequests("BYE"), ""))
	c.bob.expect("200")
	c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
	w.isOver()
}
