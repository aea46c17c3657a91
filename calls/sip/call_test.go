package sip_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

func TestPhoneCallsPhone(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "hello bob")
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "hello alice")

	c.alice.send(c.alice.write(c.alice.inDialog("BYE", c.answered), ""))
	c.alice.expect("200")
	bye := c.bob.expect("BYE")
	c.bob.hasReason(bye, "cause=16")
	c.bob.respond(bye, "200 OK", "")
	w.isOver()

	// Both phones were challenged. Bob's rang, answered and confirmed the end.
	eventually(t, "the responses to be counted by class", func() bool {
		s := w.server.Stats()
		return s.Sent[1] > 0 && s.Sent[2] >= 3 && s.Sent[4] >= 2 && s.Answered[1] > 0 && s.Answered[2] >= 2
	})
}

func TestCalleeHangsUp(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	c.bob.send(c.bob.write(c.bobRequests("BYE"), ""))
	c.bob.expect("200")
	c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
	w.isOver()
}

func TestEcho(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	_, m := p.dial("echo")
	if m.kind() != "200" {
		t.Fatalf("calling echo returned\n%s\nwant 200", m)
	}
	hear(t, p, p.mediaOf(m), p, "hello myself")
	p.send(p.write(p.inDialog("BYE", m), ""))
	w.isOver()
}

func TestHold(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	for _, tt := range []struct{ direction, want string }{
		{"sendonly", "a=recvonly"},
		{"inactive", "a=inactive"},
		{"sendrecv", "a=sendrecv"},
	} {
		r := c.alice.inDialog("INVITE", c.answered).with(sdpType, c.alice.offer(tt.direction))
		c.alice.send(c.alice.write(r, ""))
		m := c.alice.expect("200")
		if !strings.Contains(m.body(), tt.want) {
			t.Errorf("the answer to %s is\n%s\nwant %s in it", tt.direction, m, tt.want)
		}
		c.alice.acks(c.answered, c.alice.seq)
	}
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "back")

	// A description that cannot be used is rejected and does not change the call.
	for name, body := range map[string]string{
		"garbage":           "v=0\r\nm=",
		"a different codec": strings.Replace(c.alice.offer("sendrecv"), "RTP/AVP 0", "RTP/AVP 8", 1),
		"too many lines":    strings.Repeat("a=x\r\n", 2000),
	} {
		r := c.alice.inDialog("INVITE", c.answered).with(sdpType, body)
		c.alice.send(c.alice.write(r, ""))
		m := c.alice.next(deadline)
		if m.kind() != "488" {
			t.Fatalf("the response to an offer with %s is\n%s\nwant 488", name, m)
		}
		c.alice.send(c.alice.acknowledge(r, m))
	}
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "still here")
}

// TestGonePhone shows that phones in calls are asked every minute whether they are still reachable.
// A call ends if a phone no longer knows it.
func TestGonePhone(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	now := time.Now()
	w.server.CheckDialogs(now)
	w.server.CheckDialogs(now.Add(time.Minute))
	c.alice.respond(c.alice.expect("OPTIONS"), "200 OK", "")
	c.bob.respond(c.bob.expect("OPTIONS"), "405 Method Not Allowed", "")
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "still here")

	w.server.CheckDialogs(now.Add(2 * time.Minute))
	c.bob.respond(c.bob.expect("OPTIONS"), "481 Call/Transaction Does Not Exist", "")
	c.alice.respond(c.alice.expect("OPTIONS"), "200 OK", "")
	c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestUnreachablePhone shows that a phone gets a BYE if the response to an OPTIONS is 408, which means
