package media_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

func TestPhoneCallsBrowser(t *testing.T) {
	engine := newEngine(t)
	caller := newPhone(t, "127.0.0.1")
	browser := newClient(t, setup{codecs: narrow})
	caller.call(engine, caller.description(caller.port(), "sendrecv"))

	leg, offer, err := engine.Offer(browser.watch, caller.leg, calls.Terms{})
	must(t, err)
	if strings.Contains(offer, "opus") {
		t.Errorf("the offer to the browser is\n%s\nwant no Opus", offer)
	}
	if !strings.Contains(offer, "UDP/TLS/RTP/SAVPF 0 101") {
		t.Errorf("the offer to the browser is\n%s\nwant PCMU over DTLS", offer)
	}

	browser.leg = leg
	must(t, leg.Accept(browser.answer(offer)))
	caller.leg.Link(calls.Audio, browser.leg)
	browser.leg.Link(calls.Audio, caller.leg)
	browser.connected()
	talkBoth(t, caller, browser)
}

func TestBrowserCallsPhone(t *testing.T) {
	engine := newEngine(t)
	callee := newPhone(t, "127.0.0.1")
	browser := newClient(t, setup{codecs: append(slices.Clone(narrow), opus)}, "audio")

	leg, answer, err := engine.Answer(browser.watch, browser.offer(), calls.Terms{Codecs: []string{sdp.PCMU}})
	must(t, err)
	browser.leg = leg
	browser.take(webrtc.SDPTypeAnswer, answer)

	offer := callee.ring(engine, browser.leg)
	if !strings.Contains(offer, "RTP/AVP 0 101\r\n") {
		t.Errorf("the offer to the phone is\n%s\nwant PCMU over RTP", offer)
	}
	if strings.Contains(offer, "fingerprint") {
		t.Errorf("the offer to the phone is\n%s\nwant no fingerprint", offer)
	}

	callee.leg.Link(calls.Audio, browser.leg)
	browser.leg.Link(calls.Audio, callee.leg)
	browser.connected()
	talkBoth(t, callee, browser)
}

// portInsideNAT is a port in the offer of a phone that sends from a different port, as if NAT had
// changed it.
const portInsideNAT = 9

// TestPhoneBehindNAT shows that media is sent to the address from which the phone sends, not to the
// address in its offer.
func TestPhoneBehindNAT(t *testing.T) {
	engine := newEngine(t)
	caller := newPhone(t, "127.0.0.1")
	caller.call(engine, caller.description(portInsideNAT, "sendrecv"))
	caller.leg.Link(calls.Audio, caller.leg)
	caller.echoes("hello")

	select {
	case path := <-caller.watch.connected:
		if path.Remote != caller.conn.LocalAddr().String() {
			t.Errorf("the engine called Connected(%+v), want the phone's socket", path)
		}
	case <-time.After(deadline):
		t.Error("Connected was not called")
	}
}

// TestStrangersRTP shows that packets from sockets other than the phone's are dropped and do not
// redirect the phone's media, even if they come from the phone's address.
func TestStrangersRTP(t *testing.T) {
	engine := newEngine(t)
	caller, stranger := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.2")
	caller.call(engine, caller.description(portInsideNAT, "sendrecv"))
	caller.leg.Link(calls.Audio, caller.leg)

	unknown := engine.Stats().Unknown
	isDropped := func() bool { return engine.Stats().Unknown > unknown }
	caller.say(stranger.conn, "from elsewhere")
	waitFor(t, "the stranger's packet to be dropped", isDropped)
	caller.echoes("hello")

	otherPort := newPhone(t, "127.0.0.1")
	unknown = engine.Stats().Unknown
	caller.say(otherPort.conn, "from a different port")
	waitFor(t, "the packet from a different port to be dropped", isDropped)
	caller.echoes("still here")

	for _, socket := range []*phone{stranger, otherPort} {
		if got := socket.hear(50 * time.Millisecond); got != nil {
			t.Errorf("a socket that is not the phone's received %q, want nothing", got.Payload)
		}
	}
}

// TestPhoneRepeats shows that a packet that is received twice is passed on once.
func TestPhoneRepeats(t *testing.T) {
	engine := newEngine(t)
	caller := newPhone(t, "127.0.0.1")
	caller.call(engine, caller.description(caller.port(), "sendrecv"))
	caller.leg.Link(calls.Audio, caller.leg)
	caller.echoes("hello")

	packet := caller.packet(0, "again")
	dropped := engine.Stats().Dropped
	for range 2 {
		_, err := caller.conn.WriteToUDP(packet, caller.to)
		must(t, err)
	}
	waitFor(t, "the repeated packet to be dropped", func() bool { return engine.Stats().Dropped == dropped+1 })

	caller.seq += 1 << 15 // as if the phone had restarted
	caller.echoes("restarted")
}

