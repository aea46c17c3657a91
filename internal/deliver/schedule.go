package deliver

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// delays are the waits after each failed attempt. If the attempt after the last wait also fails,
// the job becomes a dead letter. Together the delays span most of a day.
var delays = [...]time.Duration{
	10 * time.Second,
	30 * time.Second,
	2 * time.Minute,
	10 * time.Minute,
	time.Hour,
	3 * time.Hour,
	6 * time.Hour,
	12 * time.Hour,
}

// longestDelay is the longest Retry-After that is respected.
const longestDelay = 12 * time.Hour

// After restAfter consecutive failures, a receiver rests for firstRest. Each further failure makes
// the rest longer. Without rests, a receiver that is down would be tried for every waiting job.
const (
	restAfter   = 3
	firstRest   = 10 * time.Second
	longestRest = 10 * time.Minute
)

// rest returns how long a receiver rests after the given number of consecutive failures.
func rest(failures int) time.Duration {
	if failures < restAfter {
		return 0
	}
	return min(firstRest<<min(failures-restAfter, 10), longestRest)
}

// delay returns the wait after the given attempt, counted from 1. It adds or subtracts up to 20 %,
// so that jobs that failed together are not retried together. The parameter asked is the receiver's
// Retry-After. ok is false after the last attempt.
func delay(attempts int, asked time.Duration) (d time.Duration, ok bool) {
	if attempts > len(delays) {
		return 0, false
	}
	d = delays[attempts-1]
	d += time.Duration((rand.Float64()*2 - 1) * float64(d) / 5)
	return max(d, min(asked, longestDelay)), true
}

// Taken is the Verdict for webhooks: a 2xx status accepts a body, and 410 Gone refuses it for good.
// After any other status, or without a response, the job is retried.
func Taken(status int) State {
	switch {
	case status >= 200 && status < 300:
		return Delivered
	case status == http.StatusGone:
		return Dead
	}
	return Pending
}

// settled returns the outcome of an attempt at a job.
func (v *visit) settled(j Job, a answer, now time.Time) Result {
	r := Result{
		ReceiverID: v.receiver.ID,
		JobID:      j.ID,
		Queued:     j.Queued,
		State:      v.d.c.Verdict(a.status),
		Attempts:   j.Attempts + 1,
		Status:     a.status,
		Error:      a.err,
		Refused:    a.refused,
		Response:   a.body,
		Took:       a.took,
		Ended:      now,
	}
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
