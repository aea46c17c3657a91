package wav

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzOpen reads every file that Parse accepts, and then reads a range of the file again.
func FuzzOpen(f *testing.F) {
	for name := range expectations(f) {
		file, err := os.ReadFile(filepath.Join(corpus, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file[:min(len(file), 4096)], filepath.Ext(name), uint16(100), uint16(1000))
	}

	// Each byte may contain eight frames of two channels, which are read in several ways.
	bound := fuzzcost.Bound{
		CPU:        20 * time.Millisecond,
		CPUPerByte: 10 * time.Microsecond,
		Heap:       4 << 20,
		PerByte:    16 << 10,
	}
	f.Fuzz(func(t *testing.T, file []byte, kind string, offset, length uint16) {
		bound.Check(t, len(file), func() { openAll(t, file, kind, int(offset), int(length)) })
	})
}

// openAll decodes a whole file, decodes a part of the file with an index, and compares the results.
func openAll(t *testing.T, file []byte, kind string, offset, length int) {
	t.Helper()
	facts, err := Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		facts, err = ParseRaw(kind, bytes.NewReader(file), int64(len(file)))
	}
	if err != nil {
		return
	}

	s, err := Open(bytes.NewReader(file), facts, nil)
	if err != nil {
		t.Fatalf("%s was parsed but cannot be opened: %v", facts.Codec, err)
	}
	whole := readView(t, s)
	if limit := 44 + 1024*len(file); len(whole) > limit {
		t.Errorf("%d bytes became %d, want at most %d", len(file), len(whole), limit)
	}

	s, err = Open(bytes.NewReader(file), facts, having(s.Index()))
	if err != nil {
		t.Fatal(err)
	}

	v := NewView(s)
	want := whole[min(offset, len(whole)):]
	want = want[:min(length, len(want))]
	got := make([]byte, len(want))
	if _, err := v.Seek(int64(offset), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(v, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes from %d differ from the whole", length, offset)
	}
}

// FuzzParseRaw checks that no type or extension leads to implausible facts.
func FuzzParseRaw(f *testing.F) {
	for kind := range rawExtensions {
		f.Add("."+kind, int64(1000))
	}

	for kind := range rawTypes {
		f.Add("audio/"+kind+"; rate=8000; channels=2", int64(1000))
	}

	f.Fuzz(func(t *testing.T, kind string, size int64) {
		size = max(size, 0)
		var got Facts
		var err error
		fuzzcost.Parser.Check(t, len(kind), func() {
			got, err = ParseRaw(kind, bytes.NewReader(make([]byte, 64)), size)
		})
		if err != nil {
			if !errors.Is(err, ErrNotWAV) && !errors.Is(err, ErrBroken) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("ParseRaw: %v, want ErrNotWAV, ErrBroken or ErrUnexpectedEOF", err)
			}
			return
		}

		if err := got.Check(); err != nil {
			t.Errorf("Check: %v", err)
		}
		if got.BlockAlign < 1 || got.BlockFrames < 1 {
			t.Errorf("blocks of %d bytes and %d frames, want at least 1 of each", got.BlockAlign, got.BlockFrames)
		}
		if got.Length > size {
			t.Errorf("%d bytes of audio, want at most %d", got.Length, size)
		}
		if got.Frames < 0 || got.Duration() < 0 {
			t.Errorf("%d frames that take %v, want no negative values", got.Frames, got.Duration())
		}
	})
}