// that the phone did not respond in time.
func TestUnreachablePhone(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	now := time.Now()
	w.server.CheckDialogs(now)
	w.server.CheckDialogs(now.Add(time.Minute))
	c.alice.respond(c.alice.expect("OPTIONS"), "200 OK", "")
	c.bob.respond(c.bob.expect("OPTIONS"), "408 Request Timeout", "")
	bye := c.bob.expect("BYE")
	c.bob.hasReason(bye, "cause=102")
	c.bob.respond(bye, "200 OK", "")
	c.alice.respond(c.alice.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestMovedByUpdate shows that the requests of a call go to the contact in the phone's latest UPDATE,
// with or without a description.
func TestMovedByUpdate(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	now := time.Now()
	w.server.CheckDialogs(now)
	for contact, r := range map[string]request{
		"first@127.0.0.1":  c.alice.inDialog("UPDATE", c.answered),
		"second@127.0.0.1": c.alice.inDialog("UPDATE", c.answered).with(sdpType, c.alice.offer("sendrecv")),
	} {
		text := c.alice.write(r, "")
		own := message(text).header("Contact")[0]
		c.alice.send(strings.Replace(text, own, "<sip:"+contact+">", 1))
		c.alice.expect("200")
		now = now.Add(time.Minute)
		w.server.CheckDialogs(now)
		c.bob.respond(c.bob.expect("OPTIONS"), "200 OK", "")
		m := c.alice.expect("OPTIONS")
		if !strings.HasPrefix(string(m), "OPTIONS sip:"+contact+" ") {
			t.Errorf("after an UPDATE with the contact %s, the phone got\n%s\nwant a request to it", contact, m)
		}
		c.alice.respond(m, "200 OK", "")
	}
}

// TestManyUpdates shows that a phone that renegotiates its media too often gets an error and must
// wait.
func TestManyUpdates(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	update := func() message {
		r := c.alice.inDialog("UPDATE", c.answered).with(sdpType, c.alice.offer("sendrecv"))
		c.alice.send(c.alice.write(r, ""))
		return c.alice.next(deadline)
	}

	allowed := 0
	m := update()
	for m.kind() == "200" && allowed < 1000 { // the number depends on the machine
		allowed++
		m = update()
	}
	if allowed < 10 {
		t.Errorf("%d updates were allowed, want at least 10", allowed)
	}
	if m.kind() != "500" {
		t.Errorf("after %d allowed updates, the response is\n%s\nwant 500", allowed, m)
	}
	if len(m.header("Retry-After")) == 0 {
		t.Errorf("after %d allowed updates, the response has no Retry-After:\n%s", allowed, m)
	}
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "still here")
}

func TestDigits(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	for _, tt := range []struct{ mediaType, body, want string }{
		{"application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", "200"},
		{"application/dtmf", "#", "200"},
		{"application/dtmf-relay", "Signal=10\r\n", "200"},
		{"application/dtmf", "12", "200"}, // two digits, not an event code
		{"application/dtmf", "hello", "400"},
		{"text/plain", "5", "415"},
	} {
		r := c.alice.inDialog("INFO", c.answered).with("Content-Type: "+tt.mediaType+"\r\n", tt.body)
		c.alice.send(c.alice.write(r, ""))
		if m := c.alice.next(deadline); m.kind() != tt.want {
			t.Errorf("INFO with %s %q returned %s, want %s", tt.mediaType, tt.body, m.kind(), tt.want)
		}
	}

	for _, digit := range "5#*12" {
		c.bob.hearsDigit(byte(digit))
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	r, m, invite := alice.rings(bob)

	cancel := alice.cancellation(r, m)
	stranger := w.newPhone("alice")
	stranger.conn = stranger.from("127.0.0.3")
	stranger.callID = alice.callID
	stranger.send(stranger.write(cancel, ""))
	if got := stranger.next(silence); got != "" {
		t.Errorf("a CANCEL from a different address returned\n%s\nwant no answer", got)
	}

	alice.send(alice.write(cancel, ""))
	alice.expect("200")
	refused := alice.expect("487")
	alice.send(alice.acknowledge(r, refused))
	canceled := bob.expect("CANCEL")
	bob.respond(canceled, "200 OK", "")
	bob.respond(invite, "487 Request Terminated", "")
	bob.expect("ACK")
	w.isOver()
}

// TestRepeatedCancel shows that a CANCEL to a ringing phone is repeated until the phone responds.
func TestRepeatedCancel(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	r, m, invite := alice.rings(bob)
	alice.send(alice.write(alice.cancellation(r, m), ""))
	canceled := bob.expect("CANCEL")
	bob.seen = map[string]bool{}
	if again := bob.expect("CANCEL"); again != canceled {
		t.Errorf("the repeated CANCEL is\n%s\nwant\n%s", again, canceled)
	}
	bob.respond(canceled, "200 OK", "")
	bob.respond(invite, "487 Request Terminated", "")
	bob.expect("ACK")
}

// rings calls another phone until that phone rings. It returns the INVITE, the 180, and the INVITE
// that the other phone received.
func (p *phone) rings(other *phone) (r request, m, invite message) {
	p.t.Helper()
	r, m = p.dial(other.user)
	if m.kind() != "180" {
		p.t.Fatalf("calling %s returned\n%s\nwant 180", other.user, m)
	}
	invite = other.expect("INVITE")
	other.respond(invite, "180 Ringing", "")
	return r, m, invite
}

// cancellation returns the CANCEL for an INVITE. m is a response to the INVITE.
func (p *phone) cancellation(invite request, m message) request {
	r := invite.with("", "")
	r.method = "CANCEL"
	r.seq = p.seq
	_, branch, _ := strings.Cut(m.header("Via")[0], "branch=")
	r.branch, _, _ = strings.Cut(branch, ";")
	return r
}

// TestEarlyCancel shows that a CANCEL takes effect even if it arrives before the call has begun.
// The callee's phone does not keep ringing.
func TestEarlyCancel(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Limits.Ring = time.Hour })
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	for i := range 5 { // as many calls as alice may begin at once
		alice.callID = fmt.Sprint("canceled ", i)
		r := alice.invitation("bob")
		_, m := alice.ask(r) // usually 100
		alice.send(alice.write(alice.cancellation(r, m), ""))
		for m = alice.next(deadline); m.kind() != "487"; m = alice.next(deadline) {
			if m.kind() != "100" && m.kind() != "180" && m.kind() != "200" {
				t.Fatalf("after a CANCEL, alice got\n%s\nwant 487", m)
			}
		}
		alice.send(alice.acknowledge(r, m))
	}
	w.isOver()
}

