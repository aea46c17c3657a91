package oidc

import (
	"math"
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// throttled says when a password may be tried again, and tells it to programs too. The
// time is that of no place, since we do not know where people are; how long it takes
// is the same everywhere.
func (pg *pages) throttled(w http.ResponseWriter, r *http.Request, p *problem.Error) string {
	web.RetryAfter(w, p)
	until := pg.Now().Add(p.RetryAfter + time.Minute - time.Nanosecond).UTC().Truncate(time.Minute)
	minutes := max(1, int(math.Ceil(p.RetryAfter.Minutes())))
	return pg.words(r).Say("login.throttled", "Time", until.Format("15:04"), "Count", minutes)
}
