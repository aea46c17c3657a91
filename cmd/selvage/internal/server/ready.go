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

// How long a probe waits for answers, and how long those are given again: however
// many probes there are, each dependency is asked once a second. What answered and
// has not yet answered again is busy, as it is under load: it is lost only after
// lostAfter, or every node would be taken out of use when there is most to do.
const (
	answerIn  = 500 * time.Millisecond
	askEvery  = time.Second
	lostAfter = 10 * time.Second
)

// A dependency is something that a server needs to serve.
type dependency struct {
	name string
	// ask returns what there is to say though it is ready, or why it is not.
	ask func(ctx context.Context) (note string, err error)

	asked chan answer // holds or awaits the answer of an ask that was begun; else nil
	began time.Time   // when that was
	last  answer
}

// An answer is what a dependency said.
type answer struct {
	note string
	err  error
}

func (a answer) String() string {
	switch {
	case a.err != nil:
		return plainly(a.err)
	case a.note != "":
		return "ok: " + a.note
	}
	return "ok"
}

// dependencies tell whether requests may be sent here. They may be asked at once.
type dependencies struct {
	all []*dependency
	log *slog.Logger // told when one gets lost, and found again

	mu    sync.Mutex
	asked time.Time
}

// check asks all dependencies at once, unless that was done a moment ago, and
// gives what each said, by its name.
func (n *dependencies) check() (answers map[string]answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.asked) > askEvery {
		n.askAll()
		n.asked = time.Now()
	}
	answers = make(map[string]answer)
	for _, d := range n.all {
		answers[d.name] = d.last
	}
	return answers
}

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

// begin asks, unless an answer is still awaited: what hangs is asked once.
func (d *dependency) begin() {
	if d.asked != nil {
		return
	}
	asked := make(chan answer, 1)
	d.asked, d.began = asked, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lostAfter)
		defer cancel()
		note, err := d.ask(ctx)
		asked <- answer{note, err}
	}()
}

// wait returns the answer; where it does not come in time, what is to be thought
// meanwhile.
func (d *dependency) wait(ctx context.Context) answer {
	var got answer
	select {
	case got = <-d.asked:
	case <-ctx.Done():
		select {
		case got = <-d.asked: // in time, while another was waited for
		default:
			return d.meanwhile()
		}
	}
	d.asked = nil
	return got
}

// meanwhile stands for an answer that has not come: the last one, for so long.
func (d *dependency) meanwhile() answer {
	waited := time.Since(d.began)
	switch {
	case waited >= lostAfter:
		return answer{err: context.DeadlineExceeded}
	case d.last.err != nil:
		return d.last
	}
	return answer{note: "busy, no answer for " + waited.Round(100*time.Millisecond).String()}
}

// note keeps an answer, and logs one that is unlike the last.
func (n *dependencies) note(d *dependency, a answer) {
	switch {
	case a.err != nil && d.last.err == nil:
		n.log.Warn("not ready", "dependency", d.name, "error", a.err)
	case a.err == nil && d.last.err != nil:
		n.log.Info("ready again", "dependency", d.name)
	}
	d.last = a
}

// plainly says an error in a line, without what it came from.
func plainly(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer in %s", lostAfter)
	}
	return database.Plainly(err)
}

// needs lists what this server depends on.
func (a *App) needs() []*dependency {
	without := func(ask func(ctx context.Context) error) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return "", ask(ctx) }
	}
	all := []*dependency{
		{name: "store", ask: without(a.Store.Ping)},
		{name: "sessions", ask: a.askSessions},
		{name: "clock", ask: without(clock.Source(a.Store.Clock).InTime)},
		{name: "keys", ask: func(context.Context) (string, error) { return a.ringNote(), nil }},
		{name: "revocations", ask: without(func(context.Context) error { return a.revocations.Check(time.Now()) })},
	}
	if a.media != nil {
		all = append(all, &dependency{name: "media",
			ask: without(func(context.Context) error { return a.media.Probe() })})
	}
	return all
}

// ringNote says what is wrong with the key ring, which does its work all the same.
func (a *App) ringNote() string {
	s := a.Ring.Status()
	if s.Err == nil {
		return ""
	}
	return fmt.Sprintf("the keys of %s ago go on: %s", time.Since(s.Synced).Round(time.Second), plainly(s.Err))
}
