package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/clock"
	"github.com/selvage/selvage/internal/database"
)

// A request to /readyz waits only briefly for answers. If an answer takes longer, the last error counts
// until lostAfter, and a dependency without an error counts as busy, but ready. Otherwise, high load could
// make all nodes unready at the same time.
const (
	answerIn  = 500 * time.Millisecond // how long a request waits
	askEvery  = time.Second            // how long answers are valid, however many requests arrive
	lostAfter = 10 * time.Second       // when a dependency that does not answer counts as lost
)

// A dependency is something that a server needs in order to serve.
type dependency struct {
	name string
	// ask returns an error if the dependency is not ready. A note is shown if there is no error.
	ask func(ctx context.Context) (note string, err error)

	asked chan answer // receives the answer of a pending ask; nil if none is pending
	began time.Time   // time at which the pending ask began
	last  answer
}

// An answer is the result of asking a dependency.
type answer struct {
	note string
	err  error
}

func (a answer) String() string {
	switch {
	case a.err != nil:
		return formatError(a.err)
	case a.note != "":
		return "ok: " + a.note
	}
	return "ok"
}

// dependencies determines whether the server is ready. Its methods are safe for concurrent use.
type dependencies struct {
	all []*dependency
	log *slog.Logger // receives a line when a dependency becomes unready or ready again

	mu    sync.Mutex
	asked time.Time
}

// check returns the answers by the name of the dependency. It asks all dependencies at the same
// time, unless they were asked within the last askEvery.
func (n *dependencies) check() map[string]answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.asked) > askEvery {
		n.askAll()
		n.asked = time.Now()
	}
	answers := make(map[string]answer)
	for _, d := range n.all {
		answers[d.name] = d.last
	}
	return answers
}

// askAll asks all dependencies at the same time, and waits until they have answered or answerIn has
// passed.
func (n *dependencies) askAll() {
	wait, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	for _, d := range n.all {
		d.begin()
	}
	for _, d := range n.all {
		n.note(d, d.wait(wait))
	}
}

// begin asks the dependency. It does nothing while an earlier answer is pending, so a dependency that
// hangs is asked only once.
func (d *dependency) begin() {
	if d.asked != nil {
		return
	}
	asked := make(chan answer, 1)
	d.asked = asked
	d.began = time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lostAfter)
		defer cancel()
		note, err := d.ask(ctx)
		asked <- answer{note, err}
	}()
}

// wait returns the answer, or a substitute if ctx is done first.
func (d *dependency) wait(ctx context.Context) answer {
	var got answer
	select {
	case got = <-d.asked:
	case <-ctx.Done():
		select {
		case got = <-d.asked: // the answer arrived while the server waited for another dependency
		default:
			return d.substitute()
		}
	}
	d.asked = nil
	return got
}

// substitute returns the answer to use while an answer is pending. Until lostAfter, this is the
// last error or, if there is none, a note that the dependency is busy.
func (d *dependency) substitute() answer {
	waited := time.Since(d.began)
	switch {
	case waited >= lostAfter:
		return answer{err: context.DeadlineExceeded}
	case d.last.err != nil:
		return d.last
	}
	return answer{note: "busy, no answer for " + waited.Round(100*time.Millisecond).String()}
}

// note stores an answer, and logs it if the dependency has become unready or ready again.
func (n *dependencies) note(d *dependency, a answer) {
	switch {
	case a.err != nil && d.last.err == nil:
		n.log.Warn("not ready", "dependency", d.name, "error", a.err)
	case a.err == nil && d.last.err != nil:
		n.log.Info("ready again", "dependency", d.name)
	}
	d.last = a
}

// formatError formats err as one line, without the wrapping context.
func formatError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer in %s", lostAfter)
	}
	return database.Plainly(err)
}

// needs returns the dependencies of this server.
func (a *App) needs() []*dependency {
	checkRevocations := func() error { return a.revocations.Check(time.Now()) }
	needed := []*dependency{
		{name: "store", ask: asking(a.Store.Ping)},
		{name: "sessions", ask: a.checkSessions},
		{name: "clock", ask: asking(clock.Source(a.Store.Clock).CheckTolerance)},
		{name: "keys", ask: noting(a.ringNote)},
		{name: "revocations", ask: checking(checkRevocations)},
	}
	if a.media != nil {
		needed = append(needed, &dependency{name: "media", ask: checking(a.media.Probe)})
	}
	if a.rtpengines != nil {
		needed = append(needed, &dependency{name: "rtpengine", ask: noting(a.rtpengineNote)})
	}
	return needed
}

// asking adapts a function without a note to the field ask of a dependency.
func asking(ask func(context.Context) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return "", ask(ctx) }
}

// checking adapts a function that returns immediately, without a note, to the field ask of a dependency.
func checking(check func() error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", check() }
}

// noting adapts a function that only returns a note to the field ask of a dependency.
func noting(note func() string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return note(), nil }
}

// rtpengineNote returns "" unless calls fail because no rtpengine answers. Everything else works
// without an rtpengine.
func (a *App) rtpengineNote() string {
	if err := a.rtpengines.Check(); err != nil {
		return "calls between two parties fail: " + err.Error()
	}
	return ""
}

// ringNote describes a problem with the key ring, or returns "". The ring continues to work with
// its old keys.
func (a *App) ringNote() string {
	s := a.Ring.Status()
	if s.Err == nil {
		return ""
	}
	return fmt.Sprintf("using the keys read %s ago: %s", time.Since(s.Synced).Round(time.Second), formatError(s.Err))
}
