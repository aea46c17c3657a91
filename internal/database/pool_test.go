package database

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/test/servers"
)

// TestPoolWaits shows that a caller waits for a new or free connection for at most Patience, and
// then gets an error.
func TestPoolWaits(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		name  string
		takes time.Duration
		err   error
	}{
		{name: "soon", takes: time.Millisecond},
		{name: "at the last moment", takes: defaultPatience - time.Millisecond},
		{name: "refused", takes: 2 * time.Second, err: gone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(1, defaultPatience, func(context.Context) (*conn, error) {
					time.Sleep(tt.takes)
					return &conn{}, tt.err
				})

				began := time.Now()
				if _, err := p.get(t.Context()); !errors.Is(err, tt.err) {
					t.Errorf("get = %v, want %v", err, tt.err)
				}
				if took := time.Since(began); took != tt.takes {
					t.Errorf("get took %v, want %v", took, tt.takes)
				}

				// Now the connection is in use, or connecting fails again.
				began = time.Now()
				if _, err := p.get(t.Context()); !errors.Is(err, problem.Unavailable) {
					t.Errorf("another get = %v, want problem.Unavailable", err)
				}
				if took := time.Since(began); took > defaultPatience {
					t.Errorf("another get took %v, want at most %v", took, defaultPatience)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestPoolOpening shows that a pool opens connections for all waiting callers, but only a few at the
// same time.
func TestPoolOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opening, most atomic.Int64
		p := newPool(5, defaultPatience, func(context.Context) (*conn, error) {
			now := opening.Add(1)
			defer opening.Add(-1)
			for old := most.Load(); old < now; old = most.Load() {
				most.CompareAndSwap(old, now)
			}
			time.Sleep(time.Millisecond)
			return &conn{}, nil
		})

		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() {
				if _, err := p.get(t.Context()); err != nil {
					t.Errorf("get = %v, want nil", err)
				}
			})
		}
		callers.Wait()
		if got := most.Load(); got > maxOpening {
			t.Errorf("the pool opened %d connections at the same time, want at most %d", got, maxOpening)
		}
		if got := p.stats().InUse; got != 5 {
			t.Errorf("%d connections are in use, want 5", got)
		}
	})
}

// lateContext is done, and calls late when its error is read.
type lateContext struct {
	context.Context
	late func()
}

func (c lateContext) Err() error {
	c.late()
	return c.Context.Err()
}

// TestPoolClosedMeanwhile shows that a pool closes a connection that arrives for a canceled caller
// when the pool has just been closed.
func TestPoolClosedMeanwhile(t *testing.T) {
	config, err := serverConfig(servers.Postgres(t)).server()
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(1, time.Minute, connector(config))
	c, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	turn := make(chan got, 1)
	var closing sync.WaitGroup
	ctx := lateContext{Context: canceled, late: func() {
		turn <- got{conn: c}
		closing.Go(p.close)
		for closed := false; !closed; {
			p.mu.Lock()
			closed = p.closed
			p.mu.Unlock()
		}
	}}
	if _, err := p.wait(ctx, turn); !errors.Is(err, context.Canceled) {
		t.Errorf("wait = %v, want context.Canceled", err)
	}

	began := time.Now()
	closing.Wait()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("closing the pool took %v, want no wait for a connection that nobody uses", took)
	}
}
