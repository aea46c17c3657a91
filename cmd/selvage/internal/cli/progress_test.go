package cli

import (
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := &Progress{w: &out, what: "file", started: at, now: func() time.Time { return at }}
	for range 10 {
		at = at.Add(progressInterval / 2)
		p.Step()
	}
	p.End()

	if got, want := out.String(), "\r\x1b[K1 file, 10 a second"; !strings.HasPrefix(got, want) {
		t.Errorf("the line starts with %q, want %q", got, want)
	}
	if got, want := strings.Count(out.String(), "a second"), 5; got != want {
		t.Errorf("the line was written %d times, want %d", got, want)
	}
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("the line is not erased at the end: %q", out.String())
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	silent := &Progress{what: "file", now: time.Now}
	silent.Step()
	silent.End()

	var e Env
	if got := e.NewProgress("file"); got.w != nil {
		t.Error("progress is written although stderr is not a terminal")
	}
}
