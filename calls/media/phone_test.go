package media_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

// loopback is the address of phones in tests.
var loopback = netip.MustParseAddr("127.0.0.1")

// narrow lists the codecs of a client that talks to phones: PCMU, with telephone events.
var narrow = []webrtc.RTPCodecParameters{pcmu, {PayloadType: 101, RTPCodecCapability: webrtc.RTPCodecCapability{
	MimeType: "audio/telephone-event", ClockRate: 8000}}}

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

// take reads from a description the address to which the phone must send its media.
func (p *phone) take(description string) {
	p.t.Helper()
	d, err := sdp.ParsePhone(description)
	must(p.t, err)
	p.to = &net.UDPAddr{IP: d.Sections[0].Address.AsSlice(), Port: d.Sections[0].Port}
}

// packet returns the phone's next RTP packet.
func (p *phone) packet(kind uint8, payload string) []byte {
	p.seq++
	b, err := (&rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: kind, SequenceNumber: p.seq,
		Timestamp: uint32(p.seq) * 160, SSRC: 7}, Payload: []byte(payload)}).Marshal()
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

func TestPhoneCallsBrowser(t *testing.T) {
	e := newEngine(t)
	p, c := newPhone(t, "127.0.0.1"), newClient(t, setup{codecs: narrow})
	p.call(e, p.description(p.port(), "sendrecv"))
	leg, offer, err := e.Offer(c.watch, p.leg, calls.Terms{})
	must(t, err)
	if strings.Contains(offer, "opus") || !strings.Contains(offer, "UDP/TLS/RTP/SAVPF 0 101") {
		t.Errorf("the browser's offer is\n%s\nwant PCMU over DTLS", offer)
	}
	c.leg = leg
	must(t, leg.Accept(c.answer(offer)))
	p.leg.Link(calls.Audio, c.leg)
	c.leg.Link(calls.Audio, p.leg)
	c.connected()
	talkBoth(t, p, c)
}

