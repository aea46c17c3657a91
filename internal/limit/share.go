package limit

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// A caller identifies the holder of a share. It contains a hash of the caller's name, because the name
// itself may be long: clients choose it.
type caller struct {
	limit Name
	hash  uint64
}

func (l *Limiter) caller(name Name, who string) caller {
	return caller{name, maphash.String(l.seed, who)}
}

// A share is the number of events that this node may permit without asking the store again.
type share struct {
	left   int       // events that were taken from the store and not used yet
	closed time.Time // if none are left, events are refused until this time
}

// maxShares is the maximum number of shares kept. If there are more, all shares are dropped,
// including the events left in them.
const maxShares = 20_000

// Pass counts one event like [Limiter.Take], but at a lower cost, because it does not ask the store for
// each event. It takes events from the store in batches of a hundredth of the rate's Burst. Once the store
// refuses a caller, Pass refuses the caller without asking the store again, until the wait has ended. With
// several nodes, slightly fewer events may pass than the rate allows, but never more.
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
	const batches = 100 // in one Burst
	n := max(1, rate.Burst/batches)
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

// Unpass undoes one Pass, for an event that turned out not to count.
func (l *Limiter) Unpass(name Name, who string) {
	if _, ok := l.rate(name); ok {
		l.keep(l.caller(name, who), 1, 0)
	}
}

// use takes one event from a caller's share. If known is false, the share cannot decide, and Pass
// must ask the store. Otherwise wait is how long the caller is refused, or 0 if the event was
// taken.
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

// keep adds more events to a caller's share. If wait is positive, the caller is refused for that
// long.
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
