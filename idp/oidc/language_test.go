package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/mail"
	pages "github.com/selvage/selvage/internal/page"
)

// browserPreferring returns a browser that sends this Accept-Language header.
func (w *world) browserPreferring(acceptLanguage string) *browser {
	b := w.newBrowser()
	b.http.Transport = languageSetter{RoundTripper: b.http.Transport, acceptLanguage: acceptLanguage}
	return b
}

// A languageSetter adds an Accept-Language header to requests.
type languageSetter struct {
	http.RoundTripper
	acceptLanguage string
}

func (s languageSetter) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Accept-Language", s.acceptLanguage)
	return s.RoundTripper.RoundTrip(r)
}

const (
	inGerman  = `<html lang="de">`
	inEnglish = `<html lang="en">`
)

// TestLanguage shows in which language pages appear. In order of preference, it is the language that
// the app requests, the account's language, the language chosen in the browser, and the browser's
// preferred language.
func TestLanguage(t *testing.T) {
	w := newWorld(t)
	french := w.browserPreferring("fr, nl;q=0.5")
	wantText(t, "a browser that accepts no supported language", french.get("/device"), inEnglish)

	c, _ := w.client(nil)
	b := w.browserPreferring("de-AT, en;q=0.5")
	wantText(t, "a browser that prefers German", b.get("/device"), inGerman)
	wantText(t, "an error page", b.get("/login?id=over"), inGerman)
	page := b.get("/account?project=" + w.project.ID)
	wantText(t, "the login page in a browser that prefers German", page, inGerman)
	wantText(t, "a wrong password", b.logIn(page, email, "wrong"), "E-Mail oder Passwort ist falsch.")

	b.post("/language", url.Values{"language": {"en"}, "back": {"/device"}})
	wantText(t, "after choosing English", b.get("/device"), inEnglish)
	german := b.authorize(request(c, "ui_locales", "xx de en"))
	wantText(t, "a request for German after choosing English", german, inGerman)

	_, err := w.fabric.Subscribers.Update(context.Background(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Claims: &fabric.StandardClaims{Locale: "de"}})
	must(t, err)
	wantText(t, "an account in German after choosing English", b.account(), inGerman)
	wantNoText(t, "the account, whose language takes precedence over the browser's", b.account(), `action="/language"`)
	got := b.onPage(b.account(), "/account/display", "language", "en")
	wantText(t, "the account after choosing English there", got, inEnglish)
	sub, err := w.fabric.Subscribers.Find(context.Background(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.Claims.Locale != "en" {
		t.Errorf("the account's language is %q, want en", sub.Claims.Locale)
	}
}

// TestLanguageOfLinks shows that a link in a German email opens German pages until another language
// is chosen there.
func TestLanguageOfLinks(t *testing.T) {
	w := newWorld(t)
	// send returns the token and the path of a link in a German email.
	send := func() (token, path string) {
		delivery, err := w.idp.Letters.Write(t.Context(), mail.Letter{
			Kind:      mail.Reset,
			ProjectID: w.project.ID,
			To:        email,
			Facts:     map[string]string{"language": "de"},
		})
		must(t, err)
		link, err := url.Parse(delivery.Link)
		must(t, err)
		return link.Query().Get("token"), link.RequestURI()
	}

	token, path := send()
	b := w.newBrowser()
	wantText(t, "a link in a German email", b.get(path), inGerman, `action="/reset?ui_locales=de"`)
	done := b.post("/reset?ui_locales=de", url.Values{"token": {token}, "password": {"granite-otter-nine"}})
	wantText(t, "the page after the change", done, inGerman, `id="password-set"`)

	_, path = send()
	switched := b.post("/language", url.Values{"language": {"en"}, "back": {path}})
	wantText(t, "the page of a German link after choosing English", switched, inEnglish, `id="password-submit"`)
}

// TestLanguageOfEmails shows that an email that a person requests on a page has the language of this
// page, if the account has no language of its own or there is no account yet.
func TestLanguageOfEmails(t *testing.T) {
	w := newWorld(t)
	_, err := w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Registration: new(fabric.RegistrationOpen)})
	must(t, err)
	c, _ := w.client(nil)
	b := w.browserPreferring("de")
	page := b.authorize(request(c))
	b.form(page, "/forgot", "username", email)
	b.form(page, "/register", "username", "new@example.com", "password", secret)
	b.onPage(b.account(), "/account/email", "email", "other@example.com")
	b.onPage(b.account(), "/account/email/verify")

	letters, err := w.rows.ListLetters(t.Context(), "", pages.Query{Size: 50})
	must(t, err)
	if n := len(letters.Items); n != 4 {
		t.Errorf("there are %d letters, want 4", n)
	}
	for _, letter := range letters.Items {
		draft, err := w.idp.Letters.Write(t.Context(), letter)
		must(t, err)
		if draft.Language != "de" {
			t.Errorf("the language of the letter %s is %q, want de", letter.Kind, draft.Language)
		}
	}
}

// TestLanguageSwitch shows that a language chosen on a login page overrides the language that the
// app requested. The form cannot be used to redirect to another site.
func TestLanguageSwitch(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()

	page := b.authorize(request(c, "ui_locales", "de"))
	back := "/login?id=" + hiddenID.FindStringSubmatch(page.body)[1]
	wantText(t, "a login page in German", page, inGerman, `name="back" value="`+back+`"`)

	got := b.post("/language", url.Values{"language": {"en"}, "back": {back}})
	wantText(t, "the page after the switch", got, inEnglish, "login-submit")

	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, target := range []string{
		"https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "/\r\nX: y", "",
	} {
		got := b.post("/language", url.Values{"language": {"de"}, "back": {target}})
		wantStatus(t, "the switch back to "+target, got, http.StatusSeeOther)
		wantHeader(t, "the switch back to "+target, got, "Location", "/")
	}
}
