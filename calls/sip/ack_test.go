package sip_test

import (
	"testing"

	"github.com/selvage/selvage/calls"
)

// unacknowledged dials the echo, and does not acknowledge the 200. It then ends the call at the
// server, and returns the 200.
func (p *phone) unacknowledged() message {
	p.t.Helper()
	_, m := p.dial("echo")
	if m.kind() != "200" {
		p.t.Fatalf("calling echo returned\n%s\nwant 200", m)
	}
	p.endedByServer()
	return m
}

// endedByServer ends all calls at the server, which must release them immediately.
func (p *phone) endedByServer() {
	p.t.Helper()
	p.calls.Shutdown(p.t.Context())
	p.isOver()
}

// hasNoBYE fails the test if the server has sent a BYE, which would arrive before the response to a
// new request.
func (p *phone) hasNoBYE(answered message) {
	p.t.Helper()
	p.send(p.write(p.inDialog("OPTIONS", answered), ""))
	p.expect("200")
}

// TestNoBYEBeforeACK shows that a phone gets the BYE of an ended call only after it has
// acknowledged the 200 to its INVITE (RFC 3261, section 15).
func TestNoBYEBeforeACK(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.unacknowledged()
	p.hasNoBYE(m)
	p.acks(m, p.seq-1)
	p.respond(p.expect("BYE"), "200 OK", "")
}

// TestNoBYEBeforeLaterACK is like TestNoBYEBeforeACK, for the 200 to a re-INVITE.
func TestNoBYEBeforeLaterACK(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.inCall()
	again := p.inDialog("INVITE", m).with(sdpType, p.offer("sendrecv"))
	p.send(p.write(again, ""))
	p.expect("200")
	p.endedByServer()
	p.hasNoBYE(m)
	p.acks(m, p.seq-1)
	p.respond(p.expect("BYE"), "200 OK", "")
}

// TestBYEWithoutACK shows that the server sends the BYE when it no longer waits for the ACK.
func TestBYEWithoutACK(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.unacknowledged()
	p.hasNoBYE(m)
	w.server.TimeOutACKs()
	p.respond(p.expect("BYE"), "200 OK", "")
}

// TestBYEInsteadOfACK shows that a phone gets no BYE if it hangs up instead of acknowledging the
// 200.
func TestBYEInsteadOfACK(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.unacknowledged()
	p.send(p.write(p.inDialog("BYE", m), ""))
	p.expect("200")
	for {
		p.send(p.write(p.inDialog("OPTIONS", m), ""))
		response := p.next(deadline)
		if response.kind() == "481" {
			return
		}
		if response.kind() != "200" {
			t.Fatalf("after its BYE, the phone got\n%s\nwant 200 until the call has ended, and then 481", response)
		}
	}
}

// An endsAtOnce passes on events, and ends the dialog of each phone whose call is answered, while the
// call is still beginning.
type endsAtOnce struct{ calls.Clients }

// Tell implements calls.Clients.
func (c endsAtOnce) Tell(to calls.Socket, e calls.Event) {
	c.Clients.Tell(to, e)
	if e.Kind == calls.Answered {
		e.Kind, e.Cause = calls.HungUp, calls.NormalClearing
		c.Clients.Tell(to, e)
	}
}

// TestBYEAfterEarlyEnd shows that a phone gets the BYE of a call that ended while it was beginning.
// As usual, the BYE follows the ACK.
func TestBYEAfterEarlyEnd(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Clients = endsAtOnce{c.Clients} })
	p := w.newPhone("alice")
	m := p.dialed("echo")
	if m.kind() != "200" {
		t.Fatalf("calling echo returned\n%s\nwant 200", m)
	}
	p.hasNoBYE(m)
	p.acks(m, p.seq-1)
	p.respond(p.expect("BYE"), "200 OK", "")
}
