package deliver

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// delays are how long to wait after each attempt; after one more a body is a dead
// letter. Together they are most of a day.
var delays = [...]time.Duration{
	10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 3 * time.Hour,
	6 * time.Hour, 12 * time.Hour,
}

// longestDelay bounds what a receiver may ask for by Retry-After.
const longestDelay = 12 * time.Hour

// A receiver rests after so many failures in a row, then longer with each, so that
// one which is down is not asked for every body that waits.
const (
	restAfter   = 3
	firstRest   = 10 * time.Second
	longestRest = 10 * time.Minute
)

// rest returns how long a receiver rests after failures in a row.
func rest(failures int) time.Duration {
	if failures < restAfter {
		return 0
	}
	return min(firstRest<<min(failures-restAfter, 10), longestRest)
}

// delay returns how long to wait after an attempt, the first being 1, of which there
// were so many: a fifth more or less, so that bodies which failed together do not come
// back together. ok is false after the last.
func delay(attempts int, asked time.Duration) (d time.Duration, ok bool) {
	if attempts > len(delays) {
		return 0, false
	}
	d = delays[attempts-1]
	d += time.Duration((rand.Float64()*2 - 1) * float64(d) / 5)
	return max(d, min(asked, longestDelay)), true
}

// Taken is the Verdict on webhooks: any 2xx has taken a body, and who says Gone wants
// it never again.
func Taken(status int) State {
	switch {
	case status >= 200 && status < 300:
		return Delivered
	case status == http.StatusGone:
		return Dead
	}
	return Pending
}

// settled says what becomes of a job after an attempt.
func (v *visit) settled(j Job, a answer, now time.Time) Result {
	r := Result{ReceiverID: v.receiver.ID, JobID: j.ID, Queued: j.Queued, State: v.d.c.Verdict(a.status),
		Attempts: j.Attempts + 1, Status: a.status, Error: a.err, Ended: now}
	if r.State != Pending {
		return r
	}
	wait, again := delay(r.Attempts, a.retryAfter)
	if !again {
		r.State = Dead
		return r
	}
	r.Due, r.Ended = now.Add(wait), time.Time{}
	return r
}
