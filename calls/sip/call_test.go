package sip_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/recordings/wav"
)

// A conversation is an answered call between two phones.
type conversation struct {
	alice, bob       *phone
	request          request // the INVITE that alice sent
	answered, invite message // the 200 that alice received, and the INVITE that bob received
}

// converse makes alice call bob, whose phone answers.
func converse(t *testing.T, w *world) (c conversation) {
	t.Helper()
	c.alice, c.bob = w.newPhone("alice"), w.newPhone("bob")
	c.bob.register()
	var ringing message
	c.request, ringing = c.alice.dial("bob")
	if ringing.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", ringing)
	}

	c.invite = c.bob.expect("INVITE")
	if from := c.invite.header("From")[0]; !strings.Contains(from, `"alice" <sip:alice@`) {
		t.Errorf("bob's phone shows the caller %s, want alice", from)
	}

	c.bob.respond(c.invite, "180 Ringing", "")
	c.bob.respond(c.invite, "200 OK", c.bob.offer("sendrecv"))
	c.bob.expect("ACK")
	c.answered = c.alice.expect("200")
	c.alice.acks(c.answered, c.alice.seq)
	return c
}

// hear sends payload over RTP from one phone until the listener receives it.
func hear(t *testing.T, from *phone, to *net.UDPAddr, listener *phone, payload string) {
	t.Helper()
	b := make([]byte, 2048)
	for seq := range uint16(1500) {
		from.say(to, seq, payload)
		_ = listener.rtp.SetReadDeadline(time.Now().Add(40 * time.Millisecond))
		if n, err := listener.rtp.Read(b); err == nil && bytes.HasSuffix(b[:n], []byte(payload)) {
			return
		}
	}
	t.Fatalf("%s did not hear %q", listener.user, payload)
}

// say sends an RTP packet.
func (p *phone) say(to *net.UDPAddr, seq uint16, payload string) {
	p.t.Helper()
	packet := must[[]byte](p.t)((&rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: seq, SSRC: 9,
		Timestamp: uint32(seq) * 160}, Payload: []byte(payload)}).Marshal())
	must[int](p.t)(p.rtp.WriteToUDP(packet, to))
}

// isOver waits until all calls have ended.
func (w *world) isOver() {
	w.t.Helper()
	eventually(w.t, "the calls to end", func() bool {
		return w.calls.Stats().Calls == 0 && w.server.Stats().Dialogs == 0
	})
}

func TestPhoneCallsPhone(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "hello bob")
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "hello alice")

	c.alice.send(c.alice.write(c.alice.inDialog("BYE", c.answered), ""))
	c.alice.expect("200")
	bye := c.bob.expect("BYE")
	if reason := bye.header("Reason"); len(reason) != 1 || !strings.Contains(reason[0], "cause=16") {
		t.Errorf("bob's BYE has the reason %q, want cause 16", reason)
	}
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
	bye := request{method: "BYE", uri: "sip:selvage@" + w.udp.String(), to: c.invite.header("From")[0],
		from: "phone-bob"}
	c.bob.callID = c.invite.header("Call-ID")[0]
	c.bob.send(c.bob.write(bye, ""))
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
	for _, tt := range []struct{ direction, want string }{{"sendonly", "a=recvonly"}, {"inactive", "a=inactive"},
		{"sendrecv", "a=sendrecv"}} {
		r := c.alice.inDialog("INVITE", c.answered)
		r.headers, r.body = sdpType, c.alice.offer(tt.direction)
		c.alice.send(c.alice.write(r, ""))
		m := c.alice.expect("200")
		if !strings.Contains(m.body(), tt.want) {
			t.Errorf("the answer to %s is\n%s\nwant %s", tt.direction, m, tt.want)
		}
		c.alice.acks(c.answered, c.alice.seq)
	}
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "back")

	// A description that cannot be used is rejected and does not change the call.
	for name, body := range map[string]string{"garbage": "v=0\r\nm=", "a different codec": strings.Replace(
		c.alice.offer("sendrecv"), "RTP/AVP 0", "RTP/AVP 8", 1), "too long": strings.Repeat("a=x\r\n", 2000)} {
		r := c.alice.inDialog("INVITE", c.answered)
		r.headers, r.body = sdpType, body
		c.alice.send(c.alice.write(r, ""))
		m := c.alice.expect("488")
		c.alice.send(c.alice.acknowledge(r, m))
		if t.Failed() {
			t.Fatalf("the offer was %s", name)
		}
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

// TestManyUpdates shows that a phone that renegotiates its media too often gets an error and must
// wait.
func TestManyUpdates(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	counts := map[string]int{}
	for sent := 0; counts["500"] == 0 && sent < 1000; sent++ { // the number depends on the machine
		r := c.alice.inDialog("UPDATE", c.answered)
		r.headers, r.body = sdpType, c.alice.offer("sendrecv")
		c.alice.send(c.alice.write(r, ""))
		m := c.alice.next(deadline)
		counts[m.kind()]++
		if m.kind() == "500" && len(m.header("Retry-After")) == 0 {
			t.Fatalf("no Retry-After in\n%s", m)
		}
	}

	if counts["200"] < 10 || counts["500"] != 1 || len(counts) != 2 {
		t.Errorf("the responses to updates are %v, want at least 10 times 200, and then 500", counts)
	}
	hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "still here")
}

