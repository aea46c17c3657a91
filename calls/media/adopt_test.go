package media

import (
	"bytes"
	"testing"
	"time"

	"github.com/selvage/selvage/calls/sdp"
)

// TestTranscodingBound shows that a client cannot make the engine decode much more audio than the
// call lasts. All audio of a client that sends a packet every 20 ms is decoded.
func TestTranscodingBound(t *testing.T) {
	const length = 10 * time.Second
	filling := bytes.Repeat([]byte{0x55}, 40)
	tests := []struct {
		name        string
		payload     []byte
		every       time.Duration
		least, most time.Duration // decoded audio
	}{
		{"an ordinary client", append([]byte{0xf8}, filling...), 20 * time.Millisecond, length, length},
		{"long packets", append([]byte{0x1b, 2}, filling...), 5 * time.Millisecond, length, length + length/2},
		{"invalid packets", []byte{0x1b, 0xff, 1}, 5 * time.Millisecond, 0, 0},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			converter := newTranscoder()
			coded := 0
			for at := time.Duration(0); at < length; at += tt.every {
				coded += len(converter.encode(tt.payload, began.Add(at)))
			}
			decoded := time.Duration(coded) * 20 * time.Millisecond / frameBytes
			if decoded < tt.least || decoded > tt.most {
				t.Errorf("%v of audio are decoded, want %v to %v", decoded, tt.least, tt.most)
			}
		})
	}
}

// TestBeepAdopted shows that a client that sends Opus and hears a room in G.722 hears the tone in G.722,
// too, and that the timestamps of its stream increase.
func TestBeepAdopted(t *testing.T) {
	h := newHall(t)
	a := h.enter(sdp.G722, 0)
	s := a.leg.sections[0]
	s.setAgreed(sdp.Section{
		Kind:      "audio",
		Mid:       "0",
		Direction: sdp.SendReceive,
		Codecs:    []sdp.Codec{{Type: 111, Name: sdp.Opus, Clock: 48000, Channels: 2}, a.codec},
	})
	a.leg.voice.Load().reroute()
	h.run(5, nil)
	before := s.out.last.time

	a.leg.Beep()
	const packets = 20
	for i := range packets {
		n, err := a.sink.Read(a.buffer[:])
		if err != nil {
			t.Fatal(err)
		}
		plain, err := a.open.DecryptRTP(nil, a.buffer[:n], nil)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := parse(plain)
		if p.kind != a.codec.Type {
			t.Errorf("packet %d of the tone has the type %d, want %d", i, p.kind, a.codec.Type)
		}
		if int32(p.time-before) <= 0 {
			t.Errorf("packet %d of the tone has the time %d, want more than %d", i, p.time, before)
		}
		before = p.time
	}

	s.out.inject(func() {}) // waits for the end of the tone
	for range packets {
		a.leg.voice.Load().at += frameBytes // as if the room had continued meanwhile
	}
	h.run(1, nil)
	if now := s.out.last.time; int32(now-before) <= 0 {
		t.Errorf("after the tone, a packet of the room has the time %d, want more than %d", now, before)
	}
}
