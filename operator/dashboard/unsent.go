package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// An unsentPage keeps the fields of a form that was submitted without a valid session, so that a
// browser without scripts can submit it again. The server does not store them.
type unsentPage struct {
	Text   string
	SignIn string // the login page; "" if the form can be sent now
	Return string // the login page that leads back to the form, for browsers with scripts
	Action string
	Fields []unsentField
	Button string
}

type unsentField struct{ Name, Value string }

// maxUnsent is the maximum size of a form that is kept, in bytes.
const maxUnsent = maxForm

// keepUnsent responds to a form that could not be handled because of err with a page that keeps its
// fields. It returns false if err has another remedy or the form cannot be kept.
func (a *site) keepUnsent(v *visit, err error) bool {
	if v.r.Method != http.MethodPost || !a.isSameOrigin(v.r) {
		return false
	}
	fields, ok := unsentFields(v.form)
	if !ok {
		return false
	}

	p := unsentPage{Action: v.r.URL.RequestURI(), Fields: fields}
	title := "Your session has ended"
	switch {
	case errors.Is(err, errSignIn):
		p.Text = "Nothing was saved yet. Sign in in a new tab, and come back to this page to continue."
		p.SignIn, p.Return, p.Button = Prefix+"/login", Prefix+"/login"+nextOf(v.r), "Continue"
	case errors.Is(err, errForm) && v.operator.ID != "" && v.route.may != anyone:
		title = "Send the form now?"
		p.Text = "Your session began after you opened the form. Nothing was saved yet."
		p.Button = "Send the form"
	default:
		return false
	}
	return a.page(v, http.StatusForbidden, title, "unsent", p) == nil
}

// unsentFields returns the fields of a form that can be kept. ok is false if the form is too large,
// contains only its token, or may contain a secret.
func unsentFields(form url.Values) (all []unsentField, ok bool) {
	size := 0
	for name, values := range form {
		if name == "form" {
			continue
		}
		for _, value := range values {
			if value != "" && maySecret(name) {
				return nil, false
			}
			size += len(name) + len(value)
			all = append(all, unsentField{name, value})
		}
	}
	slices.SortStableFunc(all, func(a, b unsentField) int { return strings.Compare(a.Name, b.Name) })
	return all, len(all) > 0 && size <= maxUnsent
}

// maySecret reports whether the input with the given name may contain a secret.
func maySecret(name string) bool {
	_, member, isMember := strings.Cut(name, ".")
	if isMember {
		return maySecret(member)
	}
	switch name {
	case "code", "credential", "current", "password", "secret", "token":
		return true
	}
	return strings.HasSuffix(name, "_secret") || strings.HasSuffix(name, "_password")
}
