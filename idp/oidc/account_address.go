package oidc

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/templates"
)

func showAddress(_ *API, _ *http.Request, v visit, page *templates.AccountPage) error {
	page.Address.Verified = v.sub.Verified
	return nil
}

// verifyOwn serves POST /account/email/verify.
func (a *API) verifyOwn(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	if v.sub.Verified || v.sub.Email == "" {
		return backToAccount(w, v, "")
	}
	return a.asked(w, r, v, "", a.AskVerification(r.Context(), v.sub, web.Network(r)))
}

// changeAddress serves POST /account/email: a link goes to the new address, and until it
// is used the one of before stays.
func (a *API) changeAddress(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	email := shortened(form.Get("email"))
	return a.asked(w, r, v, email, a.AskAddress(r.Context(), v.sub, email, web.Network(r)))
}

// asked says what came of asking for a link.
func (a *API) asked(w http.ResponseWriter, r *http.Request, v visit, email string, err error) error {
	p := problem.First(err)
	switch {
	case err == nil:
		return backToAccount(w, v, "link")
	case p != nil && p.Kind == problem.RateLimited:
		web.RetryAfter(w, p)
		page := templates.AccountPage{Address: templates.AddressSection{Error: a.words(r).Say("address.throttled"), New: email}}
		return a.accountPage(w, r, v, page, http.StatusTooManyRequests)
	case p != nil && p.Kind == problem.Invalid:
		page := templates.AccountPage{Address: templates.AddressSection{Error: a.fault(r, p), New: email}}
		return a.accountPage(w, r, v, page, http.StatusUnprocessableEntity)
	}
	return err
}

// showChange serves GET /change-address?token=. It changes nothing.
func (a *API) showChange(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := a.link(r, mail.ChangeAddress, token)
	if err != nil {
		return err
	}
	project, err := a.Linked(r.Context(), l)
	if err != nil {
		return over(l.Purpose, err)
	}
	page := changeWords(a.words(r), l.Email, project.Name, token)
	page.Action = formAt(r, page.Action)
	return a.write(w, r, page, templates.Options{})
}

// change serves POST /change-address: the form of that page, which uses the link up.
func (a *API) change(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	l, err := a.ChangeAddress(r.Context(), form.Get("token"))
	followed(r, l)
	if errors.Is(err, problem.Conflict) {
		return errAddressTaken
	}
	if err != nil {
		return over(mail.ChangeAddress, err)
	}
	return a.write(w, r, changedWords(a.words(r), l.Email, l.ProjectID), templates.Options{})
}
