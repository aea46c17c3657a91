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

// TestReadiness shows how dependencies are reported at first, and how they are reported after
// lostAfter.
func TestReadiness(t *testing.T) {
	unavailable := fmt.Errorf("asking: %w: %w",
		problem.New(problem.Unavailable, "x", "the database does not answer"), errors.New("dial tcp 10.0.0.1"))
	const busy, lost = "ok: busy, no answer for 500ms", "no answer in 10s"
	tests := []struct {
		name        string
		ask         func(ctx context.Context) (string, error)
		want, later string // expected at first, and after lostAfter
		ok, okLater bool
	}{
		{"good", func(context.Context) (string, error) { return "", nil }, "ok", "ok", true, true},
		{"with a note", func(context.Context) (string, error) { return "Redis is away", nil },
			"ok: Redis is away", "ok: Redis is away", true, true},
		{"with a problem", func(context.Context) (string, error) { return "", unavailable },
			"the database does not answer", "the database does not answer", false, false},
		{"with lines", func(context.Context) (string, error) { return "", errors.New("one\ntwo") }, "one",
			"one", false, false},
		{"busy", func(context.Context) (string, error) {
			time.Sleep(lostAfter - time.Second)
			return "", nil
		}, busy, "ok", true, true},
		{"stops at the deadline", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			busy, lost, true, false},
		{"hangs", func(context.Context) (string, error) { time.Sleep(time.Hour); return "", nil }, busy, lost,
			true, false},
		{"fine, after a probe that hangs", func(context.Context) (string, error) { return "", nil },
			"ok", "ok", true, true},
	}

	synctest.Test(t, func(t *testing.T) {
		r := &dependencies{log: slog.New(slog.DiscardHandler)}
		for _, tt := range tests {
			r.all = append(r.all, &dependency{name: tt.name, ask: tt.ask})
		}

		began := time.Now()
		now := r.check()
		if took := time.Since(began); took != answerIn {
			t.Errorf("check took %s, want %s", took, answerIn)
		}
		time.Sleep(lostAfter)
		later := r.check()

		for _, tt := range tests {
			if a := now[tt.name]; a.String() != tt.want || (a.err == nil) != tt.ok {
				t.Errorf("%s: check = %q, %v, want %q", tt.name, a, a.err, tt.want)
			}
			if a := later[tt.name]; a.String() != tt.later || (a.err == nil) != tt.okLater {
				t.Errorf("%s: check after %s = %q, %v, want %q", tt.name, lostAfter, a, a.err, tt.later)
			}
		}
		time.Sleep(2 * time.Hour) // let the hanging probes end
	})
}

// TestReadinessOfLost shows that a lost dependency becomes ready again only after it has answered.
func TestReadinessOfLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes time.Duration
		r := &dependencies{
			log: slog.New(slog.DiscardHandler),
			all: []*dependency{
				{name: "it", ask: func(context.Context) (string, error) { time.Sleep(takes); return "", nil }},
				{
					name: "other",
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
		if got := r.check(); got["it"].err != nil || got["other"].err == nil {
			t.Errorf("while neither answers, busy is %q and other is %q, want busy and refused",
				got["it"], got["other"])
		}
		time.Sleep(takes)
		if got := r.check(); got["it"].err != nil || got["other"].err != nil {
			t.Errorf("once both have answered they are %q and %q, want ok", got["it"], got["other"])
		}
		time.Sleep(time.Hour)
	})
}

// TestReadinessOfMany shows that a dependency is asked the same number of times, however many
// probes there are. It is asked once in total if it hangs, and otherwise once a second.
func TestReadinessOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, slow atomic.Int32
		r := &dependencies{
			log: slog.New(slog.DiscardHandler),
			all: []*dependency{
				{name: "quick", ask: func(context.Context) (string, error) { quick.Add(1); return "", nil }},
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
		if quick.Load() != 2 || slow.Load() != 1 {
			t.Errorf("after two rounds, quick was asked %d times and slow %d times, want 2 and 1",
				quick.Load(), slow.Load())
		}
		time.Sleep(time.Hour)
		if got := r.check()["slow"]; got.err != nil {
			t.Errorf("slow is %q after it answered, want ok", got)
		}
		time.Sleep(time.Hour)
	})
}
