package rest

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// moreInfo is the URL that every validation error contains.
const moreInfo = "https://signalwire.com/docs/apis/error-codes"

// A plainError is the body of every error except validation errors.
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
	Attribute *string `json:"attribute"` // null if the error is not about a parameter
	URL       string  `json:"url"`
}

// statuses maps kinds of problems to their statuses. The response to such a problem contains only the
// name of the status.
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

// names contains the status texts that differ from http.StatusText.
var names = map[int]string{http.StatusRequestEntityTooLarge: "Payload Too Large"}

// fail writes the response for err. It logs unexpected errors and unavailable backends.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	first := problem.First(err)
	if first == nil || first.Kind == problem.Unavailable {
		web.LogInternal(r, a.log, err)
	}
	if first == nil {
		plain(w, http.StatusInternalServerError)
		return
	}

	web.Refuse(r.Context(), err)
	if first.Kind == problem.Invalid || first.Kind == problem.Conflict {
		_ = web.JSON(w, http.StatusUnprocessableEntity, validation(problem.All(err))) // never fails
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
	_ = web.JSON(w, status, plainError{name}) // never fails
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

// notAllowed returns a handler for the methods that a path does not support.
func notAllowed(allow string) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		web.Refuse(r.Context(), problem.New(problem.Unsupported, "method_not_allowed",
			"this path does not take the method"))
		w.Header().Set("Allow", allow)
		plain(w, http.StatusMethodNotAllowed)
		return nil
	}
}

// joinFaults joins the errors from reading a body with the errors in its values, so that the client
// sees all of them together. It skips errors in values if reading already reports an error about the
// same member. If reading is not a problem.Invalid, joinFaults returns only reading.
func joinFaults(reading, values error) error {
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

// respelled returns err with a parameter renamed. from is the parameter's name in err, and to is
// its name in this API. If no error is about the parameter, respelled returns err unchanged.
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

// faults joins the errors in a body. It keeps only the first error for each member.
func faults(found ...error) (all error) {
	for _, err := range found {
		if all == nil {
			all = err
		} else {
			all = joinFaults(all, err)
		}
	}
	return all
}