// TestPhoneOnHold shows that a phone on hold, which may send nothing, is not reported as lost, and can
// continue the call.
func TestPhoneOnHold(t *testing.T) {
	for _, tt := range []struct{ offered, answered string }{
		{"sendonly", "recvonly"},
		{"inactive", "inactive"},
	} {
		t.Run(tt.offered, func(t *testing.T) {
			engine := newEngine(t)
			caller := newPhone(t, "127.0.0.1")
			caller.call(engine, caller.description(caller.port(), "sendrecv"))
			caller.leg.Link(calls.Audio, caller.leg)
			caller.echoes("hello")

			answer, err := caller.leg.Update(caller.description(caller.port(), tt.offered))
			if err != nil {
				t.Fatalf("Update(%s): %v", tt.offered, err)
			}
			if !strings.Contains(answer, "a="+tt.answered) {
				t.Errorf("the answer is\n%s\nwant %s", answer, tt.answered)
			}

			engine.Housekeep(time.Now().Add(time.Minute))
			engine.Housekeep(time.Now().Add(time.Minute + calls.LostAfter/2))
			if len(caller.watch.lost) > 0 {
				t.Error("Lost was called for a phone on hold")
			}

			if _, err := caller.leg.Update(caller.description(caller.port(), "sendrecv")); err != nil {
				t.Errorf("Update(sendrecv) = %v, want no error", err)
			}
			caller.echoes("back")
		})
	}
}

// TestListeningPhone shows that a phone that only receives counts as connected although it never sends,
// unless its address may be forged. Otherwise, its call would end after half a minute.
func TestListeningPhone(t *testing.T) {
	for _, tt := range []struct {
		name      string
		claimed   bool
		direction string
		want      int
	}{
		{"only receives", false, "recvonly", 1},
		{"also sends", false, "sendrecv", 0},
		{"at a claimed address", true, "recvonly", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEngine(t)
			p := newPhone(t, "127.0.0.1")
			terms := calls.Terms{Phone: loopback, Claimed: tt.claimed}
			leg, _, err := e.Answer(p.watch, p.description(p.port(), tt.direction), terms)
			must(t, err)
			t.Cleanup(leg.Close)

			e.Housekeep(time.Now())
			e.Housekeep(time.Now().Add(time.Minute))
			if got := len(p.watch.connected); got != tt.want {
				t.Errorf("Connected was called %d times, want %d", got, tt.want)
			}
			if len(p.watch.lost) > 0 {
				t.Error("Lost was called")
			}
		})
	}
}

// TestGatewayOnHold shows that music on hold is received from a gateway that puts the call on hold with
// the address 0.0.0.0 (RFC 3264, section 8.4) and sends media from a different machine.
func TestGatewayOnHold(t *testing.T) {
	e := newEngine(t)
	gateway, p := newPhone(t, "127.0.0.2"), newPhone(t, "127.0.0.1")
	at := func(address string) string {
		return strings.ReplaceAll(gateway.description(gateway.port(), "sendrecv"), "10.1.2.3", address)
	}
	leg, answer, err := e.Answer(gateway.watch, at("127.0.0.2"), calls.Terms{Phone: loopback, Gateway: true})
	must(t, err)
	gateway.leg = leg
	gateway.take(answer)
	p.call(e, p.description(p.port(), "sendrecv"))
	leg.Link(calls.Audio, p.leg)

	hears := func(payload string) {
		t.Helper()
		waitFor(t, payload, func() bool {
			gateway.say(gateway.conn, payload)
			got := p.hear(100 * time.Millisecond)
			return got != nil && string(got.Payload) == payload
		})
	}
	hears("hello")
	_, err = leg.Update(at("0.0.0.0"))
	must(t, err)
	hears("music")
}

func TestPhoneOfferRefused(t *testing.T) {
	engine := newEngine(t)
	caller := newPhone(t, "127.0.0.1")
	offer := caller.description(caller.port(), "sendrecv")
	for name, text := range map[string]string{
		"WebRTC":   lightOffer(""),
		"SRTP":     strings.Replace(offer, "RTP/AVP", "RTP/SAVP", 1),
		"no codec": strings.Replace(offer, "RTP/AVP 0 101", "RTP/AVP 18", 1),
		"nothing":  "",
	} {
		_, _, err := engine.Answer(caller.watch, text, calls.Terms{Phone: loopback})
		if !errors.Is(err, problem.Invalid) {
			t.Errorf("Answer of an offer with %s = %v, want %v", name, err, problem.Invalid)
		}
	}
	if _, _, err := engine.Answer(caller.watch, offer, calls.Terms{}); !errors.Is(err, problem.Invalid) {
		t.Errorf("Answer of plain RTP from a browser = %v, want %v", err, problem.Invalid)
	}

	caller.call(engine, offer)
	pcma := strings.Replace(offer, "RTP/AVP 0", "RTP/AVP 8", 1)
	if _, err := caller.leg.Update(pcma); !errors.Is(err, problem.Invalid) {
		t.Errorf("Update to a different codec = %v, want %v", err, problem.Invalid)
	}
}

