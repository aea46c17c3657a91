package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// An answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

// String returns the request and the status.
func (a answer) String() string {
	return fmt.Sprintf("%s %s: %s", a.Request.Method, a.Request.URL, a.Status)
}

// wantStatus reports an error unless the answer has the status code.
func (a answer) wantStatus(t testing.TB, code int) {
	t.Helper()
	if a.StatusCode != code {
		t.Errorf("%s, want %d; its errors: %s", a, code, between(a.body, `id="faults"`, "</div>"))
	}
}

// wantText reports each of the texts that the body lacks.
func (a answer) wantText(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%s, want %q in the body\n%s", a, text, a.body)
		}
	}
}

// wantNoText reports each of the texts that the body contains.
func (a answer) wantNoText(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("%s, want no %q in the body\n%s", a, text, a.body)
		}
	}
}

// wantRefused reports an error unless the answer is a page that rejects the values of a form and
// contains all of the texts.
func (a answer) wantRefused(t testing.TB, texts ...string) {
	t.Helper()
	a.wantStatus(t, http.StatusUnprocessableEntity)
	a.wantText(t, texts...)
}

// wantHeader reports an error unless the header has the value.
func (a answer) wantHeader(t testing.TB, name, value string) {
	t.Helper()
	if got := a.Header.Get(name); got != value {
		t.Errorf("%s with the %s %q, want %q", a, name, got, value)
	}
}

// leadsTo fails the test unless the answer redirects to path.
func (a answer) leadsTo(t testing.TB, path string) {
	t.Helper()
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s, want a redirect to %s\n%s", a, path, a.body)
	}
	if at := a.Header.Get("Location"); at != path {
		t.Fatalf("%s to %s, want a redirect to %s", a, at, path)
	}
}

// asksToConfirm fails the test unless the answer to a form keeps the form's input until the
// operator has confirmed their identity. In a browser with scripts, the answer must lead back to
// page.
func (a answer) asksToConfirm(t testing.TB, page string) {
	t.Helper()
	if a.StatusCode != http.StatusForbidden {
		t.Fatalf("%s, want a request to confirm that leads to %s\n%s", a, page, a.body)
	}
	link := `href="/dashboard/confirm" target="_blank" ` +
		`data-return="/dashboard/confirm?next=` + url.QueryEscape(page) + `"`
	if !strings.Contains(a.body, link) {
		t.Fatalf("%s without a link to confirm that leads to %s\n%s", a, page, a.body)
	}
}

// find returns the first group in the first match of expression in the answer's body.
func (a answer) find(t testing.TB, expression string) string {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("%s has no %s\n%s", a, expression, a.body)
	}
	return html.UnescapeString(m[1])
}

// secret returns the secret that a page shows for an authenticator app.
func (a answer) secret(t testing.TB) string {
	t.Helper()
	return strings.ReplaceAll(a.find(t, `id="totp-secret">([A-Z2-7 ]+)<`), " ", "")
}

// between returns the part of text between the first occurrence of before and the next one of after.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
