package oidc

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

// A shown is an error that is a page of its own.
type shown struct {
	status int
	page   templates.Error
}

func (s *shown) Error() string { return s.page.Title + ": " + s.page.Text }

func pageError(status int, title, text string) error {
	return &shown{status, templates.Error{Title: title, Text: text}}
}

func badRequest(text string) error {
	return pageError(http.StatusBadRequest, "The request cannot be read", text)
}

// errNotProven is the one answer where the client or its redirect URI is not
// known: it says nothing about which, and redirects nowhere.
var errNotProven = &shown{http.StatusBadRequest, templates.Error{
	Title:  "The app cannot sign you in here",
	Text:   "The app is not known here, or its redirect address is not registered.",
	Advice: "If you make this app: client_id and redirect_uri must each be sent once, and redirect_uri must be, character for character, one of those registered for the client.",
}}

// errStale is the answer to a page whose authorization request is over, or was
// begun in another browser.
var errStale = &shown{http.StatusBadRequest, templates.Error{
	Title: "This sign-in is over",
	Text:  "It took too long, was finished before, or was begun in another browser. Go back to the app and sign in again.",
}}

// errCrossSite is the answer to a form that another site sent.
var errCrossSite = &shown{http.StatusForbidden, templates.Error{
	Title: "The form came from another site",
	Text:  "Nothing was changed. Go back to the app and sign in again.",
}}

// sameOrigin lets forms through that our own pages sent.
func (a *API) sameOrigin(next http.Handler) http.Handler {
	return web.SameOrigin(a.origin, next, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.writePage(w, r, errCrossSite) }))
}

// write answers with a page, shown as the browser of r wants it.
func (a *API) write(w http.ResponseWriter, r *http.Request, p templates.Page, o templates.Options) error {
	o.View = templates.View{Theme: web.Theme(r)}
	return templates.Write(w, p, o)
}

// writePage tells an error as a page.
func (a *API) writePage(w http.ResponseWriter, r *http.Request, err error) {
	var s *shown
	if !errors.As(err, &s) {
		s = a.pageOf(w, r, err)
	}
	page := s.page
	page.RequestID = web.RequestID(r.Context())
	web.LogPage(r, a.log, s.status, page.Title)
	if err := a.write(w, r, page, templates.Options{Status: s.status}); err != nil {
		web.LogInternal(r, a.log, err)
	}
}

func (a *API) pageOf(w http.ResponseWriter, r *http.Request, err error) *shown {
	p := problem.First(err)
	if p == nil || p.Kind != problem.RateLimited {
		web.LogInternal(r, a.log, err)
	}
	if p == nil || p.Kind != problem.Unavailable && p.Kind != problem.RateLimited {
		return &shown{http.StatusInternalServerError, templates.Error{Title: "Something went wrong here", Text: "It is not your fault. Go back to the app and try again."}}
	}
	web.RetryAfter(w, p)
	status := http.StatusServiceUnavailable
	if p.Kind == problem.RateLimited {
		status = http.StatusTooManyRequests
	}
	return &shown{status, templates.Error{Title: "Too busy at the moment", Text: "Wait a few seconds, then reload this page."}}
}
