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
		Title: "Confirm your e-mail address", Text: "Is " + l.Email + " yours?", Action: "/verify", Token: token, Button: "Yes, it is mine",
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
	page := templates.Notice{ID: "address-verified", Title: "Your address is confirmed", Text: []string{l.Email + " is known to be yours."}}
	if page.Button, err = a.wayBack(r, l); err != nil {
		return err
	}
	return a.write(w, r, page, templates.Options{})
}
