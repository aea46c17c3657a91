package media_test

import (
	"math"
	"os"
	"testing"
	"time"

	popus "github.com/pion/opus"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
)

// TestBeep plays a tone to a client while the other client talks. The tone continues the stream
// that the client already receives, without a gap in sequence numbers. Speech continues after the
// tone.
func TestBeep(t *testing.T) {
	for name, tt := range map[string]struct {
		codec webrtc.RTPCodecParameters
		step  uint32 // between the timestamps of packets
	}{
		"opus": {codec: opus, step: 960},
		"PCMU": {codec: pcmu, step: 160},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			only := setup{codecs: []webrtc.RTPCodecParameters{tt.codec}}
			alice, bob := newClient(t, only, "audio"), newClient(t, only)
			alice.call(e)
			bob.ring(e, alice)
			alice.leg.Link(calls.Audio, bob.leg)
			alice.connected()
			bob.connected()
			before := hear(t, alice.parts[0], bob.parts[0], "hello")
			bob.leg.Beep()

			tone, err := os.ReadFile("beep/" + name)
			must(t, err)
			var heard []byte
			last := before
			for end := time.After(deadline); len(heard) < len(tone); {
				select {
				case p := <-bob.parts[0].packets:
					if string(p.Payload) == "hello" {
						last = p
						continue
					}
					wantNext(t, last, p, tt.step)
					last = p
					heard = append(heard, p.Payload...)
				case <-end:
					t.Fatalf("heard %d bytes of the tone, want %d", len(heard), len(tone))
				}
			}

			if string(heard) != string(tone) {
				t.Error("the tone differs from the one that was played")
			}
			wantNext(t, last, hear(t, alice.parts[0], bob.parts[0], "goodbye"), 0)
		})
	}
}

// wantNext fails the test unless p follows the packet previous in the stream. The timestamp must increase by
// step. If step is 0 or p has a marker, it may increase by any amount.
func wantNext(t *testing.T, previous, p *rtp.Packet, step uint32) {
	t.Helper()
	if p.SSRC != previous.SSRC {
		t.Errorf("packet %d has the source %d, want %d", p.SequenceNumber, p.SSRC, previous.SSRC)
	}
	if want := previous.SequenceNumber + 1; p.SequenceNumber != want {
		t.Errorf("packet %d follows packet %d, want %d", p.SequenceNumber, previous.SequenceNumber, want)
	}
	later := p.Timestamp - previous.Timestamp
	if later == 0 || later > 1<<31 {
		t.Errorf("packet %d has the timestamp %d, want a time after %d",
			p.SequenceNumber, p.Timestamp, previous.Timestamp)
	}
	if step > 0 && !p.Marker && later != step {
		t.Errorf("the timestamp of packet %d increases by %d, want %d", p.SequenceNumber, later, step)
	}
}

// TestBeepSounds shows that the packets contain a tone of 1400 Hz.
func TestBeepSounds(t *testing.T) {
	packets, err := os.ReadFile("beep/opus")
	must(t, err)
	d, err := popus.NewDecoderWithOutput(48000, 1)
	must(t, err)
	var sound []float32
	for ; len(packets) > 0; packets = packets[60:] {
		out := make([]float32, 960)
		_, err := d.DecodeToFloat32(packets[:60], out)
		must(t, err)
		sound = append(sound, out...)
	}

	if got := crossings(len(sound), func(i int) bool { return sound[i] > 0 }); math.Abs(got-1400) > 40 {
		t.Errorf("the tone in Opus has %.0f Hz, want 1400", got)
	}
	for _, codec := range []string{"PCMU", "PCMA"} {
		b, err := os.ReadFile("beep/" + codec)
		must(t, err)
		positive := func(i int) bool { return b[i]&0x80 != 0 }
		if got := crossings(len(b), positive) * 8000 / 48000; math.Abs(got-1400) > 40 {
			t.Errorf("the tone in %s has %.0f Hz, want 1400", codec, got)
		}
	}
}

// crossings counts sign changes in the middle half of n samples at 48 kHz, and returns the
// frequency.
func crossings(n int, positive func(i int) bool) (hz float64) {
	changes := 0
	for i := n/4 + 1; i < n*3/4; i++ {
		if positive(i) != positive(i-1) {
			changes++
		}
	}
	return float64(changes) / 2 / (float64(n) / 2) * 48000
}