func TestDigits(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	for _, tt := range []struct{ kind, body, want string }{
		{"application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", "200"}, {"application/dtmf", "#", "200"},
		{"application/dtmf", "hello", "400"}, {"text/plain", "5", "415"},
	} {
		r := c.alice.inDialog("INFO", c.answered)
		r.headers, r.body = "Content-Type: "+tt.kind+"\r\n", tt.body
		c.alice.send(c.alice.write(r, ""))
		if m := c.alice.next(deadline); m.kind() != tt.want {
			t.Errorf("INFO with %s %q returned %s, want %s", tt.kind, tt.body, m.kind(), tt.want)
		}
	}

	_ = c.bob.rtp.SetReadDeadline(time.Now().Add(deadline))
	for heard := 0; heard < 2; {
		b := make([]byte, 2048)
		n := must[int](t)(c.bob.rtp.Read(b))
		// These packets end a telephone event.
		if b[1]&0x7f == 101 && b[n-3]&0x80 != 0 && b[12] == []byte{5, 11}[heard] {
			heard++
		}
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	r, m := alice.dial("bob")
	if m.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", m)
	}
	invite := bob.expect("INVITE")
	bob.respond(invite, "180 Ringing", "")

	cancel := r
	cancel.method, cancel.seq = "CANCEL", alice.seq
	cancel.headers, cancel.body = "", ""
	cancel.branch = strings.Split(strings.Split(m.header("Via")[0], "branch=")[1], ";")[0]
	stranger := w.newPhone("alice")
	stranger.conn, stranger.callID = stranger.from("127.0.0.3"), alice.callID
	stranger.send(stranger.write(cancel, ""))
	if got := stranger.next(silence); got != "" {
		t.Errorf("a CANCEL from another address returned\n%s\nwant no answer", got)
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

func TestRefusedByPhone(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ status, want string }{
		{"486 Busy Here", "486"}, {"603 Decline", "403"}, {"480 Temporarily Unavailable", "480"},
		{"488 Not Acceptable Here", "488"}, {"404 Not Found", "480"},
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

func TestNoAnswer(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Limits.Ring = 5 * time.Second })
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	if _, m := alice.dial("bob"); m.kind() != "180" {
		t.Fatalf("calling bob returned\n%s\nwant 180", m)
	}
	invite := bob.expect("INVITE")
	bob.respond(invite, "180 Ringing", "")
	if m := alice.next(deadline); m.kind() != "480" || !strings.Contains(string(m), "cause=19") {
		t.Errorf("when nobody answered, the caller got\n%s\nwant 480 and cause 19", m)
	}
	bob.respond(bob.expect("CANCEL"), "200 OK", "")
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
	canceled := cordless.expect("CANCEL")
	if reason := canceled.header("Reason"); len(reason) != 1 || !strings.Contains(reason[0], "completed elsewhere") {
		t.Errorf("the other phone's CANCEL has the reason %q, want \"Call completed elsewhere\"", reason)
	}
	alice.expect("200")
}

func TestCallsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	noSDP := p.invitation("bob")
	noSDP.headers, noSDP.body = "", ""
	tests := []struct {
		name string
		r    request
		want string
	}{
		{"an unknown user", p.invitation("nobody"), "404"},
		{"a user without a phone", p.invitation("bob"), "480"},
		{"without a description", noSDP, "488"},
		{"without a usable codec", request{method: "INVITE", uri: "sip:bob@selvage.test", to: "<sip:bob@selvage.test>",
			from: "inv", headers: sdpType,
			body: strings.Replace(p.offer("sendrecv"), "RTP/AVP 0", "RTP/AVP 18", 1)}, "488"},
		{"with an unknown extension", request{method: "INVITE", uri: "sip:bob@selvage.test",
			to: "<sip:bob@selvage.test>", from: "inv", headers: "Require: 100rel\r\n" + sdpType,
			body: p.offer("sendrecv")}, "420"},
	}

	for i, tt := range tests {
		p.callID = fmt.Sprintf("refused %d", i)
		_, m := p.ask(tt.r)
		if m.kind() == "100" {
			m = p.next(deadline)
		}
		if m.kind() != tt.want {
			t.Errorf("calling %s returned\n%s\nwant %s", tt.name, m, tt.want)
		}
		p.send(p.acknowledge(tt.r, m))
	}
	w.isOver()
}