// TestEarlyBYE shows that a BYE ends a call that was not answered yet. The INVITE then gets its final
// response.
func TestEarlyBYE(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	r, m := alice.dial("bob")
	if m.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", m)
	}
	bob.respond(bob.expect("INVITE"), "180 Ringing", "")
	alice.send(alice.write(alice.inDialog("BYE", m), ""))
	alice.expect("200")
	refused := alice.expect("487")
	if cseq := refused.header("CSeq")[0]; !strings.HasSuffix(cseq, "INVITE") {
		t.Errorf("the 487 has the CSeq %s, want that of the INVITE", cseq)
	}
	alice.send(alice.acknowledge(r, refused))
	bob.expect("CANCEL")
	w.isOver()
}

func TestRefusedByPhone(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ status, want string }{
		{"486 Busy Here", "486"},
		{"603 Decline", "403"},
		{"480 Temporarily Unavailable", "480"},
		{"488 Not Acceptable Here", "488"},
		{"404 Not Found", "480"},
	} {
		alice, bob := w.newPhone("alice"), w.newPhone("bob")
		bob.callID = "registration " + tt.status
		bob.register()
		_, m := alice.dial("bob")
		if m.kind() != "180" {
			t.Fatalf("calling bob returned\n%s\nwant 180", m)
		}

		bob.respond(bob.expect("INVITE"), tt.status, "")
		bob.expect("ACK")
		if m := alice.next(deadline); m.kind() != tt.want {
			t.Errorf("after %s the caller got\n%s\nwant %s", tt.status, m, tt.want)
		}

		bob.callID += " ends"
		bob.ask(bob.registration(0))
		w.isOver()
	}
}

// TestRedirectByPhone shows that the server does not follow a phone that forwards a call by itself.
func TestRedirectByPhone(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	alice.dial("bob")
	bob.respond(bob.expect("INVITE"), "302 Moved Temporarily", "")
	bob.expect("ACK")
	alice.expect("480")
	w.isOver()
	if m := bob.next(silence); m != "" {
		t.Errorf("the contact of a redirect got\n%s\nwant nothing", m)
	}
}

func TestNoAnswer(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Limits.Ring = 5 * time.Second })
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	if _, m := alice.dial("bob"); m.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", m)
	}
	invite := bob.expect("INVITE")
	bob.respond(invite, "180 Ringing", "")
	m := alice.next(deadline)
	if m.kind() != "480" {
		t.Errorf("when nobody answered, the caller got\n%s\nwant 480", m)
	}
	alice.hasReason(m, "cause=19")
	bob.respond(bob.expect("CANCEL"), "200 OK", "")
}

