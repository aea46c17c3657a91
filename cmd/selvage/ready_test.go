package main

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

func TestReadiness(t *testing.T) {
	unavailable := fmt.Errorf("asking: %w: %w", problem.New(problem.Unavailable, "x", "the database does not answer"), errors.New("dial tcp 10.0.0.1"))
	tests := []struct {
		name string
		ask  func(ctx context.Context) (string, error)
		want string
		ok   bool
	}{
		{"good", func(context.Context) (string, error) { return "", nil }, "ok", true},
		{"with a note", func(context.Context) (string, error) { return "Redis is away", nil }, "ok: Redis is away", true},
		{"with a problem", func(context.Context) (string, error) { return "", unavailable }, "the database does not answer", false},
		{"with lines", func(context.Context) (string, error) { return "", errors.New("one\ntwo") }, "one", false},
		{"heeds", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "no answer in 2s", false},
		{"hangs", func(context.Context) (string, error) { time.Sleep(time.Hour); return "", nil }, "no answer in 2s", false},
		{"after one that hangs", func(context.Context) (string, error) { return "", nil }, "ok", true},
	}
	synctest.Test(t, func(t *testing.T) {
		r := &dependencies{log: slog.New(slog.DiscardHandler)}
		for _, tt := range tests {
			r.all = append(r.all, &dependency{name: tt.name, ask: tt.ask})
		}
		began := time.Now()
		got := r.check()
		if took := time.Since(began); took != askAtMost {
			t.Errorf("check took %s, want %s", took, askAtMost)
		}
		for _, tt := range tests {
			if a := got[tt.name]; a.String() != tt.want || (a.err == nil) != tt.ok {
				t.Errorf("%s: check = %q, %v, want %q", tt.name, a, a.err, tt.want)
			}
		}
		time.Sleep(2 * time.Hour) // let what hangs end
	})
}

// However many ask, what hangs is asked once, and what answers once a second.
func TestReadinessOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, slow atomic.Int32
		r := &dependencies{log: slog.New(slog.DiscardHandler), all: []*dependency{
			{name: "quick", ask: func(context.Context) (string, error) { quick.Add(1); return "", nil }},
			{name: "slow", ask: func(context.Context) (string, error) { slow.Add(1); time.Sleep(time.Minute); return "", nil }},
		}}
		for range 100 {
			r.check()
		}
		time.Sleep(10 * time.Second)
		r.check()
		if quick.Load() != 2 || slow.Load() != 1 {
			t.Errorf("after two rounds one was asked %d times and one that hangs %d times, want 2 and 1", quick.Load(), slow.Load())
		}
		time.Sleep(time.Hour)
		if got := r.check()["slow"]; got.err != nil {
			t.Errorf("what hung and has come back is %q, want ok", got)
		}
		time.Sleep(time.Hour)
	})
}