// TestStrangers shows that a BYE from another address does not end a call, whether the BYE has the
// right tag or a guessed one.
func TestStrangers(t *testing.T) {
	w := newWorld(t)
	c := converse(t, w)
	stranger := w.newPhone("alice")
	stranger.conn, stranger.callID = stranger.from("127.0.0.4"), c.alice.callID
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
		"hello", "REGISTER sip:x SIP/2.0\r\n\r\n", strings.Replace(whole, "CSeq", "X-CSeq", 1),
		strings.Replace(whole, ";tag=reg", "", 1), strings.Replace(whole, "branch=", "b=", 1),
		strings.Repeat("x", 60_000), whole[:len(whole)/2], "SIP/2.0 200 OK\r\n\r\n", "\x00\x01\x02\x03",
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
	if _, err := conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("after a message that is too long, the connection is still open: %v", err)
	}
}

// TestRepeatedAnswer shows that an answer is repeated until the phone acknowledges it.
func TestRepeatedAnswer(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	_, m := p.dial("echo")
	if m.kind() != "200" {
		t.Fatalf("calling echo returned\n%s\nwant 200", m)
	}
	p.seen = map[string]bool{}
	if again := p.expect("200"); again != m {
		t.Errorf("the repeated answer is\n%s\nwant\n%s", again, m)
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
			kind := w.fabric.Resources.Kinds().ByPath("conference_rooms")
			must[fabric.Resource](t)(w.fabric.Resources.Create(t.Context(), w.project, kind,
				map[string]json.RawMessage{"name": quoted("lobby")}))
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
				t.Errorf("the answer to alice is\n%s\nwant %s", one.body(), want)
			}
			if !bob.hearsVoice(alice, alice.mediaOf(one), name) {
				t.Error("bob hears only silence in the room")
			}
		})
	}
}

// hearsVoice reports whether a phone hears anything but silence while another phone sends a loud
// tone in a codec of package wav.
func (p *phone) hearsVoice(from *phone, to *net.UDPAddr, codec string) bool {
	p.t.Helper()
	encoder := must[*wav.Encoder](p.t)(wav.NewEncoder(codec))
	tone := make([]int16, 160)
	if codec == "g722" {
		tone = make([]int16, 320)
	}

	for i := range tone {
		tone[i] = int16(10000 - 20000*(i/8%2))
	}
	b, payload := make([]byte, 2048), make([]byte, 160)
	for seq := range uint16(3000) {
		encoder.Encode(payload, tone)
		packet := must[[]byte](p.t)((&rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: uint8(from.codec),
			SequenceNumber: seq, SSRC: 9, Timestamp: uint32(seq) * 160}, Payload: payload}).Marshal())
		must[int](p.t)(from.rtp.WriteToUDP(packet, to))
		_ = p.rtp.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := p.rtp.Read(b)
		if err == nil && n > 100 && !bytes.Equal(b[12:n], bytes.Repeat(b[12:13], n-12)) {
			return true
		}
	}
	return false
}
