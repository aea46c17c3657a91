package cli

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestProgress shows that the line is written at most once in each interval, and erased at the end.
func TestProgress(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := &Progress{w: &out, what: "file", started: at, now: func() time.Time { return at }}
	for range 10 {
		at = at.Add(progressInterval / 2)
		p.Step()
	}
	p.End()

	written := out.String()
	if want := "\r\x1b[K1 file, 10 a second"; !strings.HasPrefix(written, want) {
		t.Errorf("the line is %q, want %q at its beginning", written, want)
	}
	if count := strings.Count(written, "a second"); count != 5 {
		t.Errorf("the line was written %d times, want 5", count)
	}
	if !strings.HasSuffix(written, "\r\x1b[K") {
		t.Errorf("the line was not erased at the end: %q", written)
	}
}

// TestProgressOfBytes shows that the line contains the bytes, their rate and the remaining time.
// Skipped bytes do not count toward the rate.
func TestProgressOfBytes(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := &Progress{w: &out, what: "file", started: at, now: func() time.Time { return at }}
	p.Expect(10e6)
	p.Skip(4e6)
	at = at.Add(2 * time.Second)
	if _, err := io.Copy(io.Discard, p.Reader(io.LimitReader(zeros{}, 2e6))); err != nil {
		t.Fatal(err)
	}

	at = at.Add(2 * time.Second)
	p.Step()
	const want = "\r\x1b[K2 files, 6.0 of 10.0 MB, 0.5 MB a second, 8s left"
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

// TestProgressBar shows the bar of a Progress that knows how many things are expected.
func TestProgressBar(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := &Progress{w: &out, what: "row", started: at, now: func() time.Time { return at }}
	p.ExpectThings(400)
	at = at.Add(10 * time.Second)
	p.Steps(100)
	const want = "\r\x1b[K[=======                       ] 100 of 400 rows, 30s left"
	if got := out.String(); got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

// TestProgressBarOfBytes shows that if both the number of things and the number of bytes are expected, the
// bar shows the progress of the bytes.
func TestProgressBarOfBytes(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := &Progress{w: &out, what: "recording", started: at, now: func() time.Time { return at }}
	p.ExpectThings(2)
	p.Expect(30_000_000)
	at = at.Add(5 * time.Second)
	if _, err := io.CopyN(io.Discard, p.Reader(zeros{}), 10_000_000); err != nil {
		t.Fatal(err)
	}

	out.Reset()
	at = at.Add(5 * time.Second)
	p.Step()
	const want = "\r\x1b[K[==========                    ] 1 of 2 recordings, 1.0 MB a second, 20s left"
	if got := out.String(); got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestProgressWithoutTerminal shows that nothing is written if stderr is not a terminal.
func TestProgressWithoutTerminal(t *testing.T) {
	silent := &Progress{what: "file", now: time.Now}
	silent.Step()
	silent.End()

	var e Env
	if got := e.NewProgress("file"); got.w != nil {
		t.Error("progress is written although stderr is not a terminal")
	}
}
