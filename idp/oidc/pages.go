package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// pages holds the state that all handlers of pages share.
type pages struct {
	*core
	origin   string // origin of authURL
	browsers *web.Browsers
	cookies  web.Cookies
	mailbox  bool
	clicks   *once.Guard // see clickedOnce
}

func newPages(shared *core, c Config, public *url.URL) *pages {
	cookies := web.Cookies{PublicURL: public}
	clicks := once.Forms{Now: c.Provider.Now} // remembers no forms, only the latest responses
	return &pages{
		core:    shared,
		origin:  public.Scheme + "://" + public.Host,
		cookies: cookies,
		mailbox: c.Mailbox,
		clicks:  once.New(clicks, c.Log),
		browsers: &web.Browsers{
			Store:   c.Sessions,
			Rows:    c.Browsers,
			Cookies: cookies,
			Now:     c.Provider.Now,
			Idle:    func() time.Duration { return c.Provider.Lifetimes().BrowserIdle },
		},
	}
}

// A shown is an error that is shown on its own page. The texts of the page are message keys, or texts
// in the language of the page.
type shown struct {
	status int
	page   templates.Error
	cause  string // in English, for the log and for developers on this machine; contains nothing from the request
}

func (s *shown) Error() string {
	said := words.English()
	return said.Say(s.page.Title) + ": " + said.Say(s.page.Text)
}

func pageError(status int, title, text string) error {
	return &shown{status: status, page: templates.Error{Title: title, Text: text}}
}

func badRequest(text string) error {
	return pageError(http.StatusBadRequest, "error.unreadable", text)
}

// notProven returns the error for any unknown client or redirect URI. Its page does not redirect to
// the app. Only the log and developers on this machine see the cause.
func notProven(cause string) error {
	return &shown{
		status: http.StatusBadRequest,
		page:   templates.Error{Title: "error.app", Text: "error.app-text", Advice: "error.app-advice"},
		cause:  cause,
	}
}

// noClient is the cause in errors about an unknown client_id.
const noClient = "no client has this client_id; `selvage client list` lists all clients"

// listKnown returns the list of a client's registered URIs, which error messages append to the
// client's id.
func listKnown(uris []string) string {
	if len(uris) == 0 {
		return ": it has none"
	}
	return ": " + strings.Join(uris, " ")
}

// errStale is the error for a page whose authorization request has ended, or was started in another
// browser.
var errStale = pageError(http.StatusBadRequest, "error.over", "error.over-text")

// errCrossSite is the error for a form that another site sent.
var errCrossSite = pageError(http.StatusForbidden, "error.cross", "error.cross-text")

// sameOrigin passes forms to next only if a page of this server sent them.
func (pg *pages) sameOrigin(next http.Handler) http.Handler {
	return web.SameOrigin(pg.origin, next,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pg.writePage(w, r, errCrossSite) }))
}

// recentFor is how long after a login subscribers may change how they sign in.
const recentFor = 10 * time.Minute

// isRecent reports whether the subscriber has recently proved their identity for this login.
func (pg *pages) isRecent(s idp.Login) bool {
	return !s.Silent && pg.Now().Sub(s.AuthTime) <= recentFor
}

// write writes a page with the theme, language and branding for r.
func (pg *pages) write(w http.ResponseWriter, r *http.Request, p templates.Page, o templates.Options) error {
	o.View = pg.view(r)
	switch p := p.(type) {
	case templates.AccountPage:
		o.View.Back = "" // the page has another form for the language, which also changes the account's language
	case templates.RecoveryCodes:
		o.View.Back = "" // the codes are shown only once
	case templates.Return:
		o.View.Back = "" // the page cannot be loaded again: it contains the response to the app
	case templates.NewPassword:
		o.View.Back = linkAt(r, p.Token)
		pg.cookies.Flow(w, r) // sets a cookie by which clickedOnce recognizes the browser
	case templates.Confirm:
		pg.cookies.Flow(w, r)
	}
	return templates.Write(w, p, o)
}

// clickedOnce returns a handler for a form that uses something up, such as a link or a request. If a
// browser sends the form twice in a row, as it does after a double click, both requests get the same
// response. The browser shows the second one, which would otherwise be an error, because the form was
// already used. The second request has the same cookies as the first, because the browser has dropped
// the first response. Only the node that got the first request has the response.
func (pg *pages) clickedOnce(serve web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		form, err := postForm(w, r)
		if err != nil {
			return err
		}
		if pg.cookies.FlowOf(r) == "" {
			return serve(w, r) // without a cookie, other browsers could send the same request
		}
		cookies := strings.Join(r.Header.Values("Cookie"), "\n")
		return pg.clicks.Serve(w, r, once.Form{
			ID: strings.Join([]string{r.URL.RequestURI(), cookies, form.Encode()}, "\n"),
			Handle: func(w http.ResponseWriter, r *http.Request) (bool, error) {
				return true, serve(w, r)
			},
		})
	}
}

// writePage writes the page for an error.
func (pg *pages) writePage(w http.ResponseWriter, r *http.Request, err error) {
	if pg.restart(w, r, err) {
		return
	}

	var s *shown
	if !errors.As(err, &s) {
		s = pg.errorPage(w, r, err)
	}

	page, said := s.page, pg.words(r)
	page.Title, page.Text, page.Advice = said.Say(page.Title), said.Say(page.Text), said.Say(page.Advice)
	page.RequestID = web.RequestID(r.Context())
	if pg.mailbox && web.IsLocal(r) {
		page.Cause = s.cause
	}

	web.LogPage(r, pg.log, s.status, words.English().Say(s.page.Title), s.cause)
	if err := pg.write(w, r, page, templates.Options{Status: s.status}); err != nil {
		web.LogInternal(r, pg.log, err)
	}
}

func (pg *pages) errorPage(w http.ResponseWriter, r *http.Request, err error) *shown {
	p := problem.First(err)
	if p == nil || p.Kind != problem.RateLimited {
		web.LogInternal(r, pg.log, err)
	}
	if p == nil || p.Kind != problem.Unavailable && p.Kind != problem.RateLimited {
		return &shown{
			status: http.StatusInternalServerError,
			page:   templates.Error{Title: "error.internal", Text: "error.internal-text"},
		}
	}
	web.RetryAfter(w, p)
	busy := templates.Error{Title: "error.busy", Text: "error.busy-text"}
	if p.Kind != problem.RateLimited {
		return &shown{status: http.StatusServiceUnavailable, page: busy}
	}
	if p.RetryAfter > time.Minute {
		wait := pg.words(r).Say("error.throttled-text", "Count", minutesIn(p.RetryAfter))
		busy = templates.Error{Title: "error.throttled", Text: wait}
	}
	return &shown{status: http.StatusTooManyRequests, page: busy}
}
