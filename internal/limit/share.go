package limit

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// A caller is who has a share. Names that clients chose may be long, and are not kept.
type caller struct {
	limit Name
	hash  uint64
}

func (l *Limiter) caller(name Name, who string) caller {
	return caller{name, maphash.String(l.seed, who)}
}

// A share is what this node may let through without asking the store again.
type share struct {
	left   int       // taken already, and not used yet
	closed time.Time // until when all were refused
}

// maxShares bounds what is remembered of callers; who is forgotten loses a share.
const maxShares = 20_000

// Pass counts one as Take does, at less cost: a hundredth of what a rate allows is
// taken from the store at once, and who was refused is refused until it may try
// again. With several nodes a few more are refused than the rate says, never fewer.
func (l *Limiter) Pass(ctx context.Context, name Name, who string) error {
	rate, ok := l.rate(name)
	if !ok {
		return nil
	}
	return l.pass(ctx, name, who, rate)
}

func (l *Limiter) pass(ctx context.Context, name Name, who string, rate session.Rate) error {
	c := l.caller(name, who)
	if wait, known := l.use(c); known {
		return refused(wait, nil)
	}
	key := keyOf(name, who)
	n := max(1, rate.Burst/100)
	wait, err := l.ask(ctx, key, rate, n)
	if wait > 0 && n > 1 && err == nil {
		n = 1
		wait, err = l.ask(ctx, key, rate, n)
	}
	if err == nil {
		l.keep(c, n-1, wait)
	}
	return refused(wait, err)
}

// Unpass returns back what Pass took: it did not count after all.
func (l *Limiter) Unpass(name Name, who string) {
	if _, ok := l.rate(name); ok {
		l.keep(l.caller(name, who), 1, 0)
	}
}

// use takes one of a share, where there is one or all are refused.
func (l *Limiter) use(c caller) (wait time.Duration, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.shares[c]
	if !ok {
		return 0, false
	}
	if s.left > 0 {
		s.left--
		l.shares[c] = s
		return 0, true
	}
	wait = time.Until(s.closed)
	return wait, wait > 0
}

// keep adds to a share, or has all refused for a while.
func (l *Limiter) keep(c caller, more int, wait time.Duration) {
	if more == 0 && wait <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shares) >= maxShares {
		clear(l.shares)
	}
	s := l.shares[c]
	s.left += more
	if wait > 0 {
		s.closed = time.Now().Add(wait)
	}
	l.shares[c] = s
}