func TestBrowserCallsPhone(t *testing.T) {
	e := newEngine(t)
	p, c := newPhone(t, "127.0.0.1"), newClient(t, setup{codecs: append(narrow, opus)}, "audio")
	leg, answer, err := e.Answer(c.watch, c.offer(), calls.Terms{Codecs: []string{sdp.PCMU}})
	must(t, err)
	c.leg = leg
	c.take(webrtc.SDPTypeAnswer, answer)
	offer := p.ring(e, c.leg)
	if !strings.Contains(offer, "RTP/AVP 0 101\r\n") || strings.Contains(offer, "fingerprint") {
		t.Errorf("the phone's offer is\n%s\nwant PCMU over RTP", offer)
	}
	p.leg.Link(calls.Audio, c.leg)
	c.leg.Link(calls.Audio, p.leg)
	c.connected()
	talkBoth(t, p, c)
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
	for end := time.Now().Add(deadline); ; {
		if got := p.hear(deadline); got != nil && got.PayloadType == 101 {
			if got.Payload[0] != 5 {
				t.Errorf("the phone heard the digit %d, want 5", got.Payload[0])
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("the phone heard no digit")
		}
	}
}

func TestPhoneBehindNAT(t *testing.T) {
	e := newEngine(t)
	p := newPhone(t, "127.0.0.1")
	p.call(e, p.description(9, "sendrecv")) // NAT changes this port
	p.leg.Link(calls.Audio, p.leg)
	p.echoes("hello")
	select {
	case path := <-p.watch.connected:
		if path.Remote != p.conn.LocalAddr().String() {
			t.Errorf("the engine called Connected(%+v), want the phone's socket", path)
		}
	case <-time.After(deadline):
		t.Error("Connected was not called")
	}
}

func TestStrangersRTP(t *testing.T) {
	e := newEngine(t)
	p, stranger := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.2")
	p.call(e, p.description(9, "sendrecv"))
	p.leg.Link(calls.Audio, p.leg)

	// Neither a stranger nor another port of the phone's address receives the phone's media.
	unknown := e.Stats().Unknown
	p.say(stranger.conn, "from elsewhere")
	waitFor(t, "the stranger's packet to be dropped", func() bool { return e.Stats().Unknown > unknown })
	p.echoes("hello")
	other := newPhone(t, "127.0.0.1")
	unknown = e.Stats().Unknown
	p.say(other.conn, "from another port")
	waitFor(t, "the packet from another port to be dropped", func() bool { return e.Stats().Unknown > unknown })
	p.echoes("still here")
	for _, o := range []*phone{stranger, other} {
		if got := o.hear(50 * time.Millisecond); got != nil {
			t.Errorf("a socket that is not the phone's received %q", got.Payload)
		}
	}
}

func TestPhoneRepeats(t *testing.T) {
	e := newEngine(t)
	p := newPhone(t, "127.0.0.1")
	p.call(e, p.description(p.port(), "sendrecv"))
	p.leg.Link(calls.Audio, p.leg)
	p.echoes("hello")

	again, dropped := p.packet(0, "again"), e.Stats().Dropped
	for range 2 {
		_, err := p.conn.WriteToUDP(again, p.to)
		must(t, err)
	}
	waitFor(t, "the repeated packet to be dropped", func() bool { return e.Stats().Dropped == dropped+1 })

	p.seq += 1 << 15 // as if the phone had restarted
	p.echoes("restarted")
}

func TestPhoneOnHold(t *testing.T) {
	for _, direction := range []string{"sendonly", "inactive"} {
		e := newEngine(t)
		p := newPhone(t, "127.0.0.1")
		p.call(e, p.description(p.port(), "sendrecv"))
		p.leg.Link(calls.Audio, p.leg)
		p.echoes("hello")
		answer, err := p.leg.Update(p.description(p.port(), direction))
		want := map[string]string{"sendonly": "a=recvonly", "inactive": "a=inactive"}[direction]
		if err != nil || !strings.Contains(answer, want) {
			t.Errorf("Update(%s) = %v,\n%s\nwant %s", direction, err, answer, want)
		}

		e.Housekeep(time.Now().Add(time.Minute))
		e.Housekeep(time.Now().Add(time.Minute + calls.LostAfter/2))
		if len(p.watch.lost) > 0 {
			t.Errorf("Lost was called for a phone whose direction is %s", direction)
		}

		if _, err = p.leg.Update(p.description(p.port(), "sendrecv")); err != nil {
			t.Errorf("Update(sendrecv) = %v", err)
		}
		p.echoes("back")
	}
}

func TestPhoneOfferRefused(t *testing.T) {
	e := newEngine(t)
	p := newPhone(t, "127.0.0.1")
	offer := p.description(p.port(), "sendrecv")
	for name, text := range map[string]string{
		"WebRTC": lightOffer(""), "SRTP": strings.Replace(offer, "RTP/AVP", "RTP/SAVP", 1),
		"no codec": strings.Replace(offer, "RTP/AVP 0 101", "RTP/AVP 18", 1), "nothing": "",
	} {
		if _, _, err := e.Answer(p.watch, text, calls.Terms{Phone: loopback}); !errors.Is(err, problem.Invalid) {
			t.Errorf("Answer of an offer with %s = %v, want %v", name, err, problem.Invalid)
		}
	}
	if _, _, err := e.Answer(p.watch, offer, calls.Terms{}); !errors.Is(err, problem.Invalid) {
		t.Errorf("Answer of plain RTP from a browser = %v, want %v", err, problem.Invalid)
	}

	p.call(e, offer)
	if _, err := p.leg.Update(strings.Replace(offer, "RTP/AVP 0", "RTP/AVP 8", 1)); !errors.Is(err, problem.Invalid) {
		t.Errorf("Update to another codec = %v, want %v", err, problem.Invalid)
	}
}

// firstPort is the first port in tests of port ranges. The kernel does not assign ports this low.
const firstPort = 4000

// withPorts makes an engine use n ports for phones, at a loopback address that only this process
// uses.
func withPorts(n int) func(*media.Config) {
	pid := os.Getpid()
	return func(c *media.Config) {
		c.Listen = fmt.Sprintf("127.%d.%d.%d:0", 64+pid>>16&63, pid>>8&255, pid&255)
		c.Ports = media.Ports{First: firstPort, Last: firstPort + n - 1}
	}
}

func TestPhonePorts(t *testing.T) {
	e := newEngine(t, withPorts(2))

	one, two := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.1")
	one.call(e, one.description(one.port(), "sendrecv"))
	if one.to.Port != firstPort {
		t.Errorf("the port is %d, want %d", one.to.Port, firstPort)
	}
	if _, _, err := e.Answer(two.watch, two.description(two.port(), "sendrecv"),
		calls.Terms{Phone: loopback}); err == nil || errors.Is(err, problem.Invalid) {
		t.Errorf("Answer without a free port = %v, want an internal error", err)
	}
	one.leg.Close()
	two.call(e, two.description(two.port(), "sendrecv"))
	two.leg.Link(calls.Audio, two.leg)
	two.echoes("hello")
}

// TestPhoneOfferKeepsNoPort shows that no port stays open for a refused offer whose first section
// is usable.
func TestPhoneOfferKeepsNoPort(t *testing.T) {
	e := newEngine(t, withPorts(4))
	room := e.NewMixer()
	defer room.Close()
	p, other := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.1")
	offer := p.description(p.port(), "sendrecv")
	const opus = "m=audio 4002 RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\n" // a room cannot mix it

	for range 5 {
		_, _, err := room.Answer(p.watch, offer+opus, calls.Terms{Phone: loopback})
		if !errors.Is(err, problem.Invalid) {
			t.Fatalf("Answer of an offer that a room cannot mix = %v, want %v", err, problem.Invalid)
		}
	}
	leg, _, err := room.Answer(p.watch, offer, calls.Terms{Phone: loopback})
	must(t, err)
	defer leg.Close()

	// In this offer, the current section is rejected, the next section would need a port, and the
	// last section cannot be mixed.
	start := offer[:strings.Index(offer, "m=audio")]
	moved := start + "m=audio 0 RTP/AVP 0\r\nm=audio 4000 RTP/AVP 0\r\n" + opus
	for range 5 {
		if _, err := leg.Update(moved); !errors.Is(err, problem.Invalid) {
			t.Fatalf("Update that a room cannot mix = %v, want %v", err, problem.Invalid)
		}
	}
	other.call(e, other.description(other.port(), "sendrecv"))
}
