package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// pages is what all parts that show pages share.
type pages struct {
	*core
	origin   string // of authURL
	browsers *web.Browsers
	cookies  web.Cookies
	mailbox  bool
}

func newPages(shared *core, c Config, public *url.URL) *pages {
	cookies := web.Cookies{PublicURL: public}
	return &pages{
		core: shared, origin: public.Scheme + "://" + public.Host, cookies: cookies, mailbox: c.Mailbox,
		browsers: &web.Browsers{
			Store: c.Sessions, Rows: c.Browsers, Cookies: cookies, Now: c.Provider.Now,
			Idle: func() time.Duration { return c.Provider.Lifetimes().BrowserIdle },
		},
	}
}

// A shown is an error that is a page of its own, with the keys of its sentences.
type shown struct {
	status int
	page   templates.Error
	cause  string // for the log, and for who develops on this machine, in English; none of it is what was sent
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

// notProven is the one answer where the client or its redirect URI is not known: it
// redirects nowhere, and says which to the log alone, and to who develops on this machine.
func notProven(cause string) error {
	return &shown{status: http.StatusBadRequest,
		page: templates.Error{Title: "error.app", Text: "error.app-text", Advice: "error.app-advice"}, cause: cause}
}

// noClient is the cause where a client_id is nobody's.
const noClient = "client_id is that of no client; `selvage client list` shows those there are"

// known names the registered URIs of a client, behind its id.
func known(uris []string) string {
	if len(uris) == 0 {
		return ": it has none"
	}
	return ": " + strings.Join(uris, " ")
}

// errStale is the answer to a page whose authorization request is over, or was
// begun in another browser.
var errStale = pageError(http.StatusBadRequest, "error.over", "error.over-text")

// errCrossSite is the answer to a form that another site sent.
var errCrossSite = pageError(http.StatusForbidden, "error.cross", "error.cross-text")

// sameOrigin lets forms through that our own pages sent.
func (pg *pages) sameOrigin(next http.Handler) http.Handler {
	return web.SameOrigin(pg.origin, next,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pg.writePage(w, r, errCrossSite) }))
}

// recent is how long after its login somebody may change how they sign in.
const recentFor = 10 * time.Minute

func (pg *pages) isRecent(s idp.Login) bool { return pg.Now().Sub(s.AuthTime) <= recentFor }

// write answers with a page, shown as the browser of r wants it.
func (pg *pages) write(w http.ResponseWriter, r *http.Request, p templates.Page, o templates.Options) error {
	o.View = pg.view(r)
	if _, leaves := p.(templates.Return); leaves {
		o.View.Back = "" // its fields are for the app
	}
	return templates.Write(w, p, o)
}

// writePage tells an error as a page.
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
		return &shown{status: http.StatusInternalServerError,
			page: templates.Error{Title: "error.internal", Text: "error.internal-text"}}
	}
	web.RetryAfter(w, p)
	status := http.StatusServiceUnavailable
	if p.Kind == problem.RateLimited {
		status = http.StatusTooManyRequests
	}
	return &shown{status: status, page: templates.Error{Title: "error.busy", Text: "error.busy-text"}}
}
