package database

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// connectPause is how long the pool waits after a failed attempt to connect.
	connectPause = 100 * time.Millisecond
	// maxOpening is the maximum number of connections that a pool opens at the same time. In the time
	// that this takes, an open connection can serve several callers, so fewer connections are needed.
	maxOpening = 2
	// lifetime is the age at which a connection is replaced, or up to a quarter later. It is short
	// enough that new servers behind a host name are soon used.
	lifetime = 30 * time.Minute
	// closeGrace is how much longer than its patience a closing pool waits for connections in use.
	closeGrace = 2 * time.Second
)

// A pool keeps at most max connections. It opens connections when they are needed, and keeps them
// for reuse. The most recently used connection is reused first.
//
// Unlike the pool that comes with pgx, it fails fast while the server is down. If an attempt to
// connect fails, all waiting callers get the error immediately, unless an open connection may still
// be put back. The pool then pauses before the next attempt.
type pool struct {
	max      int
	patience time.Duration // how long to wait while all connections are in use or being opened
	connect  func(context.Context) (*conn, error)

	emptied chan struct{} // closed once a closed pool has no connections left

	mu       sync.Mutex // guards the fields below
	idle     []*conn    // the most recently used one is last
	open     int        // the number of connections, including those being opened
	opening  int        // the number of connections being opened
	waiting  []chan got // one for each waiting caller, longest wait first; each has room for a result
	failedAt time.Time  // the time of the last failure to connect; zero after a success
	failure  error      // the last failure to connect; nil after a success
	closed   bool
	waits    int64         // the number of calls to get that waited
	waited   time.Duration // the time that these calls waited, in total
}

// got is the result for a waiting caller: a connection or an error.
type got struct {
	conn *conn
	err  error
}

func newPool(max int, patience time.Duration, connect func(context.Context) (*conn, error)) *pool {
	return &pool{
		max:      max,
		patience: patience,
		connect:  connect,
		emptied:  make(chan struct{}),
	}
}

// get returns a connection, which the caller must put back. Idle connections that the server has
// closed in the meantime are dropped.
func (p *pool) get(ctx context.Context) (*conn, error) {
	for {
		c, turn, err := p.take()
		if err != nil {
			return nil, err
		}
		if c == nil {
			return p.wait(ctx, turn)
		}
		if c.quiet() {
			return c, nil
		}
		p.drop(c)
	}
}

// take returns an idle connection. If all are in use, it returns a channel on which the caller
// receives its result later.
func (p *pool) take() (*conn, chan got, error) {
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
	turn := make(chan got, 1)
	p.waiting = append(p.waiting, turn)
	p.openMore()
	return nil, turn, nil
}

// wait waits for the result on the channel turn, for at most p.patience.
func (p *pool) wait(ctx context.Context, turn chan got) (*conn, error) {
	began := time.Now()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()

	var ctxErr error
	select {
	case result := <-turn:
		p.countWait(time.Since(began))
		return result.conn, result.err
	case <-ctx.Done():
		ctxErr = ctx.Err()
	case <-timer.C:
	}
	p.countWait(time.Since(began))

	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		if ctxErr != nil {
			return nil, ctxErr
		}
		return nil, unavailable(p.busyError())
	}

	// A result has arrived in the meantime. If it is a connection and ctx is done, the connection
	// is passed to another caller.
	result := <-turn
	if result.err != nil {
		return nil, result.err
	}
	if ctxErr != nil {
		p.give(result.conn)
		return nil, ctxErr
	}
	return result.conn, nil
}

// busyError explains why no connection became free in time. p.mu must be held.
func (p *pool) busyError() error {
	if p.failure != nil && time.Since(p.failedAt) < p.patience {
		return fmt.Errorf("no connection became free within %s: %w", p.patience, p.failure)
	}
	return fmt.Errorf("none of %d connections became free within %s", p.open, p.patience)
}

// countWait counts a call to get that waited.
func (p *pool) countWait(waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits++
	p.waited += waited
}

// openMore opens another connection in the background if callers are waiting and the pool is not
// full. If an attempt to connect has just failed, openMore refuses the waiting callers instead. p.mu
// must be held.
func (p *pool) openMore() {
	if len(p.waiting) == 0 || p.open >= p.max || p.opening >= maxOpening {
		return
	}
	if time.Since(p.failedAt) < connectPause {
		p.refuse()
		return
	}
	p.open++
	p.opening++
	go p.openOne()
}

// openOne opens a connection, which p.open and p.opening already count, and passes it to give. Then it
// opens another one if callers are still waiting.
func (p *pool) openOne() {
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	c, err := p.connect(ctx)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening--
	if err != nil {
		p.open--
		p.failedAt = time.Now()
		p.failure = err
		p.refuse()
		p.reportEmptied()
		return
	}
	p.failedAt = time.Time{}
	p.failure = nil
	p.give(c)
	p.openMore()
}

// refuse sends an error to all waiting callers, unless an open connection may still be put back. p.mu
// must be held.
func (p *pool) refuse() {
	if p.open > 0 {
		return
	}
	for _, turn := range p.waiting {
		turn <- got{err: unavailable(p.failure)}
	}
	p.waiting = nil
}

// give passes a connection to the caller that has waited longest, or keeps it if no caller is
// waiting. If the pool is closed, give drops the connection. p.mu must be held.
func (p *pool) give(c *conn) {
	if p.closed {
		go p.drop(c)
		return
	}
	if len(p.waiting) == 0 {
		p.idle = append(p.idle, c)
		return
	}
	p.waiting[0] <- got{conn: c}
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// put takes back a connection that get returned. It drops the connection if it is no longer usable.
func (p *pool) put(c *conn) {
	usable := c.usable() // without the lock, because it may take a round trip
	p.mu.Lock()
	defer p.mu.Unlock()
	if !usable {
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
	p.openMore()
	p.reportEmptied()
}

// reportEmptied closes p.emptied once the pool is closed and has no connections left. p.mu must be
// held.
func (p *pool) reportEmptied() {
	if p.closed && p.open == 0 {
		close(p.emptied)
	}
}

// close closes all connections, and refuses the waiting callers. It waits for connections in use to
// be put back, but only slightly longer than a query may take.
func (p *pool) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	for _, turn := range p.waiting {
		turn <- got{err: unavailable(ErrClosed)}
	}
	idle := p.idle
	p.idle = nil
	p.waiting = nil
	p.reportEmptied()
	p.mu.Unlock()

	for _, c := range idle {
		p.drop(c)
	}

	select {
	case <-p.emptied:
	case <-time.After(p.patience + closeGrace):
	}
}

// stats returns the current numbers of connections and waits.
func (p *pool) stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Open:   p.open,
		InUse:  p.open - len(p.idle),
		Waits:  p.waits,
		Waited: p.waited,
	}
}
