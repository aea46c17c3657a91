package relay

import (
	"net/http"
	"time"
)

// Limits bound what sockets may cost. 0 is the default, less than 0 no limit.
type Limits struct {
	PerCaller  int // sockets of a subscriber, or with the same guest or invite token, on this node; 100
	PerNetwork int // sockets of an IPv4 address or IPv6 /64 that have not authenticated; 200

	Authenticate time.Duration // how long a socket may be open without having authenticated; 10 s
	Ping         time.Duration // how often a client is asked whether it is there; 10 s, as SDKs give up after 15
	Silence      time.Duration // how long a client may say nothing; 45 s
}

// never is longer than a socket lives.
const never = 10 * 365 * 24 * time.Hour

func (l Limits) orDefaults() Limits {
	const many = 1 << 30
	for _, n := range []struct {
		limit    *int
		standard int
	}{{&l.PerCaller, 100}, {&l.PerNetwork, 200}} {
		switch {
		case *n.limit == 0:
			*n.limit = n.standard
		case *n.limit < 0:
			*n.limit = many
		}
	}
	for _, d := range []struct {
		limit    *time.Duration
		standard time.Duration
	}{{&l.Authenticate, 10 * time.Second}, {&l.Ping, 10 * time.Second}, {&l.Silence, 45 * time.Second}} {
		switch {
		case *d.limit == 0:
			*d.limit = d.standard
		case *d.limit < 0:
			*d.limit = never
		}
	}
	return l
}

// The size of a message from a client: a description of media (SDP) in an offer
// is the longest. Who has not authenticated has a token to say.
const (
	maxMessage = 64 << 10
	maxConnect = 8 << 10
)

// The rate of messages from a client. Who is faster is read later.
const (
	messageRate  = 20.0 // a second
	messageBurst = 100.0
)

// A bucket holds the messages that a client may send now.
type bucket struct {
	tokens float64
	filled time.Time
}

// take takes a message out, and tells how long to wait until it was there.
func (b *bucket) take(now time.Time) time.Duration {
	if b.filled.IsZero() {
		b.tokens = messageBurst
	} else {
		b.tokens = min(messageBurst, b.tokens+now.Sub(b.filled).Seconds()*messageRate)
	}
	b.filled = now
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / messageRate * float64(time.Second))
}

// admit counts a socket to be, and gives the status of a refusal.
func (r *Relay) admit(from string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopping:
		return http.StatusServiceUnavailable
	case r.strangers[from] >= r.limits.PerNetwork:
		return http.StatusTooManyRequests
	}
	r.strangers[from]++
	return http.StatusOK
}

// release counts a socket no more that was admitted: it has authenticated, or is
// gone.
func (r *Relay) release(from string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	less(r.strangers, from)
}

// enter counts a socket for a caller, unless it has too many. It leaves the one
// before, which may be "".
func (r *Relay) enter(caller, before string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if caller != before && r.callers[caller] >= r.limits.PerCaller {
		return false
	}
	r.callers[caller]++
	less(r.callers, before)
	return true
}

// leave counts a socket of a caller no more.
func (r *Relay) leave(caller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	less(r.callers, caller)
}

// less counts one less, and forgets a counter that is 0.
func less(counters map[string]int, key string) {
	if counters[key]--; counters[key] <= 0 {
		delete(counters, key)
	}
}
