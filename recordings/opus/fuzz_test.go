package opus

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzOpen checks that no file takes much time or memory, and that reading frames again yields the
// same samples.
func FuzzOpen(f *testing.F) {
	file := corpus(f, "speech.ogg")
	packets := packetsOf(f, file)
	f.Add(file)
	f.Add(mux(packets[:12], 1<<40, 1))
	f.Add(mux(append(packets[:3:3], make([]byte, 3000), []byte{0x7f, 0x3f}), 0, 3))
	f.Add(slices.Concat(file[:2000], bytes.Repeat([]byte("OggS\x00"), 1<<13)))
	f.Add(slices.Concat(file[:47], make([]byte, 1<<16)))

	// Each of the three reads decodes at most a segment.
	bound := fuzzcost.Bound{CPU: 3 * time.Second, CPUPerByte: 200 * time.Nanosecond, Heap: 8 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, b []byte) {
		bound.Check(t, len(b), func() {
			s, err := Open(bytes.NewReader(b), int64(len(b)), nil)
			if err != nil {
				return
			}
			buf := make([]int16, 500*s.Channels())
			for _, first := range []int64{s.Frames() / 2, max(0, s.Frames()-500), 0} {
				n, _ := s.ReadFrames(buf, first)
				readAgain(t, s, buf[:n*s.Channels()], first)
			}
		})
	})
}

// readAgain checks that reading the second half of some frames again yields the same samples. The
// frames start with the given first frame.
func readAgain(t *testing.T, s *Source, frames []int16, first int64) {
	t.Helper()
	n := len(frames) / s.Channels()
	skipped := n - n/2
	want := frames[skipped*s.Channels():]
	got := make([]int16, len(want))
	if _, err := s.ReadFrames(got, first+int64(skipped)); err != nil {
		t.Errorf("reading frames at %d of %d again: %v", first, s.Frames(), err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("reading frames at %d of %d again yields different samples", first, s.Frames())
	}
}
