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

func showAddress(_ *account, _ *http.Request, v visit, page *templates.AccountPage) error {
	page.Address.Verified = v.sub.Verified
	return nil
}

// verifyAddress serves POST /account/email/verify.
func (ac *account) verifyAddress(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	if v.sub.Verified || v.sub.Email == "" {
		return backToAccount(w, v, "")
	}
	return ac.once(ac.askVerification)(w, r, v, form)
}

func (ac *account) askVerification(w http.ResponseWriter, r *http.Request, v visit, _ url.Values) error {
	err := ac.Accounts.AskVerification(r.Context(), v.sub, ac.words(r).Tag, web.Network(r))
	return ac.asked(w, r, v, "", err)
}

// changeAddress serves POST /account/email. It sends a link to the new address. The old address
// remains until the link is used.
func (ac *account) changeAddress(w http.ResponseWriter, r *http.Request, v visit, form url.Values) error {
	email := typedEmail(form.Get("email"))
	err := ac.Accounts.AskAddress(r.Context(), v.sub, email, ac.words(r).Tag, web.Network(r))
	return ac.asked(w, r, v, email, err)
}

// asked shows the result of a request for a link by email.
func (ac *account) asked(w http.ResponseWriter, r *http.Request, v visit, email string, err error) error {
	p := problem.First(err)
	switch {
	case err == nil:
		return backToAccount(w, v, "link")
	case p != nil && p.Kind == problem.RateLimited:
		web.RetryAfter(w, p)
		section := templates.AddressSection{Error: ac.words(r).Say("address.throttled"), New: email}
		return ac.page(w, r, v, templates.AccountPage{Address: section}, http.StatusTooManyRequests)
	case p != nil && p.Kind == problem.Invalid:
		section := templates.AddressSection{Error: ac.fault(r, p), New: email}
		return ac.page(w, r, v, templates.AccountPage{Address: section}, http.StatusUnprocessableEntity)
	}
	return err
}

// showChange serves GET /change-address?token=. It does not use the link up.
func (lp *linkPages) showChange(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	l, err := lp.find(r, mail.ChangeAddress, token)
	if err != nil {
		return err
	}
	project, err := lp.Letters.LinkProject(r.Context(), l)
	if err != nil {
		return convertMissing(l.Purpose, err)
	}
	say := lp.words(r)
	page := templates.Confirm{
		Title:  say.Say("address.use"),
		Text:   say.Say("address.use-text", "Project", project.Name, "Email", l.Email),
		Action: formAt(r, "/change-address"),
		Token:  token,
		Button: say.Say("address.use-submit", "Email", l.Email),
	}
	return lp.write(w, r, page, templates.Options{})
}

var errAddressTaken = pageError(http.StatusConflict, "error.address", "error.address-text")

// change serves POST /change-address, the form on the page of showChange. If the address is
// changed, the link is used up.
func (lp *linkPages) change(w http.ResponseWriter, r *http.Request) error {
	form, err := postForm(w, r)
	if err != nil {
		return err
	}
	l, err := lp.Accounts.ChangeAddress(r.Context(), form.Get("token"))
	followed(r, l)
	if errors.Is(err, problem.Conflict) {
		return errAddressTaken
	}
	if err != nil {
		return convertMissing(mail.ChangeAddress, err)
	}

	say := lp.words(r)
	page := templates.Notice{
		ID:     "address-changed",
		Title:  say.Say("address.changed"),
		Text:   []string{say.Say("address.changed-text", "Email", l.Email)},
		Button: &templates.Link{Title: say.Say("account.back"), URL: accountURL(l.ProjectID)},
	}
	return lp.write(w, r, page, templates.Options{})
}
