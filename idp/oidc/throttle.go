package oidc

import (
	"math"
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// throttled returns the message that says when a password may be tried again, and sets
// Retry-After. The time is in UTC, since we do not know where people are; the wait is the
// same everywhere.
func (pg *pages) throttled(w http.ResponseWriter, r *http.Request, p *problem.Error) string {
	web.RetryAfter(w, p)
	until := pg.Now().Add(p.RetryAfter + time.Minute - time.Nanosecond).UTC().Truncate(time.Minute)
	minutes := max(1, int(math.Ceil(p.RetryAfter.Minutes())))
	return pg.words(r).Say("login.throttled", "Time", until.Format("15:04"), "Count", minutes)
}
