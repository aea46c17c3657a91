package main

import (
	"fmt"
	"io"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// A progress tells who looks on how far long work has come: one line of the terminal,
// written over. It says nothing where stderr is no terminal, or where stdout is one too
// and shows each thing as it is done.
type progress struct {
	w            io.Writer // nil says nothing
	what         string    // one of the things that are done
	begun, shown time.Time
	done         int
	now          func() time.Time
}

// progressEvery is how often the line is written: quicker nobody reads.
const progressEvery = 200 * time.Millisecond

func (c *cli) progress(what string) *progress {
	p := &progress{what: what, now: time.Now}
	p.begun = p.now()
	if console.IsTerminal(c.stderr) && !console.IsTerminal(c.stdout) {
		p.w = c.stderr
	}
	return p
}

// step tells that another one is done.
func (p *progress) step() {
	p.done++
	if now := p.now(); p.w != nil && now.Sub(p.shown) >= progressEvery {
		p.shown = now
		fmt.Fprintf(p.w, "\r\x1b[K%s, %.0f a second", plural(p.done, p.what),
			float64(p.done)/max(now.Sub(p.begun).Seconds(), 0.001))
	}
}

// end takes the line away.
func (p *progress) end() {
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
