package oidc

import (
	"net/http"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/templates"
)

// showVerify serves GET /verify?token=. It changes nothing.
func (a *API) showVerify(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := a.link(r, mail.Verify, token)
	if err != nil {
		return err
	}
	return a.write(w, r, templates.Confirm{
		Title: a.words(r).Say("verify.title"), Text: a.words(r).Say("verify.text", "Email", l.Email),
		Action: formAt(r, "/verify"), Token: token, Button: a.words(r).Say("verify.submit"),
	}, templates.Options{})
}

// verify serves POST /verify: the form of that page, which uses the link up.
func (a *API) verify(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	l, err := a.VerifyAddress(r.Context(), form.Get("token"))
	if err != nil {
		return over(mail.Verify, err)
	}
	followed(r, l)
	page := templates.Notice{ID: "address-verified", Title: a.words(r).Say("verify.done"),
		Text: []string{a.words(r).Say("verify.done-text", "Email", l.Email)}}
	if page.Button, err = a.wayBack(r, l); err != nil {
		return err
	}
	if page.Button == nil {
		page.Account = accountLink(a.words(r), l.ProjectID)
	}
	return a.write(w, r, page, templates.Options{})
}
