package record

import (
	"bytes"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

// TestDecodingBound shows that a client cannot make the server decode audio that is much longer than
// the call. The other side's audio is unaffected.
func TestDecodingBound(t *testing.T) {
	const packets, every = 200 * 60, 5 * time.Millisecond // the maximum per side and minute
	const length = packets * every
	long := append([]byte{0x1b, 2}, bytes.Repeat([]byte{0x55}, 40)...) // 120 ms
	tests := []struct {
		name    string
		payload []byte
		step    uint32 // difference between timestamps
	}{
		{"packets that overlap", long, 240},
		{"packets with one timestamp", long, 0},
		{"packets that are longer than their interval", long, 5760},
		{"packets that cannot be decoded", []byte{0x1b, 0xff, 1}, 960},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newTestSpool(t)
			for i := range packets {
				p.Tap(calls.CallerSide).Packet(calls.Packet{
					Kind:    calls.Audio,
					Codec:   "opus",
					SSRC:    7,
					Seq:     uint16(i),
					Time:    uint32(i) * tt.step,
					Arrived: p.call.Started.Add(time.Duration(i) * every),
					Payload: tt.payload,
				})
				if i%4 == 0 {
					other := audio(p, i/4)
					other.Payload = make([]byte, 160) // 20 ms
					p.Tap(calls.CalleeSide).Packet(other)
				}
				if i%100 == 0 {
					p.write()
				}
			}
			p.Stop()
			p.write()

			plan, err := survey(p.file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := newMixer(p.file, plan)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.ReadFrames(make([]int16, 2*plan.frames), 0); err != nil {
				t.Fatal(err)
			}

			const most = length + length/2
			if got := m.legs[calls.CallerSide].decoded; got == 0 || got > most {
				t.Errorf("%v of the hostile side are decoded, want more than 0 and at most %v", got, most)
			}
			if got := m.legs[calls.CalleeSide].decoded; got < length-time.Second {
				t.Errorf("%v of the other side are decoded, want at least %v", got, length-time.Second)
			}
		})
	}
}
