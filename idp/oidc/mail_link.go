package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// linkPages serves the pages to which links in emails lead, and the page for requesting a link.
type linkPages struct {
	*pages
	logins *browserLogins
	asks   *once.Guard // the forms that request an email
}

// asksKept is how long a form that requests an email is remembered, so that a double click sends only
// one email. After that, the person may send the form again, for example because no email arrived.
const asksKept = 30 * time.Second

func newLinkPages(pg *pages, logins *browserLogins, sessions session.Store) *linkPages {
	forms := once.Forms{Sessions: sessions, Kind: "mail-form", Kept: asksKept, Now: pg.Now}
	return &linkPages{pages: pg, logins: logins, asks: once.New(forms, pg.log)}
}

// showForgot serves GET /forgot?id=.
func (lp *linkPages) showForgot(w http.ResponseWriter, r *http.Request) error {
	req, c, err := lp.resume(r, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	return lp.write(w, r, templates.Forgot{ID: req.ID, App: lp.appName(r, c, req), Email: req.LoginHint},
		templates.Options{})
}

// askReset serves POST /forgot, the form on the page of showForgot. It takes the same steps for
// every address, and sends the same response.
func (lp *linkPages) askReset(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}

	req, c, err := lp.resume(r, form.Get("id"))
	if err != nil {
		return err
	}
	sent := func(w http.ResponseWriter) error { return lp.resetSent(w, r, req) }
	return lp.askOnce(w, r, form, sent, func(w http.ResponseWriter, r *http.Request) error {
		if err := lp.askMail(r, mail.Reset, c, req, form.Get("username")); err != nil {
			return err
		}
		return sent(w)
	})
}

// resetSent shows that an email is on its way if the address has an account. It names the address that was
// typed, so that the person notices a mistake.
func (lp *linkPages) resetSent(w http.ResponseWriter, r *http.Request, req idp.AuthRequest) error {
	say := lp.words(r)
	text := say.Say("forgot.sent-unnamed")
	if to := sentTo(r); to != "" {
		text = say.Say("forgot.sent-text", "Email", to)
	}
	return lp.write(w, r, templates.Notice{
		ID:      "mail-sent",
		Title:   say.Say("forgot.sent"),
		Text:    []string{text, say.Say("forgot.sent-link")},
		Mailbox: lp.mailbox,
		Button:  &templates.Link{Title: say.Say("back-to-login"), URL: "/login?id=" + url.QueryEscape(req.ID)},
	}, templates.Options{})
}

// errAskWaits is the page for a form that is sent again while another node is still handling it.
var errAskWaits = pageError(http.StatusConflict, "error.busy", "sent.waits")

// askOnce calls ask to handle a form that requests an email. If the browser sends the form twice, for
// example after a double click, it is handled only once. sent shows that the email was sent.
func (lp *linkPages) askOnce(w http.ResponseWriter, r *http.Request, form url.Values,
	sent func(http.ResponseWriter) error, ask web.Handler) error {
	return lp.asks.Serve(w, r, once.Form{
		ID: strings.Join([]string{r.URL.Path, lp.cookies.FlowOf(r), web.Network(r), form.Encode()}, "\n"),
		Handle: func(w http.ResponseWriter, r *http.Request) (bool, error) {
			return true, ask(w, r)
		},
		Refuse: func(before once.Sent) error {
			if !before.Ended {
				return errAskWaits
			}
			return sent(w)
		},
	})
}

// askMail queues an email, and stores the authorization request so that it can continue when the
// link is used.
func (lp *linkPages) askMail(r *http.Request, kind mail.Kind, c idp.Client, req idp.AuthRequest, email string) error {
	req.LoginHint = typedEmail(email)
	if err := lp.Requests.Suspend(r.Context(), req); err != nil {
		return err
	}
	return lp.Letters.AskIn(r.Context(), lp.words(r).Tag, kind, c.ProjectID, email, req.ID, web.Network(r))
}

// sentTo returns the email address that the form of r contains, for the page that says where an email
// was sent. It returns "" if the address is too long.
func sentTo(r *http.Request) string { return strings.TrimSpace(typedEmail(r.PostForm.Get("username"))) }

// typedEmail returns an email address as a person typed it, or "" if it is too long.
func typedEmail(email string) string {
	if len(email) > 320 {
		return ""
	}
	return email
}

// errLinkOver is the page for links that were used, have expired, or are unknown.
var errLinkOver = pageError(http.StatusGone, "error.link", "error.link-text")

// errInvitationOver is like errLinkOver, but for invitations. It does not mention the app, because
// recipients do not use one yet.
var errInvitationOver = pageError(http.StatusGone, "error.invitation", "error.invitation-text")

// find returns the link with this token, or an error whose page says that the link is no longer
// valid.
func (lp *linkPages) find(r *http.Request, purpose mail.Kind, token string) (idp.Link, error) {
	l, err := lp.Letters.FindLink(r.Context(), purpose, token)
	followed(r, l)
	return l, convertMissing(purpose, err)
}

// followed sets the project of r's presentation to that of the link l, so that pages for r have the
// project's branding.
func followed(r *http.Request, l idp.Link) {
	presentationOf(r).client = idp.Client{ProjectID: l.ProjectID}
}

func convertMissing(purpose mail.Kind, err error) error {
	switch {
	case errors.Is(err, problem.NotFound) && purpose == mail.Invitation:
		return errInvitationOver
	case errors.Is(err, problem.NotFound):
		return errLinkOver
	}
	return err
}

// showReset serves GET /reset?token=. It does not use the link up.
func (lp *linkPages) showReset(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := lp.find(r, mail.Reset, token)
	if err != nil {
		return err
	}
	return lp.resetPage(w, r, l, token, "", http.StatusOK)
}

func (lp *linkPages) resetPage(w http.ResponseWriter, r *http.Request, l idp.Link, token,
	wrong string, status int) error {
	say := lp.words(r)
	return lp.write(w, r, templates.NewPassword{
		Title:  say.Say("reset.title"),
		Text:   say.Say("reset.text", "Email", l.Email),
		Action: formAt(r, "/reset"),
		Token:  token,
		Email:  l.Email,
		Rule:   lp.passwordRule(r),
		Error:  wrong,
		Button: say.Say("reset.submit"),
		Note:   say.Say("reset.note"),
	}, templates.Options{Status: status})
}

// reset serves POST /reset, the form on the page of showReset. If the password is accepted, the
// link is used up.
func (lp *linkPages) reset(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	token := form.Get("token")
	l, err := lp.Accounts.ResetPassword(r.Context(), mail.Reset, token, form.Get("password"))
	followed(r, l)
	if wrong := problem.First(err); wrong != nil && wrong.Kind == problem.Invalid {
		return lp.resetPage(w, r, l, token, lp.fault(r, wrong), http.StatusUnprocessableEntity)
	}
	if err != nil {
		return convertMissing(mail.Reset, err)
	}
	return lp.passwordSet(w, r, l, lp.words(r).Say("reset.done"), lp.words(r).Say("reset.done-text"))
}

// passwordSet shows that a password was set. If the login in which the link was requested is still
// waiting in this browser, the page leads back to it. passwordSet also marks the browser as known,
// so that strangers' guesses of the password do not lock it out. Guesses of second factors can
// still lock the browser out, until a login with two factors has taken place in it.
func (lp *linkPages) passwordSet(w http.ResponseWriter, r *http.Request, l idp.Link, title, text string) error {
	if err := lp.logins.markDevice(w, r, l.ProjectID, l.SubscriberID, false); err != nil {
		return err
	}
	button, err := lp.wayBack(r, l)
	if err != nil {
		return err
	}
	page := templates.Notice{ID: "password-set", Title: title, Text: []string{text}, Button: button}
	if button == nil {
		page.Text = append(page.Text, lp.words(r).Say("reset.to-app"))
		page.Account = accountLink(lp.words(r), l.ProjectID)
	}
	return lp.write(w, r, page, templates.Options{})
}

// accountLink returns a link to the account page. It is for people who open a link in an email, and
// so cannot return to an app.
func accountLink(say *words.Words, projectID string) *templates.Link {
	return &templates.Link{Title: say.Say("login.submit", "App", say.Say("your-account")), URL: accountURL(projectID)}
}

// wayBack returns a link to the login in which an email was requested. It returns nil if the email
// was not requested in a login, or if that login is no longer waiting in this browser.
func (lp *linkPages) wayBack(r *http.Request, l idp.Link) (*templates.Link, error) {
	if l.Request == "" {
		return nil, nil
	}

	req, c, err := lp.Requests.Resume(r.Context(), l.Request, lp.cookies.FlowOfRequest(r, l.Request))
	if errors.Is(err, problem.NotFound) || errors.Is(err, problem.Forbidden) { // forbidden: another browser began it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	req.LoginHint = l.Email
	if err := lp.Requests.Suspend(r.Context(), req); err != nil {
		return nil, err
	}
	return &templates.Link{
		Title: lp.words(r).Say("login.submit", "App", lp.appName(r, c, req)),
		URL:   "/login?id=" + url.QueryEscape(req.ID),
	}, nil
}
