// Package limit says how often what may happen: to an account, from a network, by a
// key. Each limit has the name that it has in the configuration.
//
// What is counted lies in the session store and is counted there in one operation,
// so that nodes count together and callers at once are counted each. While no store
// can count, each node counts by itself. Who is counted is kept as a digest.
package limit

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Name is that of a limit: a key of the configuration's section limits.
type Name string

// The limits.
const (
	LoginPerAccount       Name = "login_per_account"        // passwords tried at an account by devices that it does not know
	LoginPerDevice        Name = "login_per_device"         // passwords tried by a device that signed in to the account before
	LoginPerNetwork       Name = "login_per_network"        // passwords tried from a network
	LoginPerRange         Name = "login_per_range"          // passwords tried from the networks that one may have together, see Range
	AuthorizePerNetwork   Name = "authorize_per_network"    // authorization requests from a network
	TokenPerClient        Name = "token_per_client"         // requests to the token endpoint of a client from a network
	RegisterPerNetwork    Name = "register_per_network"     // accounts and clients registered from a network
	MailPerAddress        Name = "mail_per_address"         // mails that strangers may have sent to an address
	MailPerNetwork        Name = "mail_per_network"         // mails that a network may have sent, to whomever
	APIRequests           Name = "api_requests"             // requests of a key, a client or a token
	APIWrites             Name = "api_writes"               // those of them that change something
	MediaMissesPerNetwork Name = "media_misses_per_network" // recordings that there are not, asked for from a network
)

// Rates are the rates by which limits are held. One that is absent, or has no
// Burst, holds nobody.
type Rates map[Name]session.Rate

// Of returns a rate of so many in a time, all at once or one after the other.
func Of(n int, in time.Duration) session.Rate {
	if n <= 0 {
		return session.Rate{}
	}
	return session.Rate{Burst: n, Every: max(in/time.Duration(n), time.Microsecond)}
}

// A Limiter holds limits. Make one with [New]; a nil one holds nobody. Its methods
// may be called at once from any number of goroutines.
type Limiter struct {
	store session.Store
	rates atomic.Pointer[Rates]
	meter session.Meter // where the store cannot count
	seed  maphash.Seed  // of callers

	mu     sync.Mutex
	shares map[caller]share
}

// New makes a Limiter.
func New(store session.Store, rates Rates) *Limiter {
	l := &Limiter{store: store, seed: maphash.MakeSeed(), shares: make(map[caller]share)}
	l.Set(rates)
	return l
}

// Set changes the rates. What was counted stays counted.
func (l *Limiter) Set(rates Rates) {
	l.rates.Store(&rates)
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.shares)
}

// Take counts one of a limit for whom it is about, exactly: of many callers at once
// as many get through as there may. The others get problem.RateLimited, with the time
// to wait, and are not counted.
func (l *Limiter) Take(ctx context.Context, name Name, who string) error {
	rate, ok := l.rate(name)
	if !ok {
		return nil
	}
	return refused(l.ask(ctx, keyOf(name, who), rate, 1))
}

// Return returns back what Take took: it did not count after all.
func (l *Limiter) Return(ctx context.Context, name Name, who string) {
	if rate, ok := l.rate(name); ok {
		_, _ = l.ask(context.WithoutCancel(ctx), keyOf(name, who), rate, -1) // at worst it counts
	}
}

// Reset returns back all that was ever taken.
func (l *Limiter) Reset(ctx context.Context, name Name, who string) error {
	if l == nil {
		return nil
	}
	return l.store.Delete(ctx, keyOf(name, who))
}

// A Count is one of what a limit counts.
type Count struct {
	Name Name
	Who  string
}

// TakeAll takes each of counts, or none of them: where one may not, it says which, with the
// error of Take.
func (l *Limiter) TakeAll(ctx context.Context, counts []Count) (over Count, err error) {
	for i, c := range counts {
		if err := l.Take(ctx, c.Name, c.Who); err != nil {
			l.ReturnAll(ctx, counts[:i])
			return c, err
		}
	}
	return Count{}, nil
}

// ReturnAll returns back what TakeAll took.
func (l *Limiter) ReturnAll(ctx context.Context, counts []Count) {
	for _, c := range counts {
		l.Return(ctx, c.Name, c.Who)
	}
}

func (l *Limiter) rate(name Name) (session.Rate, bool) {
	if l == nil {
		return session.Rate{}, false
	}
	rate := (*l.rates.Load())[name]
	return rate, rate.Burst > 0
}

// keyOf names what is counted. Who may be anything that a client chose.
func keyOf(name Name, who string) session.Key {
	return session.Key{Kind: "limit-" + string(name), ID: session.Digest(who)}
}

// ask asks the store, or who counts in its place.
func (l *Limiter) ask(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	wait, err := l.store.Allow(ctx, key, rate, n)
	if left := ctx.Err(); err != nil && left != nil {
		return 0, left
	}
	if err != nil {
		wait = l.meter.Allow(key, rate, n)
	}
	return wait, nil
}

func refused(wait time.Duration, err error) error {
	if wait <= 0 || err != nil {
		return err
	}
	return &problem.Error{Kind: problem.RateLimited, Code: "rate_limit_exceeded",
		Message: "too many requests; try again later", RetryAfter: wait}
}
