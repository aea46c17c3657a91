package oidc

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// A shown is an error that is a page of its own, with the keys of its sentences.
type shown struct {
	status int
	page   templates.Error
}

func (s *shown) Error() string {
	said := words.English()
	return said.Say(s.page.Title) + ": " + said.Say(s.page.Text)
}

func pageError(status int, title, text string) error {
	return &shown{status, templates.Error{Title: title, Text: text}}
}

func badRequest(text string) error {
	return pageError(http.StatusBadRequest, "error.unreadable", text)
}

// errNotProven is the one answer where the client or its redirect URI is not
// known: it says nothing about which, and redirects nowhere.
var errNotProven = &shown{http.StatusBadRequest, templates.Error{
	Title:  "error.app",
	Text:   "error.app-text",
	Advice: "error.app-advice",
}}

// errStale is the answer to a page whose authorization request is over, or was
// begun in another browser.
var errStale = &shown{http.StatusBadRequest, templates.Error{
	Title: "error.over",
	Text:  "error.over-text",
}}

// errCrossSite is the answer to a form that another site sent.
var errCrossSite = &shown{http.StatusForbidden, templates.Error{
	Title: "error.cross",
	Text:  "error.cross-text",
}}

// sameOrigin lets forms through that our own pages sent.
func (a *API) sameOrigin(next http.Handler) http.Handler {
	return web.SameOrigin(a.origin, next, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.writePage(w, r, errCrossSite) }))
}

// write answers with a page, shown as the browser of r wants it.
func (a *API) write(w http.ResponseWriter, r *http.Request, p templates.Page, o templates.Options) error {
	o.View = a.view(r)
	if _, leaves := p.(templates.Return); leaves {
		o.View.Back = "" // its fields are for the app
	}
	return templates.Write(w, p, o)
}

// writePage tells an error as a page.
func (a *API) writePage(w http.ResponseWriter, r *http.Request, err error) {
	if a.beginAgain(w, r, err) {
		return
	}
	var s *shown
	if !errors.As(err, &s) {
		s = a.pageOf(w, r, err)
	}
	page, said := s.page, a.words(r)
	page.Title, page.Text, page.Advice = said.Say(page.Title), said.Say(page.Text), said.Say(page.Advice)
	page.RequestID = web.RequestID(r.Context())
	web.LogPage(r, a.log, s.status, words.English().Say(s.page.Title))
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
		return &shown{http.StatusInternalServerError, templates.Error{Title: "error.internal", Text: "error.internal-text"}}
	}
	web.RetryAfter(w, p)
	status := http.StatusServiceUnavailable
	if p.Kind == problem.RateLimited {
		status = http.StatusTooManyRequests
	}
	return &shown{status, templates.Error{Title: "error.busy", Text: "error.busy-text"}}
}