// TestForkedCall shows that only the first of several phones behind a proxy takes the call. The others
// get a BYE.
func TestForkedCall(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	to := c.invite.header("To")[0]
	other := strings.Replace(string(c.invite), "To: "+to, "To: "+to+";tag=other", 1)
	c.bob.respond(message(other), "200 OK", c.bob.offer("sendrecv"))
	for _, method := range []string{"ACK", "BYE"} {
		m := c.bob.expect(method)
		if !strings.HasSuffix(m.header("To")[0], ";tag=other") {
			t.Errorf("the second phone got\n%s\nwant its own tag", m)
		}
		if method == "BYE" {
			c.bob.respond(m, "200 OK", "")
		}
	}
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "still here")
}

// TestLongRinging shows that a caller gets a response every minute while the call rings.
func TestLongRinging(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	_, ringing := alice.dial("bob")
	if ringing.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", ringing)
	}
	bob.respond(bob.expect("INVITE"), "180 Ringing", "")
	now := time.Now()
	w.server.CheckDialogs(now)
	for range 2 {
		alice.seen = map[string]bool{}
		now = now.Add(time.Minute)
		w.server.CheckDialogs(now)
		if again := alice.expect("180"); again != ringing {
			t.Errorf("the repeated response is\n%s\nwant\n%s", again, ringing)
		}
	}
}

// TestFirstAnswerWins shows that when one of bob's two phones answers, the other phone stops
// ringing and receives the reason.
func TestFirstAnswerWins(t *testing.T) {
	w := newWorld(t)
	alice, desk, cordless := w.newPhone("alice"), w.newPhone("bob"), w.newPhone("bob")
	desk.register()
	cordless.callID = "cordless"
	cordless.register()
	if _, m := alice.dial("bob"); m.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", m)
	}

	one, two := desk.expect("INVITE"), cordless.expect("INVITE")
	desk.respond(one, "180 Ringing", "")
	cordless.respond(two, "180 Ringing", "")
	desk.respond(one, "200 OK", desk.offer("sendrecv"))
	desk.expect("ACK")
	cordless.hasReason(cordless.expect("CANCEL"), "completed elsewhere")
	alice.expect("200")
}

func TestCallsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	toBob, offer := p.invitation("bob"), p.offer("sendrecv")
	g729 := strings.Replace(offer, "RTP/AVP 0", "RTP/AVP 18", 1)

	for i, tt := range []struct {
		name    string
		request request
		want    string
	}{
		{"an unknown user", p.invitation("nobody"), "404"},
		{"a user without a phone", toBob, "480"},
		{"with a text instead of a description", toBob.with("Content-Type: text/plain\r\n", "hello"), "488"},
		{"without a usable codec", toBob.with(sdpType, g729), "488"},
		{"with an unknown extension", toBob.with("Require: 100rel\r\n"+sdpType, offer), "420"},
	} {
		p.callID = fmt.Sprintf("refused %d", i)
		_, m := p.ask(tt.request)
		if m.kind() == "100" {
			m = p.next(deadline)
		}
		if m.kind() != tt.want {
			t.Errorf("calling %s returned\n%s\nwant %s", tt.name, m, tt.want)
		}
		p.send(p.acknowledge(tt.request, m))
	}
	w.isOver()
}

// TestStrangers shows that a BYE from a different address does not end a call, whether the BYE has
// the right tag or a guessed one.
func TestStrangers(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	stranger := w.newPhone("alice")
	stranger.conn = stranger.from("127.0.0.4")
	stranger.callID = c.alice.callID
	stranger.seq = 10
	for _, to := range []string{c.answered.header("To")[0], "<sip:bob@selvage.test>;tag=guess"} {
		bye := c.alice.inDialog("BYE", c.answered)
		bye.to = to
		stranger.send(stranger.write(bye, ""))
		if m := stranger.next(silence); m != "" {
			t.Errorf("a stranger's BYE returned\n%s\nwant no answer", m)
		}
	}
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "still here")
}

