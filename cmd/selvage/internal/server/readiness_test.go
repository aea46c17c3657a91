package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// TestReadiness shows how dependencies are reported in the first response, and in a response after
// lostAfter.
func TestReadiness(t *testing.T) {
	unavailable := fmt.Errorf("asking: %w: %w",
		problem.New(problem.Unavailable, "x", "the database does not answer"), errors.New("dial tcp 10.0.0.1"))
	promptly := func(note string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return note, err }
	}
	slowly := func(wait time.Duration) func(context.Context) (string, error) {
		return func(context.Context) (string, error) {
			time.Sleep(wait)
			return "", nil
		}
	}
	untilDeadline := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}

	type state struct {
		text  string
		ready bool
	}
	busy := state{text: "ok: busy, no answer for 500ms", ready: true}
	lost := state{text: "no answer in 10s"}
	good := state{text: "ok", ready: true}
	noted := state{text: "ok: Redis is away", ready: true}
	down := state{text: "the database does not answer"}
	failed := state{text: "one"}

	tests := []struct {
		name  string
		ask   func(context.Context) (string, error)
		first state
		later state // after lostAfter
	}{
		{name: "good", ask: promptly("", nil), first: good, later: good},
		{name: "with a note", ask: promptly("Redis is away", nil), first: noted, later: noted},
		{name: "with a problem", ask: promptly("", unavailable), first: down, later: down},
		{name: "with lines", ask: promptly("", errors.New("one\ntwo")), first: failed, later: failed},
		{name: "busy", ask: slowly(lostAfter - time.Second), first: busy, later: good},
		{name: "stops at the deadline", ask: untilDeadline, first: busy, later: lost},
		{name: "hangs", ask: slowly(time.Hour), first: busy, later: lost},
		{name: "fine, after a probe that hangs", ask: promptly("", nil), first: good, later: good},
	}

	synctest.Test(t, func(t *testing.T) {
		r := &dependencies{log: slog.New(slog.DiscardHandler)}
		for _, tt := range tests {
			r.all = append(r.all, &dependency{name: tt.name, ask: tt.ask})
		}

		began := time.Now()
		first := r.check()
		if took := time.Since(began); took != answerIn {
			t.Errorf("check took %s, want %s", took, answerIn)
		}
		time.Sleep(lostAfter)
		later := r.check()

		for _, tt := range tests {
			a := first[tt.name]
			if got := (state{text: a.String(), ready: a.err == nil}); got != tt.first {
				t.Errorf("%s: the first check = %+v, want %+v", tt.name, got, tt.first)
			}
			a = later[tt.name]
			if got := (state{text: a.String(), ready: a.err == nil}); got != tt.later {
				t.Errorf("%s: the check after %s = %+v, want %+v", tt.name, lostAfter, got, tt.later)
			}
		}
		time.Sleep(2 * time.Hour) // let the hanging probes end
	})
}

// TestReadinessOfLost shows that a dependency that was not ready becomes ready again only after it has
// answered, while a dependency that was ready may be busy.
func TestReadinessOfLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes time.Duration
		r := &dependencies{
			log: slog.New(slog.DiscardHandler),
			all: []*dependency{
				{
					name: "ready",
					ask: func(context.Context) (string, error) {
						time.Sleep(takes)
						return "", nil
					},
				},
				{
					name: "lost",
					ask: func(context.Context) (string, error) {
						if takes == 0 {
							return "", errors.New("refused")
						}
						time.Sleep(takes)
						return "", nil
					},
				},
			},
		}

		r.check()
		takes = 5 * time.Second
		time.Sleep(askEvery + 1)
		got := r.check()
		if got["ready"].err != nil {
			t.Errorf("a dependency that was ready and is busy is %q, want busy", got["ready"])
		}
		if got["lost"].err == nil {
			t.Errorf("a dependency that was lost and is busy is %q, want refused", got["lost"])
		}
		time.Sleep(takes)
		for name, last := range r.check() {
			if last.err != nil {
				t.Errorf("after its response, %s is %q, want ok", name, last)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestReadinessOfMany shows that a dependency is asked at most once a second, however many requests
// arrive, and only once in total while it hangs.
func TestReadinessOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, slow atomic.Int32
		r := &dependencies{
			log: slog.New(slog.DiscardHandler),
			all: []*dependency{
				{
					name: "quick",
					ask: func(context.Context) (string, error) {
						quick.Add(1)
						return "", nil
					},
				},
				{
					name: "slow",
					ask: func(context.Context) (string, error) {
						slow.Add(1)
						time.Sleep(time.Minute)
						return "", nil
					},
				},
			},
		}

		for range 100 {
			r.check()
		}
		time.Sleep(10 * time.Second)
		r.check()
		if asked := quick.Load(); asked != 2 {
			t.Errorf("after two rounds, quick was asked %d times, want 2", asked)
		}
		if asked := slow.Load(); asked != 1 {
			t.Errorf("after two rounds, slow was asked %d times, want 1", asked)
		}
		time.Sleep(time.Hour)
		if got := r.check()["slow"]; got.err != nil {
			t.Errorf("slow is %q after it answered, want ok", got)
		}
		time.Sleep(time.Hour)
	})
}
