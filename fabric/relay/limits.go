package relay

import (
	"net/http"
	"time"
)

// Limits limit the cost of sockets. 0 means the default, which is given after the semicolon. A
// negative value means no limit.
type Limits struct {
	PerCaller  int // sockets per subscriber, guest token or invite token on this node; 100
	PerNetwork int // unauthenticated sockets per IPv4 address or IPv6 /64; 200

	Authenticate time.Duration // how long a socket may stay unauthenticated; 10 s
	Ping         time.Duration // how often clients are pinged; 10 s, because SDKs wait 15 s
	Silence      time.Duration // how long a client may send nothing; 45 s
}

// never is longer than the lifetime of any socket.
const never = 10 * 365 * 24 * time.Hour

// many is more than the number of sockets that a node can have.
const many = 1 << 30

// orDefaults replaces 0 by the defaults, and negative values by limits that are never reached.
func (l Limits) orDefaults() Limits {
	return Limits{
		PerCaller:    orDefault(l.PerCaller, 100, many),
		PerNetwork:   orDefault(l.PerNetwork, 200, many),
		Authenticate: orDefault(l.Authenticate, 10*time.Second, never),
		Ping:         orDefault(l.Ping, 10*time.Second, never),
		Silence:      orDefault(l.Silence, 45*time.Second, never),
	}
}

// orDefault returns a limit, its default if the limit is 0, or unlimited if it is negative.
func orDefault[T int | time.Duration](limit, standard, unlimited T) T {
	switch {
	case limit == 0:
		return standard
	case limit < 0:
		return unlimited
	}
	return limit
}

// The maximum sizes of a client's messages in bytes. The longest messages are offers with a media
// description (SDP). Before authentication, a client only has to send its token.
const (
	maxMessage = 64 << 10
	maxConnect = 8 << 10
)

// The limits on the rate of a client's messages. Reading pauses while a client exceeds them.
const (
	messageRate  = 20.0 // per second
	messageBurst = 100.0
)

// A bucket is the token bucket that limits the rate of a client's messages.
type bucket struct {
	tokens float64
	filled time.Time
}

// take counts one message and returns how long to wait before it may be handled.
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

// admit counts a new unauthenticated socket from a network. It returns http.StatusOK or, if the
// socket must be refused, the status of the response.
func (r *Relay) admit(from string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopping:
		return http.StatusServiceUnavailable
	case r.unauthenticated[from] >= r.limits.PerNetwork:
		return http.StatusTooManyRequests
	}
	r.unauthenticated[from]++
	return http.StatusOK
}

// release undoes admit, for a socket that has authenticated or is closed.
func (r *Relay) release(from string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	decrement(r.unauthenticated, from)
}

// countCaller counts a socket for its new caller instead of its previous caller. before is the
// previous caller, or "". If the new caller has too many sockets, countCaller returns false and
// changes nothing.
func (r *Relay) countCaller(caller, before string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if caller != before && r.callers[caller] >= r.limits.PerCaller {
		return false
	}
	r.callers[caller]++
	decrement(r.callers, before)
	return true
}

// uncountCaller undoes countCaller when a socket is closed.
func (r *Relay) uncountCaller(caller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	decrement(r.callers, caller)
}

// decrement lowers a counter by one and deletes it at zero.
func decrement(counters map[string]int, key string) {
	if counters[key]--; counters[key] <= 0 {
		delete(counters, key)
	}
}
