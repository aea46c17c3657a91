package calls

import (
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Limits bound what one caller may cause. 0 means the default, a negative value no limit.
type Limits struct {
	PerHolder  int // legs of one subscriber, guest token or invite token; 10
	PerProject int // legs of one project; 1,000
	Ringing    int // calls that ring one subscriber at once; 3

	Ring time.Duration // how long a call rings; 1 minute
	Most time.Duration // how long a call may last; 4 hours
}

// These bound how long a client may be away.
const (
	comeBack  = 60 * time.Second // without a socket, for example while a laptop sleeps
	goneAfter = 15 * time.Second // without a socket and without media
	noMedia   = 30 * time.Second // without media, while the call is answered
)

// These bound how often one holder may dial.
const (
	dialRate  = 1.0 // a second
	dialBurst = 5.0
)

func (l Limits) orDefaults() Limits {
	for _, n := range []struct {
		limit    *int
		standard int
	}{{&l.PerHolder, 10}, {&l.PerProject, 1000}, {&l.Ringing, 3}} {
		switch {
		case *n.limit == 0:
			*n.limit = n.standard
		case *n.limit < 0:
			*n.limit = 1 << 30
		}
	}
	if l.Ring == 0 {
		l.Ring = time.Minute
	}
	if l.Most == 0 {
		l.Most = 4 * time.Hour
	}
	return l
}

// A holder counts what one caller does. It is guarded by Calls.mu.
type holder struct {
	legs, ringing int
	tokens        float64
	filled        time.Time
}

// holderOf returns the holder of a caller. c.mu is held.
func (c *Calls) holderOf(caller string) *holder {
	h := c.holders[caller]
	if h == nil {
		h = &holder{tokens: dialBurst, filled: time.Now()}
		c.holders[caller] = h
	}
	return h
}

// mayDial takes one call from the holder's rate.
func (h *holder) mayDial(now time.Time) bool {
	h.tokens = min(dialBurst, h.tokens+now.Sub(h.filled).Seconds()*dialRate)
	h.filled = now
	if h.tokens < 1 {
		return false
	}
	h.tokens--
	return true
}

// isIdle reports whether nothing is lost by forgetting the holder.
func (h *holder) isIdle(now time.Time) bool {
	return h.legs == 0 && h.ringing == 0 && now.Sub(h.filled).Seconds()*dialRate+h.tokens >= dialBurst
}

// admitCall returns an error if the holder of a token may not begin another call now.
func (c *Calls) admitCall(client Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, caller := time.Now(), client.Token.Caller()
	for name, h := range c.holders { // forget a few, so that the map does not grow
		if name != caller && h.isIdle(now) {
			delete(c.holders, name)
			break
		}
	}
	switch h := c.holderOf(caller); {
	case c.draining:
		return &problem.Error{Kind: problem.Unavailable, Code: "temporarily_unavailable",
			Message: "the server is stopping; dial again in a moment", RetryAfter: time.Second}
	case h.legs >= c.limits.PerHolder:
		return tooMany("too many calls with this token")
	case c.projects[client.Token.ProjectID] >= c.limits.PerProject:
		return tooMany("too many calls in this project")
	case !h.mayDial(now):
		return tooMany("too many calls were begun with this token within seconds")
	}
	return nil
}

func tooMany(message string) error {
	return &problem.Error{Kind: problem.RateLimited, Code: "too_many_calls", Message: message, RetryAfter: time.Second}
}
