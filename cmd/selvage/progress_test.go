package main

import (
	"strings"
	"testing"
	"time"
)

// The line is written a few times a second, and gone in the end; where nobody looks on
// there is none.
func TestProgress(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	p := &progress{w: &out, what: "file", begun: at, now: func() time.Time { return at }}
	for range 10 {
		at = at.Add(progressEvery / 2)
		p.step()
	}
	p.end()
	if got, want := out.String(), "\r\x1b[K1 file, 10 a second"; !strings.HasPrefix(got, want) {
		t.Errorf("it begins with %q, want %q", got, want)
	}
	if got, want := strings.Count(out.String(), "a second"), 5; got != want {
		t.Errorf("it was written %d times, want %d", got, want)
	}
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("it stays: %q", out.String())
	}
	silent := &progress{what: "file", now: time.Now}
	silent.step()
	silent.end()
	var c cli
	if got := c.progress("file"); got.w != nil {
		t.Error("it is written where there is no terminal")
	}
}
