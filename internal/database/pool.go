package database

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	restFor  = 100 * time.Millisecond // how long to wait after a failed attempt to connect
	lifetime = 30 * time.Minute       // short enough that new servers behind a host name are soon used
)

// A pool keeps at most max connections. It opens a connection when it is needed, and keeps it for
// reuse. The most recently used connection is reused first.
//
// Unlike the pool that comes with pgx, it fails fast while the server is down. If an attempt to
// connect fails, all waiting callers get the error immediately, unless an open connection may still
// be put back. The pool then pauses before the next attempt.
type pool struct {
	max      int
	patience time.Duration // how long to wait while all connections are in use or being opened
	connect  func(context.Context) (*conn, error)

	mu      sync.Mutex
	idle    []*conn
	open    int // the number of connections, including those being opened
	waiting []chan given
	failed  time.Time // the time of the last failure to connect; zero after a success
	failure error
	closed  bool
	emptied chan struct{} // closed once a closed pool has no connections left

	waits  int64
	waited time.Duration
}

// given is the result for a waiting caller: a connection or an error.
type given struct {
	conn *conn
	err  error
}

func newPool(max int, patience time.Duration, connect func(context.Context) (*conn, error)) *pool {
	return &pool{max: max, patience: patience, connect: connect, emptied: make(chan struct{})}
}

// get returns a connection. The caller must put it back.
func (p *pool) get(ctx context.Context) (*conn, error) {
	for {
		c, turn, err := p.take()
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return p.wait(ctx, turn)
		case c.quiet():
			return c, nil
		}
		p.drop(c)
	}
}

// take returns an idle connection, or a channel on which the caller receives one later.
func (p *pool) take() (*conn, chan given, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, unavailable(ErrClosed)
	}
	if last := len(p.idle) - 1; last >= 0 {
		c := p.idle[last]
		p.idle = p.idle[:last]
		return c, nil, nil
	}
	turn := make(chan given, 1)
	p.waiting = append(p.waiting, turn)
	p.more()
	return nil, turn, nil
}

// wait waits for the result on the channel turn, for at most p.patience.
func (p *pool) wait(ctx context.Context, turn chan given) (*conn, error) {
	began := time.Now()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()

	var err error
	select {
	case g := <-turn:
		p.note(time.Since(began))
		return g.conn, g.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	p.note(time.Since(began))

	// A connection may have arrived in the meantime. If the wait timed out, the connection is
	// returned. If ctx is done, it is passed to another caller.
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		if err != nil {
			return nil, err
		}
		return nil, unavailable(p.busy())
	}

	g := <-turn
	if g.err != nil {
		return nil, g.err
	}
	if err != nil {
		p.give(g.conn)
		return nil, err
	}
	return g.conn, nil
}

// busy explains why no connection became free in time.
func (p *pool) busy() error {
	if p.failure != nil && time.Since(p.failed) < p.patience {
		return fmt.Errorf("no connection became free within %s: %w", p.patience, p.failure)
	}
	return fmt.Errorf("none of %d connections became free within %s", p.open, p.patience)
}

func (p *pool) note(waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits++
	p.waited += waited
}

// more opens another connection in the background if callers are waiting and the pool is not full.
// If an attempt to connect has just failed, more refuses the waiting callers instead.
func (p *pool) more() {
	if len(p.waiting) == 0 || p.open >= p.max {
		return
	}
	if time.Since(p.failed) < restFor {
		p.refuse()
		return
	}

	p.open++
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.patience)
		defer cancel()
		c, err := p.connect(ctx)

		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err != nil:
			p.open--
			p.failed, p.failure = time.Now(), err
			p.refuse()
			p.ended()
		case p.closed:
			go p.drop(c)
		default:
			p.failed, p.failure = time.Time{}, nil
			p.give(c)
		}
	}()
}

// refuse sends an error to all waiting callers, unless an open connection may still be put back.
func (p *pool) refuse() {
	if p.open > 0 {
		return
	}
	for _, turn := range p.waiting {
		turn <- given{err: unavailable(p.failure)}
	}
	p.waiting = nil
}

// give passes a connection to the caller that has waited longest, or keeps it if no caller is
// waiting.
func (p *pool) give(c *conn) {
	if len(p.waiting) == 0 {
		p.idle = append(p.idle, c)
		return
	}
	p.waiting[0] <- given{conn: c}
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// put takes a connection back.
func (p *pool) put(c *conn) {
	usable := c.usable() // without the lock, because it may take a round trip
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !usable {
		go p.drop(c)
		return
	}
	p.give(c)
}

// drop closes a connection, and opens another if callers are waiting.
func (p *pool) drop(c *conn) {
	c.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.more()
	p.ended()
}

func (p *pool) ended() {
	if p.closed && p.open == 0 {
		close(p.emptied)
	}
}

// close closes all connections. It waits for connections in use to be put back, but only slightly
// longer than a query may take.
func (p *pool) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	for _, turn := range p.waiting {
		turn <- given{err: unavailable(ErrClosed)}
	}
	idle := p.idle
	p.idle, p.waiting = nil, nil
	p.ended()
	p.mu.Unlock()

	for _, c := range idle {
		p.drop(c)
	}

	select {
	case <-p.emptied:
	case <-time.After(p.patience + 2*time.Second):
	}
}

func (p *pool) stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Open: p.open, InUse: p.open - len(p.idle), Waits: p.waits, Waited: p.waited}
}
