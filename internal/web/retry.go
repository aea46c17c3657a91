package web

import (
	"math"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/internal/problem"
)

// RetryAfter tells when to come back, if a problem says so or is one that passes, in
// whole seconds (RFC 9110, section 10.2.3).
func RetryAfter(w http.ResponseWriter, p *problem.Error) {
	if p.RetryAfter > 0 || p.Kind == problem.Unavailable || p.Kind == problem.RateLimited {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(p.RetryAfter.Seconds())))))
	}
}
