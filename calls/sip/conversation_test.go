package sip_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/selvage/selvage/recordings/wav"
)

// A conversation is an answered call between two phones.
type conversation struct {
	alice, bob       *phone
	request          request // alice's INVITE
	answered, invite message // the 200 that alice received, and the INVITE that bob received
}

// converse makes alice call bob, whose phone answers.
func converse(t *testing.T, w *world) (c conversation) {
	t.Helper()
	return converseOver(t, w.newPhone("alice"), w.newPhone("bob"))
}

// converseOver is like converse, but uses the given phones.
func converseOver(t *testing.T, alice, bob *phone) (c conversation) {
	t.Helper()
	c.alice, c.bob = alice, bob
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
	must[int](p.t)(p.rtp.WriteToUDP(rtpPacket(p.t, 0, seq, payload), to))
}

// rtpPacket returns an RTP packet with 20 ms of audio.
func rtpPacket(t *testing.T, codec uint8, seq uint16, payload string) []byte {
	t.Helper()
	header := rtp.Header{
		Version:        2,
		PayloadType:    codec,
		SequenceNumber: seq,
		SSRC:           9,
		Timestamp:      uint32(seq) * 160,
	}
	packet := rtp.Packet{Header: header, Payload: []byte(payload)}
	return must[[]byte](t)(packet.Marshal())
}

// hearsDigit waits for a packet that ends the telephone event of a digit (RFC 4733).
func (p *phone) hearsDigit(digit byte) {
	p.t.Helper()
	_ = p.rtp.SetReadDeadline(time.Now().Add(deadline))
	b := make([]byte, 2048)
	for {
		n := must[int](p.t)(p.rtp.Read(b))
		isEvent := b[1]&0x7f == 101
		isEnd := b[n-3]&0x80 != 0
		if isEvent && isEnd && b[12] == keyOf(digit) {
			return
		}
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

	heard, payload := make([]byte, 2048), make([]byte, 160)
	for seq := range uint16(3000) {
		encoder.Encode(payload, tone)
		packet := rtpPacket(p.t, uint8(from.codec), seq, string(payload))
		must[int](p.t)(from.rtp.WriteToUDP(packet, to))

		_ = p.rtp.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := p.rtp.Read(heard)
		if err != nil || n <= 100 {
			continue
		}
		audio := heard[12:n]
		if silent := bytes.Repeat(audio[:1], len(audio)); !bytes.Equal(audio, silent) {
			return true
		}
	}
	return false
}
