package sip_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
)

// bobRequests returns a request from bob's phone within the conversation.
func (c conversation) bobRequests(method string) request {
	return c.bob.inAnsweredDialog(method, c.invite)
}

// refers sends r with a Refer-To header, and returns the response.
func (p *phone) refers(r request, referTo string) message {
	p.t.Helper()
	r.headers += "Refer-To: " + referTo + "\r\n"
	p.send(p.write(r, ""))
	return p.next(deadline)
}

// transferInTurn makes one side of the call transfer it to a user: alice if i is odd, and otherwise
// bob. The sides take turns because each may make only five attempts within a few seconds.
func (c conversation) transferInTurn(i int, user string) *phone {
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
	w.recordHas(func(want *calls.Record) {
		want.From.SubscriberID = w.subscribers["alice"]
		want.To.SubscriberID = w.subscribers["carol"]
		want.Dialed = "/private/bob"
		want.State = calls.InCall
	})

	c.alice.hangsUp(c.answered)
	carol.respond(carol.expect("BYE"), "200 OK", "")
	w.isOver()
	records := must[page.Page[calls.Record]](t)(
		w.records.List(t.Context(), w.project, calls.Filter{}, page.Query{Size: 9})).Items
	if len(records) != 1 {
		t.Errorf("there are %d records, want 1", len(records))
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
	w.recordHas(func(want *calls.Record) {
		want.From.SubscriberID = w.subscribers["bob"]
		want.To.SubscriberID = w.subscribers["carol"]
	})

	carol.transfers(carol.inAnsweredDialog("REFER", invite), "dave")
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
	w.recordHas(func(want *calls.Record) {
		want.To.SubscriberID = w.subscribers["dave"]
		want.Cause = calls.NormalClearing
	})
}

// TestTransferFails shows that the parties of a call can still talk after a transfer that nobody
// answered, and that the phone may try again.
func TestTransferFails(t *testing.T) {
	w := newWorld(t)
	carol := w.registered("carol")
	w.subscriber("offline")
	c := converse(t, w)
	for i, tt := range []struct {
		user    string
		refusal string // what carol's phone responds, if it rings
		status  string // what the transferring phone is notified of
	}{
		{"carol", "486 Busy Here", "486 Busy Here"},
		{"carol", "603 Decline", "403 Forbidden"},
		{"nobody", "", "404 Not Found"},
		{"offline", "", "480 Temporarily Unavailable"},
		{"alice", "", "488 Not Acceptable Here"},
		{"echo", "", "488 Not Acceptable Here"},
	} {
		p := c.transferInTurn(i, tt.user)
		if tt.refusal != "" {
			carol.refuses(carol.expect("INVITE"), tt.refusal)
			p.notified("SIP/2.0 180 Ringing")
		}
		want := "refer"
		if i >= 2 { // after a phone's first REFER, notifications say which REFER they belong to
			want = fmt.Sprintf("refer;id=%d", p.seq)
		}
		event := p.notified("SIP/2.0 " + tt.status).header("Event")
		if !slices.Equal(event, []string{want}) {
			t.Errorf("the notification has the event %q, want %s", event, want)
		}
	}

	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "still here")
	w.recordHas(func(want *calls.Record) {
		want.To.SubscriberID = w.subscribers["bob"]
		want.Refusal = ""
	})

	// A forward to the party that is being transferred ends the attempt.
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
	for _, outcome := range []string{"answered", "refused", "left alone"} {
		t.Run(outcome, func(t *testing.T) {
			w := newWorld(t)
			carol := w.registered("carol")
			c := converse(t, w)
			c.bob.transfers(c.bobRequests("REFER"), "carol")
			invite := carol.expect("INVITE")
			carol.respond(invite, "180 Ringing", "")
			c.bob.notified("SIP/2.0 180 Ringing")
			c.bob.send(c.bob.write(c.bobRequests("BYE"), ""))
			c.bob.expect("200")

			switch outcome {
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

// TestTransferToRoom makes bob transfer alice into a room, where carol joins her.
func TestTransferToRoom(t *testing.T) {
	w := newWorld(t)
	w.create("video_room", map[string]json.RawMessage{"name": quoted("standup")})
	carol := w.newPhone("carol")
	w.subscriber("carol")
	c := converse(t, w)
	c.bob.transfers(c.bobRequests("REFER"), "standup")
	c.bob.notified("SIP/2.0 200 OK")
	c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
	if _, m := carol.dial("standup"); m.kind() != "200" {
		t.Fatalf("joining the room returned\n%s\nwant 200", m)
	}

	w.running(counts{rooms: 1, calls: 2, legs: 2})
	c.alice.hangsUp(c.answered)
}
