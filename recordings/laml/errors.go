package laml

import (
	"net/http"
	"strconv"

	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// moreInfo is the URL of the page that explains the error codes.
const moreInfo = "https://signalwire.com/docs/compatibility-api/reference/errors"

// A lamlError is the body of every error response. Clients read all four members.
type lamlError struct {
	Code     int    `json:"code"`
	Message  string `json:"message"`
	MoreInfo string `json:"more_info"`
	Status   int    `json:"status"`
}

// statuses maps problem kinds to HTTP statuses.
var statuses = map[problem.Kind]int{
	problem.Malformed:       http.StatusBadRequest,
	problem.Invalid:         http.StatusBadRequest,
	problem.Unauthenticated: http.StatusUnauthorized,
	problem.Forbidden:       http.StatusForbidden,
	problem.NotFound:        http.StatusNotFound,
	problem.Conflict:        http.StatusConflict,
	problem.TooLarge:        http.StatusRequestEntityTooLarge,
	problem.Unsupported:     http.StatusUnsupportedMediaType,
	problem.NotAcceptable:   http.StatusNotAcceptable,
	problem.RateLimited:     http.StatusTooManyRequests,
	problem.Unavailable:     http.StatusServiceUnavailable,
}

// codeOf returns the LaML code for an HTTP status. Three statuses have special codes. A problem
// with its own numeric code does not use codeOf.
func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest:
		return 10000
	case http.StatusUnauthorized:
		return 20003
	case http.StatusInternalServerError:
		return 20504
	}
	return 20000 + status
}

// fail writes an error response. If err contains several problems, fail reports the first of them.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	web.Refuse(r.Context(), err)
	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		web.LogInternal(r, a.log, err)
	}
	if p == nil {
		p = problem.New("", "", "internal error")
	}

	status, known := statuses[p.Kind]
	if !known {
		status = http.StatusInternalServerError
	}
	if status == http.StatusUnauthorized {
		challenge := web.Describe(`Basic realm="selvage", charset="UTF-8"`, err)
		w.Header().Set("WWW-Authenticate", dpop.Challenge(r, err, challenge))
	}

	// LaML codes are numbers, so a problem with a numeric code keeps it.
	web.RetryAfter(w, p)
	code, err := strconv.Atoi(p.Code)
	if err != nil {
		code = codeOf(status)
	}
	a.write(w, status, code, p.Message)
}

// write writes an error response that must not be cached.
func (a *API) write(w http.ResponseWriter, status, code int, message string) {
	web.NoStore(w)
	// These types can always be encoded.
	_ = web.JSON(w, status, lamlError{Code: code, Message: message, MoreInfo: moreInfo, Status: status})
}
