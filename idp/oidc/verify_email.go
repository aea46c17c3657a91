package oidc

import (
	"net/http"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/templates"
)

// showVerify serves GET /verify?token=. It does not use the link up.
func (lp *linkPages) showVerify(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := lp.find(r, mail.Verify, token)
	if err != nil {
		return err
	}
	return lp.write(w, r, templates.Confirm{
		Title:  lp.words(r).Say("verify.title"),
		Text:   lp.words(r).Say("verify.text", "Email", l.Email),
		Action: formAt(r, "/verify"),
		Token:  token,
		Button: lp.words(r).Say("verify.submit"),
	}, templates.Options{})
}

// verify serves POST /verify, the form on the page of showVerify. The link is then used up.
func (lp *linkPages) verify(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}

	l, err := lp.Accounts.VerifyAddress(r.Context(), form.Get("token"))
	if err != nil {
		return convertMissing(mail.Verify, err)
	}
	followed(r, l)

	page := templates.Notice{
		ID:    "address-verified",
		Title: lp.words(r).Say("verify.done"),
		Text:  []string{lp.words(r).Say("verify.done-text", "Email", l.Email)},
	}
	if page.Button, err = lp.wayBack(r, l); err != nil {
		return err
	}
	if page.Button == nil {
		page.Account = accountLink(lp.words(r), l.ProjectID)
	}

	return lp.write(w, r, page, templates.Options{})
}
