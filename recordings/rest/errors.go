package rest

import (
	"net/http"
	"strconv"

	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// statuses maps problem kinds to HTTP statuses.
var statuses = map[problem.Kind]int{
	problem.Malformed:       http.StatusBadRequest,
	problem.Invalid:         http.StatusUnprocessableEntity,
	problem.Unauthenticated: http.StatusUnauthorized,
	problem.Forbidden:       http.StatusForbidden,
	problem.NotFound:        http.StatusNotFound,
	problem.Conflict:        http.StatusConflict,
	problem.TooLarge:        http.StatusRequestEntityTooLarge,
	problem.Unsupported:     http.StatusUnsupportedMediaType,
	problem.RateLimited:     http.StatusTooManyRequests,
	problem.Unavailable:     http.StatusServiceUnavailable,
}

// A fault is one entry in the body of a 422 response. Its status and code are strings.
type fault struct {
	Detail string `json:"detail"`
	Status string `json:"status"`
	Title  string `json:"title"`
	Code   string `json:"code"`
}

// fail writes an error response. A 422 response lists all faults. Other responses contain only the
// status text.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	web.Refuse(r.Context(), err)
	all := problem.All(err)
	status := http.StatusInternalServerError
	if len(all) > 0 {
		if known, ok := statuses[all[0].Kind]; ok {
			status = known
		}
		web.RetryAfter(w, all[0])
	}

	if status == http.StatusInternalServerError || status == http.StatusServiceUnavailable {
		web.LogInternal(r, a.c.Log, err)
	}
	if status == http.StatusUnauthorized {
		challenge := web.Describe(`Basic realm="selvage", charset="UTF-8"`, err)
		w.Header().Set("WWW-Authenticate", dpop.Challenge(r, err, challenge))
	}

	web.NoStore(w)
	if status != http.StatusUnprocessableEntity {
		_ = web.JSON(w, status, map[string]string{"error": http.StatusText(status)}) // never fails
		return
	}

	faults := make([]fault, len(all))
	for i, p := range all {
		faults[i] = fault{Detail: p.Message, Status: strconv.Itoa(status), Title: "Invalid parameter", Code: p.Code}
	}
	_ = web.JSON(w, status, map[string][]fault{"errors": faults}) // never fails
}