// TestPhoneAnswerRefused shows that an answer without the offered codec is an error. Otherwise, the
// call would be answered, but silent.
func TestPhoneAnswerRefused(t *testing.T) {
	engine := newEngine(t)
	caller, callee := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.1")
	caller.call(engine, caller.description(caller.port(), "sendrecv"))
	leg, _, err := engine.Offer(callee.watch, caller.leg, calls.Terms{Phone: loopback})
	must(t, err)
	answer := callee.description(callee.port(), "sendrecv")
	for name, formats := range map[string]string{"a different codec": "8 101", "only telephone events": "101"} {
		text := strings.Replace(answer, "RTP/AVP 0 101", "RTP/AVP "+formats, 1)
		if err := leg.Accept(text); !errors.Is(err, problem.Invalid) {
			t.Errorf("Accept of an answer with %s = %v, want %v", name, err, problem.Invalid)
		}
	}
	must(t, leg.Accept(answer))
}

// firstPort is the first port in tests of port ranges. The kernel does not assign ports this low.
const firstPort = 4000

// TestPhonePayloadTypes shows that a phone that answers with payload types of its own receives these,
// but may send either these or the offered types (RFC 3264, section 5.1).
func TestPhonePayloadTypes(t *testing.T) {
	e := newEngine(t)
	p, caller := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.1")
	caller.call(e, caller.description(caller.port(), "sendrecv"))
	leg, offer, err := e.Offer(p.watch, caller.leg, calls.Terms{Phone: loopback})
	must(t, err)
	p.leg = leg
	p.take(offer)
	own := strings.NewReplacer(" 101\r\n", " 96\r\n", "rtpmap:101 ", "rtpmap:96 ")
	must(t, leg.Accept(own.Replace(p.description(p.port(), "sendrecv"))))
	p.leg.Link(calls.Audio, p.leg)
	p.echoes("hello")

	for _, kind := range []uint8{101, 96} {
		payload := fmt.Sprintf("event %d", kind)
		waitFor(t, payload, func() bool {
			_, err := p.conn.WriteToUDP(p.packet(kind, payload), p.to)
			must(t, err)
			got := p.hear(100 * time.Millisecond)
			return got != nil && got.PayloadType == 96 && string(got.Payload) == payload
		})
	}
}

// withPorts makes an engine use n ports for phones, at a loopback address that only this process
// uses.
func withPorts(n int) func(*media.Config) {
	pid := os.Getpid()
	return func(c *media.Config) {
		c.Listen = fmt.Sprintf("127.%d.%d.%d:0", 64+pid>>16&63, pid>>8&255, pid&255)
		c.Ports = media.Ports{First: firstPort, Last: firstPort + n - 1}
	}
}

// TestPhonePorts shows that phones use only the configured ports, and that the ports of a closed leg
// are free again.
func TestPhonePorts(t *testing.T) {
	engine := newEngine(t, withPorts(2))
	one := newPhone(t, "127.0.0.1")
	two := newPhone(t, "127.0.0.1")
	one.call(engine, one.description(one.port(), "sendrecv"))
	if one.to.Port != firstPort {
		t.Errorf("the port is %d, want %d", one.to.Port, firstPort)
	}

	offer := two.description(two.port(), "sendrecv")
	_, _, err := engine.Answer(two.watch, offer, calls.Terms{Phone: loopback})
	if err == nil || errors.Is(err, problem.Invalid) {
		t.Errorf("Answer without a free port = %v, want an internal error", err)
	}

	one.leg.Close()
	two.call(engine, offer)
	two.leg.Link(calls.Audio, two.leg)
	two.echoes("hello")
}

// TestPhoneOfferKeepsNoPort shows that no port stays open for a refused offer whose first section
// is usable.
func TestPhoneOfferKeepsNoPort(t *testing.T) {
	engine := newEngine(t, withPorts(4))
	room := engine.NewMixer()
	defer room.Close()
	caller, other := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.1")
	offer := caller.description(caller.port(), "sendrecv")
	const opusSection = "m=audio 4002 RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\n" // a room cannot mix it

	for range 5 {
		_, _, err := room.Answer(caller.watch, offer+opusSection, calls.Terms{Phone: loopback})
		if !errors.Is(err, problem.Invalid) {
			t.Fatalf("Answer of an offer that a room cannot mix = %v, want %v", err, problem.Invalid)
		}
	}
	leg, _, err := room.Answer(caller.watch, offer, calls.Terms{Phone: loopback})
	must(t, err)
	defer leg.Close()

	// In this offer, the current section is rejected, the next section would need a port, and the
	// last section cannot be mixed.
	head, _, _ := strings.Cut(offer, "m=audio")
	moved := head + "m=audio 0 RTP/AVP 0\r\nm=audio 4000 RTP/AVP 0\r\n" + opusSection
	for range 5 {
		if _, err := leg.Update(moved); !errors.Is(err, problem.Invalid) {
			t.Fatalf("Update that a room cannot mix = %v, want %v", err, problem.Invalid)
		}
	}
	other.call(engine, other.description(other.port(), "sendrecv"))
}
