package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// A Progress shows the progress of a long command on one line of the terminal, which it overwrites.
// It prints nothing if stderr is not a terminal.
type Progress struct {
	w              io.Writer // nil if nothing is printed
	what           string    // name of one counted thing, such as "file"
	started, shown time.Time
	done           int
	things         int   // number of things expected; 0 if unknown
	bytes, total   int64 // bytes read, and expected in total; total is 0 if unknown
	skipped        int64 // number of skipped bytes, which took no time
	now            func() time.Time
}

// progressInterval is the minimum time between two updates of the line.
const progressInterval = 200 * time.Millisecond

// NewProgress returns a Progress that counts things, such as "file". The Progress prints nothing if
// stdout is a terminal, because the command prints each item there as it completes.
func (e *Env) NewProgress(thing string) *Progress {
	p := &Progress{what: thing, now: time.Now}
	p.started = p.now()
	if console.IsTerminal(e.Stderr) && !console.IsTerminal(e.Stdout) {
		p.w = e.Stderr
	}
	return p
}

// NewProgressLine is like NewProgress, but for a command that prints nothing until it ends. The
// Progress also prints if stdout is a terminal.
func (e *Env) NewProgressLine(thing string) *Progress {
	p := e.NewProgress(thing)
	if console.IsTerminal(e.Stderr) {
		p.w = e.Stderr
	}
	return p
}

// ExpectThings sets how many things are expected.
func (p *Progress) ExpectThings(n int) { p.things = n }

// Expect adds n to the number of bytes that are expected.
func (p *Progress) Expect(n int64) { p.total += n }

// Skip counts one thing of n bytes that needs no work.
func (p *Progress) Skip(n int64) {
	p.bytes, p.skipped = p.bytes+n, p.skipped+n
	p.Step()
}

// Reader returns a reader that reads from r and counts the bytes.
func (p *Progress) Reader(r io.Reader) io.Reader { return &counted{r, p} }

type counted struct {
	io.Reader
	p *Progress
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.p.bytes += int64(n)
	c.p.show()
	return n, err
}

// Step counts one more thing.
func (p *Progress) Step() { p.Steps(1) }

// Steps counts n more things.
func (p *Progress) Steps(n int) {
	p.done += n
	p.show()
}

// show writes the line, unless it was written just now.
func (p *Progress) show() {
	now := p.now()
	if p.w == nil || now.Sub(p.shown) < progressInterval {
		return
	}
	p.shown = now
	seconds := max(now.Sub(p.started).Seconds(), 0.001)
	if p.things > 0 {
		p.showBar(seconds)
		return
	}
	if p.total == 0 {
		fmt.Fprintf(p.w, "\r\x1b[K%s, %.0f a second", Plural(p.done, p.what), float64(p.done)/seconds)
		return
	}

	rate := float64(p.bytes-p.skipped) / seconds
	fmt.Fprintf(p.w, "\r\x1b[K%s, %.1f of %.1f MB, %.1f MB a second", Plural(p.done, p.what), float64(p.bytes)/1e6,
		float64(p.total)/1e6, rate/1e6)
	if left := p.total - p.bytes; rate > 0 && left > 0 {
		fmt.Fprintf(p.w, ", %s left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
}

// barWidth is the number of characters of a bar.
const barWidth = 30

// showBar writes a line with a bar. If bytes are expected, the bar shows their share.
func (p *Progress) showBar(seconds float64) {
	done := min(p.done, p.things)
	part, whole := int64(done), int64(p.things)
	if p.total > 0 {
		part, whole = min(p.bytes, p.total), p.total
	}

	full := int(barWidth * part / whole)
	fmt.Fprintf(p.w, "\r\x1b[K[%s%s] %d of %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), done,
		Plural(p.things, p.what))
	if p.total > 0 {
		fmt.Fprintf(p.w, ", %.1f MB a second", float64(p.bytes)/1e6/seconds)
	}

	if rate := float64(part) / seconds; rate > 0 && part < whole {
		left := time.Duration(float64(whole-part) / rate * float64(time.Second))
		fmt.Fprintf(p.w, ", %s left", left.Round(time.Second))
	}
}

// End erases the line.
func (p *Progress) End() {
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
