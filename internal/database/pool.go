package database

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	restFor  = 100 * time.Millisecond // none is tried for so long after one could not be made
	lifetime = 30 * time.Minute       // so that servers behind a name are found that were not there at first
)

// A pool keeps connections, so many at most. They are made when they are needed,
// and wait to be used again; the one that was used last is used first.
type pool struct {
	max      int
	patience time.Duration // how long a query waits for a connection: as long as those before it may take, or one to be made
	connect  func(context.Context) (*conn, error)

	mu      sync.Mutex
	idle    []*conn
	open    int // connections, with those that are being made
	waiting []chan given
	failed  time.Time // when one could not be made
	failure error
	closed  bool
	emptied chan struct{} // closed when a closed pool has no connections any more

	waits  int64
	waited time.Duration
}

// given is what one who waits gets.
type given struct {
	conn *conn
	err  error
}

func newPool(max int, patience time.Duration, connect func(context.Context) (*conn, error)) *pool {
	return &pool{max: max, patience: patience, connect: connect, emptied: make(chan struct{})}
}

// get returns a connection, which is to be put back.
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

// take returns an idle connection, or a turn to wait for.
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else if g := <-turn; g.err != nil {
		return nil, g.err
	} else if err == nil {
		return g.conn, nil
	} else {
		p.give(g.conn)
	}
	if err == nil {
		err = unavailable(p.busy())
	}
	return nil, err
}

// busy says why nobody was given a connection in time.
func (p *pool) busy() error {
	if p.failure != nil && time.Since(p.failed) < p.patience {
		return fmt.Errorf("no connection became free in %s: %w", p.patience, p.failure)
	}
	return fmt.Errorf("none of %d connections became free in %s", p.open, p.patience)
}

func (p *pool) note(waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits++
	p.waited += waited
}

// more begins to make a connection for those who wait, if there may be one more.
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

// refuse sends away who waits, unless there are connections that can be put back.
func (p *pool) refuse() {
	if p.open > 0 {
		return
	}
	for _, turn := range p.waiting {
		turn <- given{err: unavailable(p.failure)}
	}
	p.waiting = nil
}

// give hands a connection to who waits longest.
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !c.usable() {
		go p.drop(c)
		return
	}
	p.give(c)
}

// drop closes a connection that will not be used again.
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

// close closes all connections, those in use when they are put back, for which it waits as long
// as a query may take.
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
