package oidc

import (
	"math"
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// throttled sets Retry-After and returns a message that says when the person may try again. The
// message contains how long to wait, and until which time in UTC, because the person's time zone is
// unknown.
func (pg *pages) throttled(w http.ResponseWriter, r *http.Request, p *problem.Error) string {
	web.RetryAfter(w, p)
	until := pg.Now().Add(p.RetryAfter + time.Minute - time.Nanosecond).UTC().Truncate(time.Minute)
	return pg.words(r).Say("login.throttled", "Time", until.Format("15:04"), "Count", minutesIn(p.RetryAfter))
}

// minutesIn returns how many minutes a person must wait, rounded up.
func minutesIn(wait time.Duration) int { return max(1, int(math.Ceil(wait.Minutes()))) }
