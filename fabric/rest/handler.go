package rest

import (
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// A handler serves an authenticated request. C is the type of the credentials: fabric.Issuer for a
// backend that acts for its project, or fabric.Token for the holder of a fabric token.
type handler[C any] func(w http.ResponseWriter, r *http.Request, by C) error

// respondOK returns a handler that calls do and responds with the result, formatted by show.
func respondOK[C, T, U any](do func(*http.Request, C) (T, error), show func(T) U) handler[C] {
	return answer(http.StatusOK, do, show)
}

// created is like respondOK, with status 201.
func created[C, T, U any](do func(*http.Request, C) (T, error), show func(T) U) handler[C] {
	return answer(http.StatusCreated, do, show)
}

// accepted is like respondOK, with status 202, for work that is only queued.
func accepted[C, T, U any](do func(*http.Request, C) (T, error), show func(T) U) handler[C] {
	return answer(http.StatusAccepted, do, show)
}

func answer[C, T, U any](status int, do func(*http.Request, C) (T, error), show func(T) U) handler[C] {
	return func(w http.ResponseWriter, r *http.Request, by C) error {
		v, err := do(r, by)
		if err != nil {
			return err
		}
		return web.JSON(w, status, show(v))
	}
}

// same is a show function for values that are already in the format of the API.
func same[T any](v T) T { return v }

// noContent returns a handler that responds with 204 if do succeeds.
func noContent[C any](do func(*http.Request, C) error) handler[C] {
	return func(w http.ResponseWriter, r *http.Request, by C) error {
		if err := do(r, by); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// respondPage returns a handler that gets the requested page from find and responds with it.
func respondPage[C, T, U any](
	find func(*http.Request, C, page.Query) (page.Page[T], error), show func(T) U,
) handler[C] {
	return func(w http.ResponseWriter, r *http.Request, by C) error {
		return paged(w, r, func(q page.Query) (page.Page[T], error) { return find(r, by, q) }, show)
	}
}

// filters are the query parameters that filter or sort a list. Links to other pages keep them.
var filters = []string{"type", "display_name", "name", "sort_by", "sort_order", "state", "action", "outcome",
	"actor_id", "target_id", "since", "until", "room_id"}

// paged responds with the requested page of a list.
func paged[T, U any](
	w http.ResponseWriter, r *http.Request, list func(page.Query) (page.Page[T], error), show func(T) U,
) error {
	asked, err := web.ReadPage(r.URL.Query())
	if err != nil {
		return err
	}
	p, err := list(asked.Query)
	if err != nil {
		return err
	}
	return web.AnswerPage(w, r, asked, p, show, filters...)
}

// iso formats t in the format of this API: RFC 3339, in UTC.
func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func isoOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := iso(t)
	return &text
}
