package oidc

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// throttled says when a password may be tried again, and tells it to programs too. The
// time is that of no place, since we do not know where people are; how long it takes
// is the same everywhere.
func (a *API) throttled(w http.ResponseWriter, p *problem.Error) string {
	web.RetryAfter(w, p)
	until := a.Now().Add(p.RetryAfter + time.Minute - time.Nanosecond).UTC().Truncate(time.Minute)
	minutes, unit := int(math.Ceil(p.RetryAfter.Minutes())), "minutes"
	if minutes <= 1 {
		minutes, unit = 1, "minute"
	}
	return fmt.Sprintf("Too many tries. Wait until %s UTC (%d %s), or reset your password.", until.Format("15:04"), minutes, unit)
}
