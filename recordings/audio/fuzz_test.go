package audio

import (
	"bytes"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/recordings/wav"
)

// FuzzParse checks that Parse returns only documented errors, and does not read much more than the
// file's size.
func FuzzParse(f *testing.F) {
	for name := range expectations(f) {
		b := file(f, name)
		f.Add(b[:min(len(b), 4096)], name)
		f.Add(b[max(0, len(b)-4096):], name)
	}

	f.Add(bytes.Repeat([]byte{0xff, 0xfb, 0x90, 0x00}, 1<<14), "a.mp3") // a frame may begin at every fourth byte
	f.Add(bytes.Repeat([]byte{0xff}, 1<<16), "a.mp3")
	f.Add(append([]byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7f"), make([]byte, 1<<16)...), "audio/mpeg")
	f.Add(bytes.Repeat([]byte("OggS\x00"), 1<<14), "a.ogg")

	// Parse reads the last 128 KiB of an Ogg file.
	bound := fuzzcost.Bound{CPU: 5 * time.Millisecond, CPUPerByte: 200 * time.Nanosecond, Heap: 1 << 20, PerByte: 16}
	f.Fuzz(func(t *testing.T, b []byte, hint string) {
		var r *counted
		var got wav.Facts
		var err error
		bound.Check(t, len(b), func() {
			r = &counted{ReaderAt: bytes.NewReader(b)}
			got, err = Parse(r, int64(len(b)), hint)
		})
		if limit := 10*len(b) + 1<<20; r.bytes > limit {
			t.Errorf("Parse reads %d bytes for a file of %d, want at most %d", r.bytes, len(b), limit)
		}
		if err != nil {
			if !refused(err) {
				t.Errorf("Parse: %v, want an error for rejected files", err)
			}
			return
		}

		if got.Codec == "" {
			t.Error("the codec is unknown")
		}
		if err := got.Check(); err != nil {
			t.Errorf("Check: %v", err)
		}
		if got.Frames < 0 || got.Duration() < 0 {
			t.Errorf("%d frames that take %v, want no negative values", got.Frames, got.Duration())
		}
		if got.Length < 0 || got.Offset+got.Length > int64(len(b)) {
			t.Errorf("%d bytes of audio at %d, want them within the file of %d bytes",
				got.Length, got.Offset, len(b))
		}
	})
}
