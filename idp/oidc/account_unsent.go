package oidc

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/templates"
)

// typed are the fields of the account page's forms that people type or choose, except secrets.
var typed = []string{"display_name", "email", "first_name", "language", "last_name", "name", "theme"}

// secrets are the fields that no page keeps.
var secrets = []string{"code", "credential", "current", "password"}

// unsent returns a page with a form that could not be handled because of err, so that a browser without
// scripts can send the form after a login. The server does not store the form. ok is false if nothing
// was typed, if the form contains a secret, or if it may come from another site.
func (ac *account) unsent(r *http.Request, v visit, form url.Values, err error) (p templates.Unsent, ok bool) {
	if !hasAny(form, typed) || hasAny(form, secrets) || !saysOrigin(r) {
		return p, false
	}
	say := ac.words(r)
	p = templates.Unsent{
		Title:  say.Say("unsent.over"),
		Text:   say.Say("unsent.text"),
		Open:   accountURL(form.Get("project")),
		Link:   say.Say("unsent.sign-in"),
		Action: r.URL.Path,
		Fields: fieldsOf(form),
		Button: say.Say("unsent.continue"),
	}

	switch {
	case errors.Is(err, errAgain):
		p.Title, p.Link = say.Say("unsent.again"), say.Say("unsent.again")
		p.Open += "&again"
	case errors.Is(err, errOtherLogin):
		p.Title, p.Button = say.Say("unsent.other"), say.Say("unsent.send")
		p.Text = say.Say("unsent.other-text", "Account", v.sub.Title())
		p.Open = ""
	}

	token := form.Get("token") // after the next login, it shows whose form this is
	if v.ID != "" {            // the form belongs to this login, because the page says whose account it changes
		token = ac.formToken(v.Login)
	}
	p.Fields = append(p.Fields, templates.Hidden{Name: "token", Value: token})
	return p, true
}

// hasAny reports whether a form has a value for one of the names.
func hasAny(form url.Values, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return form.Get(name) != "" })
}

// saysOrigin reports whether the browser said which site sent the form. pages.sameOrigin has then
// checked that it was this site. sameOrigin also accepts forms from older browsers, which do not name
// the site.
func saysOrigin(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "same-origin" || r.Header.Get("Origin") != ""
}

// fieldsOf returns the fields of a form, except its token.
func fieldsOf(form url.Values) (all []templates.Hidden) {
	for name := range form {
		if name != "token" {
			all = append(all, templates.Hidden{Name: name, Value: form.Get(name)})
		}
	}
	slices.SortFunc(all, func(a, b templates.Hidden) int { return strings.Compare(a.Name, b.Name) })
	return all
}
