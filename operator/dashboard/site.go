package dashboard

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// A site contains what all groups of pages share: the services that requests use, the operator's
// session, and the frame around each page.
type site struct {
	Operators     *operator.Operators
	Fabric        *fabric.Fabric
	Factors       *factor.Factors // nil if second factors are not supported
	RequireFactor []operator.Role
	NoCalls       bool // whether the server carries no calls for its clients
	NoRecordings  bool // whether the server keeps no recordings
	PublicURL     string
	AuthURL       string
	Log           *slog.Logger
	Now           func() time.Time

	origin  string
	cookies web.Cookies
	links   []navLink
	streams streams
	forms   *once.Guard
	clicks  *once.Guard // remembers no forms, only the latest responses; see site.serve
}

// handle returns a handler that checks access to a route and serves it.
func (a *site) handle(rt route) http.Handler {
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r, route: rt, now: a.Now()}
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		if err := a.admit(v); err != nil {
			a.refuse(v, err)
			return
		}
		if err := a.serve(v); err != nil {
			a.fail(v, err)
		}
	})
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(&visit{w: w, r: r, now: a.Now()}, errCrossSite)
	})
	return web.SameOrigin(a.origin, serve, refuse)
}

// page responds with a page of the dashboard.
func (a *site) page(v *visit, status int, title, name string, data any) error {
	return a.pageWith(v, templates.Options{Status: status}, title, name, data)
}

func (a *site) pageWith(v *visit, o templates.Options, title, name string, data any) error {
	o.Scripts = true
	p := templates.Dashboard{
		Page: name, Data: data,
		Frame: templates.Frame{Title: title, Words: v.words(), Theme: web.Theme(v.r), FormToken: a.formToken(v),
			Now: a.Now()}, // rows may be newer than the request
	}
	p.Frame.Unrepeatable = isShownOnce(v, o.Status)
	if v.operator.ID != "" {
		o.Connect = []string{"'self'"} // for the search, which is on each page
		if err := a.frame(v, &p.Frame); err != nil {
			return err
		}
	}
	return templates.Write(v.w, p, o)
}

// isShownOnce reports whether the response to v with this status shows something that no other page shows.
// This is so if a form succeeds without a redirect, for example to show a new secret, or if a form
// contains a secret that the response shows again.
func isShownOnce(v *visit, status int) bool {
	return v.r.Method == http.MethodPost && (status == http.StatusOK || v.form.Get("secret") != "")
}

// An errorPage is the content of an error page.
type errorPage struct{ Text, RequestID string }

// fail responds to an error. If the operator must sign in or confirm their identity, fail redirects
// to the page for that, or keeps the submitted form. Otherwise it shows a page that describes the
// error and a remedy.
func (a *site) fail(v *visit, err error) {
	switch {
	case errors.Is(err, errSignIn) && v.operator.ID != "": // the second factor has already been presented
		_ = v.redirect(orFront(ownPath(cmp.Or(v.form.Get("next"), v.r.URL.Query().Get("next")))))
		return
	case a.keepUnsent(v, err), a.keepTyped(v, err):
		return
	case errors.Is(err, errSignIn):
		_ = v.redirect(Prefix + "/login" + nextOf(v.r)) // never fails
		return
	case errors.Is(err, errStale):
		_ = v.redirect(Prefix + "/confirm" + nextOf(v.r))
		return
	}

	status, title := http.StatusInternalServerError, "Something went wrong"
	text := "This is an error on the server. Go back and try again."
	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		web.LogInternal(v.r, a.Log, err)
	}
	if p != nil {
		status, title, text = describeProblem(p)
		web.RetryAfter(v.w, p)
	}

	shown := errorPage{text, web.RequestID(v.r.Context())}
	web.LogPage(v.r, a.Log, status, title, problem.Explain(err))
	if err := a.page(v, status, title, "error", shown); err != nil {
		web.LogInternal(v.r, a.Log, err)
		http.Error(v.w, "Something went wrong.", http.StatusInternalServerError)
	}
}

// describeProblem returns the status, title and text of the error page for a problem.
func describeProblem(p *problem.Error) (status int, title, text string) {
	text = sentence(p.Message)
	switch p.Kind {
	case problem.Forbidden, problem.Unauthenticated:
		return http.StatusForbidden, "Not allowed", text
	case problem.NotFound:
		return http.StatusNotFound, "Not found", "It does not exist, or you may not see it."
	case problem.Conflict:
		return http.StatusConflict, "Not possible right now", text
	case problem.RateLimited:
		return http.StatusTooManyRequests, "Too many tries", text
	case problem.Unavailable:
		return http.StatusServiceUnavailable, "The server is busy", "Wait a few seconds, then reload this page."
	case problem.Malformed, problem.Unsupported, problem.TooLarge:
		return http.StatusBadRequest, "The request could not be read", text
	}
	return http.StatusUnprocessableEntity, "Not possible", text
}

// describeFaults describes the errors in a form. fields are the ids of inputs. An error about one of them
// leads to that input. ok is false for errors that the operator cannot correct in the form.
func describeFaults(err error, fields ...string) (all faults, ok bool) {
	for _, p := range problem.All(err) {
		if p.Kind != problem.Invalid && p.Kind != problem.Conflict {
			return nil, false
		}
		at := fault{Text: sentence(p.Message), Short: shortFault("Password", p)}
		if rest, ok := strings.CutPrefix(p.Message, "password "); ok {
			at.Text = words.Sentences("Password", lowerSentence(rest)) // translated as in other forms
		}
		if slices.Contains(fields, p.Param) {
			at.ID = p.Param
		}
		all = append(all, at)
	}
	return all, len(all) > 0
}
