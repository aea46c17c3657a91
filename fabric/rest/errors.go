package rest

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// moreInfo is where every error of validation points to.
const moreInfo = "https://signalwire.com/docs/apis/error-codes"

// A plainError is the body of every error but those of validation.
type plainError struct {
	Error string `json:"error"`
}

type validationErrors struct {
	Errors []validationError `json:"errors"`
}

type validationError struct {
	Type      string  `json:"type"`
	Code      string  `json:"code"`
	Message   string  `json:"message"`
	Attribute *string `json:"attribute"` // null where no parameter is at fault
	URL       string  `json:"url"`
}

// statuses of the kinds that are answered by their name alone.
var statuses = map[problem.Kind]int{
	problem.Malformed:       http.StatusBadRequest,
	problem.Unauthenticated: http.StatusUnauthorized,
	problem.Forbidden:       http.StatusForbidden,
	problem.NotFound:        http.StatusNotFound,
	problem.TooLarge:        http.StatusRequestEntityTooLarge,
	problem.Unsupported:     http.StatusUnsupportedMediaType,
	problem.NotAcceptable:   http.StatusNotAcceptable,
	problem.RateLimited:     http.StatusTooManyRequests,
	problem.Unavailable:     http.StatusServiceUnavailable,
}

// names are the texts that differ from http.StatusText.
var names = map[int]string{http.StatusRequestEntityTooLarge: "Payload Too Large"}

// fail answers a request with an error.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	first := problem.First(err)
	if first == nil || first.Kind == problem.Unavailable {
		web.LogInternal(r, a.log, err)
	}
	if first == nil {
		plain(w, http.StatusInternalServerError)
		return
	}
	if first.Kind == problem.Invalid || first.Kind == problem.Conflict {
		_ = web.JSON(w, http.StatusUnprocessableEntity, validation(problem.All(err))) // strings always marshal
		return
	}
	web.RetryAfter(w, first)
	plain(w, statuses[first.Kind])
}

func plain(w http.ResponseWriter, status int) {
	name := names[status]
	if name == "" {
		name = http.StatusText(status)
	}
	_ = web.JSON(w, status, plainError{name}) // strings always marshal
}

func validation(all []*problem.Error) (body validationErrors) {
	for _, p := range all {
		e := validationError{Type: "validation_error", Code: p.Code, Message: p.Message, URL: moreInfo}
		if p.Param != "" {
			e.Attribute = &p.Param
		}
		body.Errors = append(body.Errors, e)
	}
	return body
}

// notAllowed serves the methods that a path has not.
func notAllowed(allow string) web.Handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		plain(w, http.StatusMethodNotAllowed)
		return nil
	}
}

// also adds to the faults of reading a body what is wrong with the members that
// could be read, so that a client learns everything at once.
func also(reading, values error) error {
	if !errors.Is(reading, problem.Invalid) {
		return reading
	}
	seen := make(map[string]bool)
	for _, p := range problem.All(reading) {
		seen[p.Param] = true
	}
	for _, p := range problem.All(values) {
		if !seen[p.Param] {
			reading = errors.Join(reading, p)
		}
	}
	return reading
}

// respelled returns the errors with a parameter's name as this body spells it. What
// is about no parameter stays as it is, with its cause.
func respelled(err error, from, to string) error {
	if !slices.ContainsFunc(problem.All(err), func(p *problem.Error) bool { return p.Param == from }) {
		return err
	}
	var all []error
	for _, p := range problem.All(err) {
		if p.Param == from {
			q := *p
			q.Param, q.Message = to, strings.ReplaceAll(p.Message, from, to)
			p = &q
		}
		all = append(all, p)
	}
	return errors.Join(all...)
}

// iso writes a time as the API does.
func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }
