package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

// FuzzSpool renders arbitrary files. Rendering must not panic, and the length of the result must
// not exceed what the times in the file permit.
func FuzzSpool(f *testing.F) {
	p := newTestSpool(f)
	speak(p, 0, 20)
	p.pauseAt(300*time.Millisecond, true)
	p.resumeAt(350 * time.Millisecond)
	p.write()
	p.Tap(calls.CallerSide).Packet(calls.Packet{
		Kind:    calls.Audio,
		Codec:   "opus",
		SSRC:    9,
		Arrived: p.call.Started.Add(time.Second),
		Payload: []byte{0x08, 1, 2, 3},
	})
	p.Tap(calls.CalleeSide).Clock(calls.Audio, 7, time.Now())
	p.Stop()
	p.write()
	whole, err := os.ReadFile(filepath.Join(p.owner.dir.Name(), p.call.Sid+extension))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])

	f.Fuzz(func(t *testing.T, b []byte) {
		render(t, b)
		// The fuzzer's entries have no valid checksums, so sealed adds them.
		render(t, sealed(b))
	})
}

// sealed returns a spool with a valid header whose only block is b.
func sealed(b []byte) []byte {
	head := append(appendEntry(make([]byte, blockHead), headerKind, 0, 11), `{"Sid":"x"}`...)
	block := append(make([]byte, blockHead), b[:min(len(b), maxBlock)]...)
	seal(block, seal(head, firstSum()))
	return append(append([]byte(magic), head...), block...)
}

// render renders at most a minute of the spool b.
func render(t *testing.T, b []byte) {
	plan, err := survey(bytes.NewReader(b))
	if errors.Is(err, errNoSpool) || errors.Is(err, errLaterSpool) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if most := plan.toFrames(maxLength.Microseconds()); plan.frames < 0 || plan.frames > most {
		t.Fatalf("the length is %d frames, want 0 to %d", plan.frames, most)
	}
	if n := len(plan.pauses); n > 0 && plan.pauses[n-1].to > plan.toFrames(time.Hour.Microseconds()) {
		return // pauses that are cut out must be read, too
	}
	plan.limit(int64(plan.rate) * 60)

	m, err := newMixer(bytes.NewReader(b), plan)
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.ReadFrames(make([]int16, 2*plan.frames), 0)
	if err != nil {
		t.Fatal(err)
	}
	if int64(n) != plan.frames {
		t.Fatalf("ReadFrames returned %d frames, want %d", n, plan.frames)
	}
}

// FuzzOpus decodes arbitrary packets as Opus. Panics must be caught. The result must not be longer
// than the longest packet.
func FuzzOpus(f *testing.F) {
	for _, toc := range []byte{0x08, 0x48, 0x60, 0x78, 0xf8, 0xfb} {
		f.Add([]byte{toc, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11, 0x22})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d decoder
		for range 2 {
			if got := d.decode(nil, opusCodec, b, 16000); len(got) > maxOpus*16 {
				t.Errorf("a packet of %d bytes has %d samples, want at most %d", len(b), len(got), maxOpus*16)
			}
		}
	})
}
