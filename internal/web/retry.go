package web

import (
	"math"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/internal/problem"
)

// RetryAfter sets the header Retry-After in whole seconds (RFC 9110, section 10.2.3) if p has a
// time to wait, or if its kind is Unavailable or RateLimited. The header is at least 1.
func RetryAfter(w http.ResponseWriter, p *problem.Error) {
	if p.RetryAfter > 0 || p.Kind == problem.Unavailable || p.Kind == problem.RateLimited {
		seconds := max(1, int(math.Ceil(p.RetryAfter.Seconds())))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
}
