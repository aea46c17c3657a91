package media_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/selvage/selvage/calls"
)

// A tap stores the packets and the clocks that it receives.
type tap struct {
	packets chan calls.Packet
	clocks  chan time.Time
}

func newTap() *tap {
	return &tap{packets: make(chan calls.Packet, 1024), clocks: make(chan time.Time, 64)}
}

func (r *tap) Packet(p calls.Packet) {
	p.Payload = slices.Clone(p.Payload)
	select {
	case r.packets <- p:
	default:
	}
}

func (r *tap) Clock(_ calls.Kind, _ uint32, wall time.Time) { r.clocks <- wall }

// recorded returns a client whose media is recorded by a tap. No other client hears it.
func recorded(t *testing.T) (*client, *tap) {
	t.Helper()
	c := newClient(t, setup{}, "audio")
	c.call(newEngine(t))
	c.connected()
	r := newTap()
	c.leg.Record(r)
	return c, r
}

func TestRecord(t *testing.T) {
	c, r := recorded(t)
	p := await(t, c.parts[0], "recorded", r.packets)
	if p.Kind != calls.Audio {
		t.Errorf("the kind of the recorded packet is %s, want %s", p.Kind, calls.Audio)
	}
	if p.Codec != "opus" {
		t.Errorf("the codec of the recorded packet is %s, want opus", p.Codec)
	}
	if got := string(p.Payload); got != "recorded" {
		t.Errorf("the payload of the recorded packet is %q, want recorded", got)
	}
	if p.SSRC == 0 {
		t.Error("the recorded packet has no SSRC")
	}
	if p.Time == 0 {
		t.Error("the recorded packet has no timestamp")
	}
}

// TestRecordClock shows that a tap learns the wall clock time of the client's sender reports.
func TestRecordClock(t *testing.T) {
	c, r := recorded(t)
	p := await(t, c.parts[0], "recorded", r.packets)
	wall := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	const ntp = 4_004_413_200 << 32 // the same time in seconds since 1900
	report := &rtcp.SenderReport{SSRC: p.SSRC, NTPTime: ntp, RTPTime: p.Time}
	must(t, c.parts[0].pc.WriteRTCP([]rtcp.Packet{report}))
	select {
	case got := <-r.clocks:
		if !got.Equal(wall) {
			t.Errorf("Clock was called with %v, want %v", got, wall)
		}
	case <-time.After(deadline):
		t.Error("Clock was not called")
	}
}

// TestRecordMuted shows that the media of a muted client is not recorded.
func TestRecordMuted(t *testing.T) {
	c, r := recorded(t)
	c.leg.Mute(calls.Audio, true)
	link(c, c)
	c.hears(c.parts[0], "muted")
	c.leg.Record(nil)
	for len(r.packets) > 0 {
		if p := <-r.packets; string(p.Payload) == "muted" {
			t.Fatal("a packet of a muted client was recorded")
		}
	}
}

// await sends a payload repeatedly until a result arrives, and returns the result.
func await[T any](t *testing.T, p *part, payload string, results <-chan T) T {
	t.Helper()
	end := time.After(deadline)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case r := <-results:
			return r
		case <-ticker.C:
			p.say(t, payload)
		case <-end:
			t.Fatalf("no result arrived after %q was sent", payload)
		}
	}
}

func TestTalking(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	c.connected()
	p := c.parts[0]

	const whisper, loud, faint = 100, 20, 110 // levels in -dBov
	speakAt := func(level byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.level = []byte{0x80 | level}
	}

	speakAt(whisper)
	c.hears(p, "whisper")
	if len(c.watch.talking) > 0 {
		t.Fatal("Talking was called for a whisper")
	}
	speakAt(loud)
	if !await(t, p, "hello", c.watch.talking) {
		t.Error("for a loud voice, Talking(false) was called, want true")
	}
	speakAt(faint)
	if await(t, p, "hello", c.watch.talking) {
		t.Error("for a voice that becomes quiet, Talking(true) was called, want false")
	}
}

func TestSendDigits(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "audio")
	before := hear(t, alice.parts[0], bob.parts[0], "hello")
	alice.leg.SendDigits("7#")

	var digits []byte
	var last *rtp.Packet
	for end := time.After(deadline); len(digits) < 2; {
		select {
		case p := <-bob.parts[0].packets:
			if p.PayloadType != uint8(events.PayloadType) {
				continue
			}
			if p.Marker {
				digits = append(digits, p.Payload[0])
			}
			last = p
		case <-end:
			t.Fatalf("heard the digits %v, want two", digits)
		}
	}

	if !slices.Equal(digits, []byte{7, 11}) {
		t.Errorf("heard the digits %v, want 7 and 11", digits)
	}
	if last.SSRC != before.SSRC {
		t.Errorf("the source of the last event is %d, want %d as before", last.SSRC, before.SSRC)
	}
	if last.SequenceNumber == before.SequenceNumber {
		t.Errorf("the last event has the number %d of the audio before it, want a new number", last.SequenceNumber)
	}

	// After the digits, speech continues.
	if p := hear(t, alice.parts[0], bob.parts[0], "goodbye"); p.SSRC != before.SSRC {
		t.Errorf("the source is %d, want %d", p.SSRC, before.SSRC)
	}
}

func TestPressedDigit(t *testing.T) {
	e := newEngine(t)
	alice, bob := newClient(t, setup{}), newClient(t, setup{})
	alice.add("audio", false).send(t, events.RTPCodecCapability)
	alice.call(e)
	bob.ring(e, alice)
	link(alice, bob)
	alice.connected()
	bob.connected()

	digit := "\x05\x8a\x12\xc0" // digit 5, end bit, -10 dBm0, duration 4800
	if p := hear(t, alice.parts[0], bob.parts[0], digit); p.PayloadType != uint8(events.PayloadType) {
		t.Errorf("the payload type is %d, want %d", p.PayloadType, events.PayloadType)
	}
}

func TestLost(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio")
	c.call(e)
	c.connected()
	<-c.watch.connected

	e.Housekeep(time.Now().Add(calls.LostAfter + time.Minute))
	select {
	case <-c.watch.lost:
	case <-time.After(deadline):
		t.Fatal("Lost was not called")
	}
	e.Housekeep(time.Now())
	select {
	case <-c.watch.connected:
	case <-time.After(deadline):
		t.Error("Connected was not called when the client came back")
	}
}
