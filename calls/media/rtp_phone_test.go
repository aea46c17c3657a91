package media_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/sdp"
)

// loopback is the address of phones in tests.
var loopback = netip.MustParseAddr("127.0.0.1")

// narrow lists the codecs of a client that talks to phones: PCMU, with telephone events.
var narrow = []webrtc.RTPCodecParameters{
	pcmu,
	{
		PayloadType:        101,
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: "audio/telephone-event", ClockRate: 8000},
	},
}

// A phone exchanges plain RTP with an engine.
type phone struct {
	t     *testing.T
	conn  *net.UDPConn
	to    *net.UDPAddr // the engine's port for this phone
	leg   calls.Media
	watch *watcher
	seq   uint16
}

// newPhone returns a phone with a socket at an address of this machine.
func newPhone(t *testing.T, at string) *phone {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(at)})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &phone{t: t, conn: conn, watch: newWatcher()}
}

// description returns the phone's description. port is the port at which the phone claims to expect
// media.
func (p *phone) description(port int, direction string) string {
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 10.1.2.3\r\ns=-\r\nc=IN IP4 10.1.2.3\r\nt=0 0\r\n"+
		"m=audio %d RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=%s\r\n",
		port, direction)
}

func (p *phone) port() int { return p.conn.LocalAddr().(*net.UDPAddr).Port }

// call opens a leg with the phone's offer.
func (p *phone) call(e *media.Engine, offer string) {
	p.t.Helper()
	leg, answer, err := e.Answer(p.watch, offer, calls.Terms{Phone: loopback})
	if err != nil {
		p.t.Fatalf("Answer: %v", err)
	}
	p.leg = leg
	p.take(answer)
}

// ring opens a leg with an offer of another leg's codecs, which the phone accepts.
func (p *phone) ring(e *media.Engine, other calls.Media) (offer string) {
	p.t.Helper()
	leg, offer, err := e.Offer(p.watch, other, calls.Terms{Phone: loopback})
	if err != nil {
		p.t.Fatalf("Offer: %v", err)
	}
	p.leg = leg
	p.take(offer)
	if err := leg.Accept(p.description(p.port(), "sendrecv")); err != nil {
		p.t.Fatalf("Accept: %v", err)
	}
	return offer
}

// take makes the phone send its media to the address in a description.
func (p *phone) take(description string) {
	p.t.Helper()
	d, err := sdp.ParsePhone(description)
	must(p.t, err)
	p.to = &net.UDPAddr{IP: d.Sections[0].Address.AsSlice(), Port: d.Sections[0].Port}
}

// packet returns the phone's next RTP packet.
func (p *phone) packet(kind uint8, payload string) []byte {
	p.seq++
	header := rtp.Header{
		Version:        2,
		PayloadType:    kind,
		SequenceNumber: p.seq,
		Timestamp:      uint32(p.seq) * 160,
		SSRC:           7,
	}
	b, err := (&rtp.Packet{Header: header, Payload: []byte(payload)}).Marshal()
	must(p.t, err)
	return b
}

// say sends a packet from a socket, which belongs to the phone or to a stranger.
func (p *phone) say(from *net.UDPConn, payload string) {
	p.t.Helper()
	_, err := from.WriteToUDP(p.packet(0, payload), p.to)
	must(p.t, err)
}

// hear returns the next packet that arrives at the phone's socket, or nil if none arrives in time.
func (p *phone) hear(within time.Duration) *rtp.Packet {
	p.t.Helper()
	must(p.t, p.conn.SetReadDeadline(time.Now().Add(within)))
	b := make([]byte, 2048)
	n, err := p.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	must(p.t, err)
	packet := &rtp.Packet{}
	must(p.t, packet.Unmarshal(b[:n]))
	return packet
}

// echoes repeats a packet until the phone hears it.
func (p *phone) echoes(payload string) *rtp.Packet {
	p.t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		p.say(p.conn, payload)
		if got := p.hear(100 * time.Millisecond); got != nil && string(got.Payload) == payload {
			return got
		}
	}
	p.t.Fatalf("the phone did not receive %q", payload)
	return nil
}

// talkBoth passes packets both ways between a phone and a browser, and then a digit to the phone.
func talkBoth(t *testing.T, p *phone, c *client) {
	t.Helper()
	for heard := false; !heard; {
		p.say(p.conn, "from the phone")
		select {
		case packet := <-c.parts[0].packets:
			heard = string(packet.Payload) == "from the phone"
		case <-time.After(50 * time.Millisecond):
		}
	}
	for heard := false; !heard; {
		c.parts[0].say(t, "from the browser")
		got := p.hear(50 * time.Millisecond)
		heard = got != nil && string(got.Payload) == "from the browser" && got.PayloadType == 0
	}

	c.leg.SendDigits("5")
	if got := p.hearsDigit(); got != 5 {
		t.Errorf("the phone heard the digit %d, want 5", got)
	}
}

// hearsDigit waits for a telephone event and returns its code (RFC 4733).
func (p *phone) hearsDigit() byte {
	p.t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		got := p.hear(deadline)
		if got != nil && got.PayloadType == 101 {
			return got.Payload[0]
		}
	}
	p.t.Fatal("the phone heard no digit")
	return 0
}
