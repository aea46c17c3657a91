package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// A Progress shows how far a long command has come, in a line of the terminal that it
// overwrites. It is silent if stderr is not a terminal, or if stdout is one, where each thing is
// printed as it is done.
type Progress struct {
	w              io.Writer // nil if silent
	what           string    // one of the things that are counted
	started, shown time.Time
	done           int
	now            func() time.Time
}

// progressInterval is the least time between two updates of the line.
const progressInterval = 200 * time.Millisecond

// NewProgress returns a Progress that counts things, such as "file".
func (e *Env) NewProgress(thing string) *Progress {
	p := &Progress{what: thing, now: time.Now}
	p.started = p.now()
	if console.IsTerminal(e.Stderr) && !console.IsTerminal(e.Stdout) {
		p.w = e.Stderr
	}
	return p
}

// Step counts one more thing.
func (p *Progress) Step() {
	p.done++
	now := p.now()
	if p.w == nil || now.Sub(p.shown) < progressInterval {
		return
	}
	p.shown = now
	rate := float64(p.done) / max(now.Sub(p.started).Seconds(), 0.001)
	fmt.Fprintf(p.w, "\r\x1b[K%s, %.0f a second", Plural(p.done, p.what), rate)
}

// End erases the line.
func (p *Progress) End() {
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
