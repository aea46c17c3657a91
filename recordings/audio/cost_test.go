package audio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// A counted reader counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, off)
}

// A uniform is a file of any size whose bytes are all equal.
type uniform byte

func (u uniform) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = byte(u)
	}
	return len(p), nil
}

// TestRefusalsAreCheap shows that little is read and allocated before a file is rejected, no matter
// how large the file is.
func TestRefusalsAreCheap(t *testing.T) {
	const limit = 256 << 10
	wantCheap := func(name string, r io.ReaderAt, size int64) {
		t.Helper()
		counting := &counted{ReaderAt: r}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(counting, size, name)
		runtime.ReadMemStats(&after)
		if !refused(err) {
			t.Errorf("%s: %v, want an error", name, err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > limit {
			t.Errorf("%s: %d bytes were allocated, want at most %d", name, allocated, limit)
		}
		if counting.bytes > limit {
			t.Errorf("%s: %d bytes were read, want at most %d", name, counting.bytes, limit)
		}
	}

	for name, want := range expectations(t) {
		if want.Result == "err" && !want.Absent {
			b := file(t, name)
			wantCheap(name, bytes.NewReader(b), int64(len(b)))
		}
	}
	for b := range 256 {
		wantCheap(fmt.Sprintf("a terabyte of %#x", b), uniform(b), 1<<40)
	}
}

// TestJunkEndsTheCounting shows that a large file that only begins with frames is not an MP3.
func TestJunkEndsTheCounting(t *testing.T) {
	b := append(file(t, "speech_vbr_notag.mp3"), bytes.Repeat([]byte{0xFF}, 20<<20)...)
	r := &counted{ReaderAt: bytes.NewReader(b)}
	if facts, err := Parse(r, int64(len(b))); !errors.Is(err, ErrUnknown) {
		t.Errorf("Parse = %+v, %v, want %v", facts, err, ErrUnknown)
	}
	if limit := len(b) / 3; r.bytes > limit {
		t.Errorf("Parse reads %d of %d bytes, want at most %d", r.bytes, len(b), limit)
	}
}
