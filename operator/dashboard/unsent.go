package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/problem"
)

// An unsentPage keeps the fields of a form that was submitted without a valid session or a recent
// confirmation, so that a browser without scripts can submit the form again. The server does not store
// the fields.
type unsentPage struct {
	Text   string
	Open   string // the page for the login or the confirmation; "" if the form can be sent now
	Return string // like Open, but leads back to the form afterwards; for browsers with scripts
	Link   string // text of the link to Open
	Action string
	Fields []unsentField
	Typed  []unsentField // fields to show, because perhaps another operator typed them
	Button string
}

// An unsentField is a field of such a form.
type unsentField struct{ Name, Value string }

// sortFields sorts fields by name, and keeps the order of the values of one name.
func sortFields(fields []unsentField) {
	slices.SortStableFunc(fields, func(a, b unsentField) int { return strings.Compare(a.Name, b.Name) })
}

// maxUnsent is the maximum size of a form that is kept, in bytes, with fieldOverhead for each field.
const maxUnsent = maxForm

// keepUnsent responds with a page that keeps the fields of a form that could not be handled because
// of err. It returns false if such a page would not help, or if the form cannot be kept.
func (a *site) keepUnsent(v *visit, err error) bool {
	if v.r.Method != http.MethodPost || v.route.upload > 0 || !a.isSameOrigin(v.r) {
		return false // a page cannot keep a file
	}
	fields, ok := a.unsentFields(v.form)
	if !ok {
		return false
	}

	p := unsentPage{Action: v.r.URL.RequestURI(), Fields: fields}
	title := "Your session has ended"
	switch {
	case errors.Is(err, errSignIn):
		p.Text = "Nothing was saved yet. Sign in in a new tab, and come back to this page to continue."
		p.Open = Prefix + "/login"
		p.Return = p.Open + nextOf(v.r)
		p.Link = "Sign in"
		p.Button = "Continue"
	case errors.Is(err, errStale):
		title = "Confirm your identity"
		p.Text = "Nothing was saved yet. Confirm your identity in a new tab, and come back to this page to continue."
		p.Open = Prefix + "/confirm"
		p.Return = p.Open + nextOf(v.r)
		p.Link = "Confirm your identity"
		p.Button = "Continue"
	case errors.Is(err, errForm) && v.operator.ID != "" && v.route.may != anyone:
		title = "Send the form now?"
		p.Text = "Your session began after you opened the form. Nothing was saved yet."
		p.Typed = typedFields(fields)
		p.Button = "Send the form"
	default:
		return false
	}
	return a.page(v, http.StatusForbidden, title, "unsent", p) == nil
}

// notTyped are fields of forms that nobody types.
var notTyped = []string{"form", "seen", "confirm", "overlap", "do", "version", "document"}

// keepTyped responds to a form about something that no longer exists, such as a deleted subscriber,
// with a page that shows what was typed. It returns false if err has another reason, or if nothing was
// typed. The page shows no secrets.
func (a *site) keepTyped(v *visit, err error) bool {
	if v.r.Method != http.MethodPost || v.operator.ID == "" || !a.isSameOrigin(v.r) {
		return false
	}
	if !errors.Is(err, problem.NotFound) {
		return false
	}
	var typed []unsentField
	for name, values := range v.form {
		if a.mayBeSecret(name) {
			continue
		}
		for _, value := range values {
			if isTyped(name, value) {
				typed = append(typed, unsentField{Name: name, Value: value})
			}
		}
	}
	sortFields(typed)
	return len(typed) > 0 && a.page(v, http.StatusNotFound, "Not found", "gone", typed) == nil
}

// isTyped reports whether a person has typed the value of a field.
func isTyped(name, value string) bool { return value != "" && !slices.Contains(notTyped, name) }

// typedFields returns the fields that people type and have filled in.
func typedFields(fields []unsentField) (typed []unsentField) {
	for _, f := range fields {
		if isTyped(f.Name, f.Value) {
			typed = append(typed, f)
		}
	}
	return typed
}

// unsentFields returns the fields of a form that can be kept. ok is false if the form is too large,
// contains only its token, or may contain a secret.
func (a *site) unsentFields(form url.Values) (fields []unsentField, ok bool) {
	size := 0
	for name, values := range form {
		if name == "form" {
			continue
		}
		for _, value := range values {
			size += len(name) + len(value) + fieldOverhead
			if size > maxUnsent || value != "" && a.mayBeSecret(name) {
				return nil, false
			}
			fields = append(fields, unsentField{Name: name, Value: value})
		}
	}
	sortFields(fields)
	return fields, len(fields) > 0
}

// mayBeSecret reports whether the input with the given name may contain a secret.
func (a *site) mayBeSecret(name string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:] // the member of an object
	switch name {
	case "code", "credential", "current", "password", "secret", "token":
		return true
	}
	if strings.HasSuffix(name, "_secret") || strings.HasSuffix(name, "_password") {
		return true
	}
	return slices.ContainsFunc(a.Fabric.Resources.Kinds().All(), func(k *kinds.Kind) bool {
		return hasSecret(k.Fields, name)
	})
}

// hasSecret reports whether one of the fields, or of their members, has the given name and contains
// a secret.
func hasSecret(fields []kinds.Field, name string) bool {
	return slices.ContainsFunc(fields, func(f kinds.Field) bool {
		return f.Name == name && isSecret(f) || hasSecret(f.Members, name)
	})
}

// isSecret reports whether a field is a secret, or may contain one.
func isSecret(f kinds.Field) bool {
	return f.WriteOnly || f.Items != nil && isSecret(*f.Items) || slices.ContainsFunc(f.Members, isSecret)
}