// TestMalformed shows that malformed messages and messages without a required part get no answer.
// The server keeps working.
func TestMalformed(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	whole := p.write(p.registration(600), "")
	for _, text := range []string{
		"hello",
		"REGISTER sip:x SIP/2.0\r\n\r\n",
		strings.Replace(whole, "CSeq", "X-CSeq", 1),
		strings.Replace(whole, ";tag=reg", "", 1),
		strings.Replace(whole, "branch=", "b=", 1),
		strings.Repeat("x", 60_000),
		whole[:len(whole)/2],
		"SIP/2.0 200 OK\r\n\r\n",
		"\x00\x01\x02\x03",
		strings.Replace(whole, "Call-ID: ", "Call-ID: "+strings.Repeat("x", 5000), 1),
	} {
		p.send(text)
		if m := p.next(20 * time.Millisecond); m != "" {
			t.Errorf("%.60q returned\n%s\nwant no answer", text, m)
		}
	}
	p.register()

	conn := must[net.Conn](t)(net.Dial("tcp", w.udp.String()))
	defer conn.Close()
	must[int](t)(fmt.Fprintf(conn, "REGISTER sip:x SIP/2.0\r\nContent-Length: 99999999\r\n\r\n"))
	_ = conn.SetReadDeadline(time.Now().Add(deadline))
	_, err := conn.Read(make([]byte, 1))
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after a message that is too long, Read = %v, want the connection to be closed", err)
	}
}

// TestRepeatedBYE shows that a BYE is repeated until its final response arrives, even after a 100.
func TestRepeatedBYE(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	c.alice.send(c.alice.write(c.alice.inDialog("BYE", c.answered), ""))
	c.alice.expect("200")
	bye := c.bob.expect("BYE")
	c.bob.respond(bye, "100 Trying", "")
	for range 2 { // the server may have sent the first of them before it got the response
		c.bob.seen = map[string]bool{}
		if again := c.bob.expect("BYE"); again != bye {
			t.Errorf("the repeated BYE is\n%s\nwant\n%s", again, bye)
		}
	}
	c.bob.respond(bye, "200 OK", "")
}

// TestRepeatedAnswer shows that an answer is repeated until the phone acknowledges it, even over TCP.
func TestRepeatedAnswer(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t)
			p := w.newPhone("alice")
			if transport == "tcp" {
				p.overTCP()
			}
			_, m := p.dial("echo")
			if m.kind() != "200" {
				t.Fatalf("calling echo returned\n%s\nwant 200", m)
			}
			p.seen = map[string]bool{}
			if again := p.expect("200"); again != m {
				t.Errorf("the repeated answer is\n%s\nwant\n%s", again, m)
			}
		})
	}
}

// TestRepeatedRefusal shows that a refusal is repeated until the phone acknowledges it.
func TestRepeatedRefusal(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.dialed("bob")
	if m.kind() != "480" {
		t.Fatalf("calling bob without a phone returned\n%s\nwant 480", m)
	}
	p.seen = map[string]bool{}
	if again := p.expect("480"); again != m {
		t.Errorf("the repeated refusal is\n%s\nwant\n%s", again, m)
	}
}

// TestHangUpByServer shows that if the server shuts down, both phones get a BYE with the cause.
func TestHangUpByServer(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	w.calls.Shutdown(t.Context())
	for _, p := range []*phone{c.alice, c.bob} {
		bye := p.expect("BYE")
		if !strings.Contains(string(bye), calls.NodeLost.Text) {
			t.Errorf("%s got\n%s\nwant the cause %s", p.user, bye, calls.NodeLost.Text)
		}
		p.respond(bye, "200 OK", "")
	}
}

// TestRoom shows that phones in a room hear each other with each codec. Bob hears silence until
// alice sends sound.
func TestRoom(t *testing.T) {
	for codec, name := range map[int]string{0: "mulaw", 8: "alaw", 9: "g722"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addRoom(nil)
			alice, bob := w.newPhone("alice"), w.newPhone("bob")
			alice.codec = codec
			_, one := alice.dial("lobby")
			_, two := bob.dial("lobby")
			for _, m := range []message{one, two} {
				if m.kind() != "200" {
					t.Fatalf("calling a room returned\n%s\nwant 200", m)
				}
			}

			if want := fmt.Sprintf("RTP/AVP %d ", codec); !strings.Contains(one.body(), want) {
				t.Errorf("the answer to alice is\n%s\nwant %q in it", one.body(), want)
			}
			if !bob.hearsVoice(alice, alice.mediaOf(one), name) {
				t.Error("bob hears only silence in the room")
			}
		})
	}
}
