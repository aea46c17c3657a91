// Package limit enforces rate limits: how often an account, a network or an API key may
// do something. Most limits are named after their keys in the configuration.
//
// Counters live in the session store, so all nodes share them. Each counter is updated in one
// atomic operation, so that every concurrent caller is counted. If the store is unavailable, each
// node counts on its own. The key of a counter contains a digest of the account, network or API
// key, not its name.
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

// A Name names a limit. It is the key of the limit's rate in the section "limits" of the configuration,
// with these exceptions: LoginPerDevice has the rate of LoginPerAccount, each project sets its rate of
// Uploads, and the rates of Exports and AccountForms are fixed.
type Name string

// These are the names of the limits.
const (
	LoginPerAccount       Name = "login_per_account"        // failed passwords for an account, from unknown devices
	LoginPerDevice        Name = "login_per_device"         // failed passwords from a device that the account knows
	LoginPerNetwork       Name = "login_per_network"        // failed passwords from a network
	LoginPerRange         Name = "login_per_range"          // failed passwords from a range of networks, see [Range]
	AuthorizePerNetwork   Name = "authorize_per_network"    // authorization requests from a network
	TokenPerClient        Name = "token_per_client"         // token requests for a client from a network
	RegisterPerNetwork    Name = "register_per_network"     // accounts and clients registered from a network
	MailPerAddress        Name = "mail_per_address"         // emails to an address requested without signing in
	MailPerNetwork        Name = "mail_per_network"         // emails to any address requested from a network
	APIRequests           Name = "api_requests"             // API requests with a key, a client or a token
	APIWrites             Name = "api_writes"               // API requests that change something
	Messages              Name = "messages"                 // messages of a subscriber or guest
	EmbedMessages         Name = "embed_messages"           // messages of guests with tokens of an embed key
	SIPPerUser            Name = "sip_per_user"             // wrong SIP credentials for a username, from a network
	SIPPerNetwork         Name = "sip_per_network"          // wrong SIP credentials from a network
	MediaMissesPerNetwork Name = "media_misses_per_network" // requests for unknown recordings from a network
	Uploads               Name = "uploads"                  // uploads of recordings to a project
	Exports               Name = "exports"                  // downloads of a subscriber's own data
	AccountForms          Name = "account_forms"            // forms of a subscriber that the server remembers
)

// Rates holds the rate of each limit. Limits that have no rate, or whose rate has no Burst, are
// disabled.
type Rates map[Name]session.Rate

// Of returns the rate that allows n events per interval, in a burst or spread out.
// A rate of zero or fewer events disables the limit.
func Of(n int, interval time.Duration) session.Rate {
	if n <= 0 {
		return session.Rate{}
	}
	return session.Rate{Burst: n, Every: max(interval/time.Duration(n), time.Microsecond)}
}

// A Limiter enforces limits. Create one with [New]; a nil Limiter limits nothing. Its methods are
// safe for concurrent use.
type Limiter struct {
	store session.Store
	rates atomic.Pointer[Rates]
	meter session.Meter // counts while the store is unavailable
	seed  maphash.Seed  // seed of the hashes of callers

	mu     sync.Mutex
	shares map[caller]share
}

// New returns a Limiter that counts in store.
func New(store session.Store, rates Rates) *Limiter {
	l := &Limiter{store: store, seed: maphash.MakeSeed(), shares: make(map[caller]share)}
	l.Set(rates)
	return l
}

// Set replaces the rates. Events that were counted before still count.
func (l *Limiter) Set(rates Rates) {
	l.rates.Store(&rates)
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.shares)
}

// Take counts one event against the named limit. who names the caller, such as an account or a network.
// The count is exact: of any number of concurrent calls, only as many succeed as the limit allows. The
// others return problem.RateLimited with the time to wait, and are not counted.
func (l *Limiter) Take(ctx context.Context, name Name, who string) error {
	rate, ok := l.rate(name)
	if !ok {
		return nil
	}
	return refused(l.ask(ctx, keyOf(name, who), rate, 1))
}

// TakeOf is like Take, with a rate that the caller chooses.
func (l *Limiter) TakeOf(ctx context.Context, name Name, who string, rate session.Rate) error {
	if l == nil || rate.Burst <= 0 {
		return nil
	}
	return refused(l.ask(ctx, keyOf(name, who), rate, 1))
}

// Return undoes one Take, for an event that turned out not to count.
func (l *Limiter) Return(ctx context.Context, name Name, who string) {
	if rate, ok := l.rate(name); ok {
		_, _ = l.ask(context.WithoutCancel(ctx), keyOf(name, who), rate, -1) // if this fails, the event stays counted
	}
}

// Reset undoes every Take for who against the named limit.
func (l *Limiter) Reset(ctx context.Context, name Name, who string) error {
	if l == nil {
		return nil
	}
	return l.store.Delete(ctx, keyOf(name, who))
}

// A Count is an event to count for Who against the limit called Name.
type Count struct {
	Name Name
	Who  string
}

// TakeAll counts all of the events, or none. If one of them is refused, TakeAll returns that Count
// and the error from its Take.
func (l *Limiter) TakeAll(ctx context.Context, counts []Count) (over Count, err error) {
	for i, c := range counts {
		if err := l.Take(ctx, c.Name, c.Who); err != nil {
			l.ReturnAll(ctx, counts[:i])
			return c, err
		}
	}
	return Count{}, nil
}

// ReturnAll undoes one successful TakeAll of the same counts.
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

// keyOf returns the key of a counter. The key contains a digest of who, because who may be
// arbitrary text from a client.
func keyOf(name Name, who string) session.Key {
	return session.Key{Kind: "limit-" + string(name), ID: session.Digest(who)}
}

// ask takes n events from the store, or from this process's counts if the store fails. If the
// events are refused, ask returns how long to wait. It returns an error only if ctx is done.
func (l *Limiter) ask(ctx context.Context, key session.Key, rate session.Rate, n int) (time.Duration, error) {
	wait, err := l.store.Allow(ctx, key, rate, n)
	if err == nil {
		return wait, nil
	}
	if canceled := ctx.Err(); canceled != nil {
		return 0, canceled
	}
	return l.meter.Allow(key, rate, n), nil
}

// refused converts a result of ask to an error: err, if it is not nil, or the error for a caller that must
// wait, if wait is positive.
func refused(wait time.Duration, err error) error {
	if wait <= 0 || err != nil {
		return err
	}
	return &problem.Error{
		Kind:       problem.RateLimited,
		Code:       "rate_limit_exceeded",
		Message:    "too many requests; try again later",
		RetryAfter: wait,
	}
}
