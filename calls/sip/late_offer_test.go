package sip_test

import (
	"strings"
	"testing"
)

// withoutOffer returns the request without a description.
func (r request) withoutOffer() request { return r.with("", "") }

// acksWith acknowledges the 200 to the phone's latest INVITE with an answer to a late offer.
func (p *phone) acksWith(answered message, answer string) {
	p.t.Helper()
	ack := p.inDialog("ACK", answered).with(sdpType, answer)
	ack.seq = p.seq
	p.send(p.write(ack, ""))
}

// dialLate makes alice call bob without an offer, and makes bob answer.
func dialLate(w *world) (c conversation) {
	w.t.Helper()
	c.alice, c.bob = w.newPhone("alice"), w.newPhone("bob")
	c.bob.register()
	c.request = c.alice.invitation("bob").withoutOffer()
	_, m := c.alice.ask(c.request)
	if m.kind() == "100" {
		c.alice.expect("180")
	}
	c.invite = c.bob.expect("INVITE")
	c.bob.respond(c.invite, "200 OK", c.bob.offer("sendrecv"))
	c.bob.expect("ACK")
	c.answered = c.alice.expect("200")
	return c
}

func TestLateOffer(t *testing.T) {
	w := newWorld(t)
	c := dialLate(w)
	for _, line := range []string{"RTP/AVP 0 101\r\n", "a=sendrecv\r\n"} {
		if !strings.Contains(c.answered.body(), line) {
			t.Errorf("the late offer is\n%s\nwant %q in it", c.answered, line)
		}
	}

	c.alice.acksWith(c.answered, c.alice.offer("sendrecv"))
	// Alice has not sent anything, so the server knows her port only from the answer in the ACK.
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "hello alice")
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "hello bob")

	c.alice.send(c.alice.write(c.alice.inDialog("BYE", c.answered), ""))
	c.alice.expect("200")
	c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestLateOfferWithSRTP shows that a late offer has the encryption that the phone's credentials
// require, and that the phone's key in the ACK is used.
func TestLateOfferWithSRTP(t *testing.T) {
	w := newWorld(t)
	w.requireSRTP("alice")
	p := w.newPhone("alice").overTLS()
	_, m := p.ask(p.invitation("echo").withoutOffer())
	if m.kind() == "100" {
		m = p.expect("200")
	}
	tag, key := serverKey(t, m)
	p.acksWith(m, p.secureOffer(tag))
	hearSecure(t, p, p.mediaOf(m), p, key, "hello myself")
}

// TestLateOfferWithoutAnswer shows that a call ends if the ACK has no answer to the late offer, or
// has an answer that cannot be used.
func TestLateOfferWithoutAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"none":              "",
		"garbage":           "v=0\r\nm=",
		"a different codec": "G.722",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := dialLate(w)
			switch answer {
			case "":
				c.alice.acks(c.answered, c.alice.seq)
			case "G.722":
				c.alice.codec = 9
				c.alice.acksWith(c.answered, c.alice.offer("sendrecv"))
			default:
				c.alice.acksWith(c.answered, answer)
			}
			c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
			c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
			w.isOver()
		})
	}
}

// TestLateResume shows that a phone may resume a held call with a late offer. A phone that was
// called may also ask for a late offer.
func TestLateResume(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	hold := c.alice.inDialog("INVITE", c.answered).with(sdpType, c.alice.offer("inactive"))
	c.alice.send(c.alice.write(hold, ""))
	c.alice.expect("200")
	c.alice.acks(c.answered, c.alice.seq)

	c.alice.send(c.alice.write(c.alice.inDialog("INVITE", c.answered).withoutOffer(), ""))
	if m := c.alice.expect("200"); !strings.Contains(m.body(), "a=sendrecv") {
		t.Errorf("the late offer of a held call is\n%s\nwant a=sendrecv in it", m)
	}
	c.alice.acksWith(c.answered, c.alice.offer("sendrecv"))
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "back")

	// Without an answer, the call continues as it was.
	c.alice.send(c.alice.write(c.alice.inDialog("INVITE", c.answered).withoutOffer(), ""))
	c.alice.expect("200")
	c.alice.acks(c.answered, c.alice.seq)
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "still the same")

	c.bob.send(c.bob.write(c.bobRequests("INVITE").withoutOffer(), ""))
	if m := c.bob.expect("200"); !strings.Contains(m.body(), "a=sendrecv") {
		t.Errorf("the late offer to the called phone is\n%s\nwant a=sendrecv in it", m)
	}
	ack := c.bobRequests("ACK").with(sdpType, c.bob.offer("sendonly"))
	ack.seq = c.bob.seq
	c.bob.send(c.bob.write(ack, ""))
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "still here")
}

// TestLateAnswerPending shows that a phone cannot make another offer before it has answered a late
// one. The answer is then used, although the refused requests came first.
func TestLateAnswerPending(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	c.alice.send(c.alice.write(c.alice.inDialog("INVITE", c.answered).withoutOffer(), ""))
	c.alice.expect("200")
	late := c.alice.seq
	for _, method := range []string{"INVITE", "UPDATE"} {
		hold := c.alice.inDialog(method, c.answered).with(sdpType, c.alice.offer("inactive"))
		c.alice.send(c.alice.write(hold, ""))
		refused := c.alice.expect("491")
		if method == "INVITE" {
			c.alice.send(c.alice.acknowledge(hold, refused))
		}
	}

	moved := w.newPhone("alice")
	c.alice.rtp = moved.rtp
	ack := c.alice.inDialog("ACK", c.answered).with(sdpType, moved.offer("sendrecv"))
	ack.seq = late
	c.alice.send(c.alice.write(ack, ""))
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "moved")
}

// TestPipelinedRequests shows that requests that arrive together are handled in order.
func TestPipelinedRequests(t *testing.T) {
	w := newWorld(t)
	alice := w.newPhone("alice").overTCP()
	m := alice.dialed("echo")
	alice.acks(m, alice.seq)

	var together strings.Builder
	for range 32 {
		together.WriteString(alice.write(alice.inDialog("INFO", m).with("Content-Type: application/dtmf\r\n", "5"), ""))
	}
	alice.send(together.String())
	for range 32 {
		alice.expect("200")
	}
}
