package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/mail"
)

// said returns a browser that sends this Accept-Language header.
func (w *world) said(acceptLanguage string) *browser {
	b := w.browser()
	b.http.Transport = liking{b.http.Transport, acceptLanguage}
	return b
}

type liking struct {
	http.RoundTripper
	language string
}

func (l liking) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Accept-Language", l.language)
	return l.RoundTripper.RoundTrip(r)
}

const (
	inGerman  = `<html lang="de">`
	inEnglish = `<html lang="en">`
)

// TestLanguage shows which language pages have. In order of preference, it is the language that the
// app requests, the account's language, the language chosen in the browser, and the browser's
// preferred language.
func TestLanguage(t *testing.T) {
	w := newWorld(t)
	want := func(what string, got reply, language string) {
		t.Helper()
		if !strings.Contains(got.body, language) {
			t.Errorf("%s: %d, want %s in the page", what, got.status, language)
		}
	}

	want("a browser that accepts no supported language", w.said("fr, nl;q=0.5").get("/device"), inEnglish)
	c, _ := w.client(nil)
	b := w.said("de-AT, en;q=0.5")
	want("a browser that prefers German", b.get("/device"), inGerman)
	want("an error page", b.get("/login?id=over"), inGerman)
	page := b.get("/account?project=" + w.project.ID)
	want("its login page", page, inGerman)
	want("a wrong password", b.logIn(page, email, "wrong"), "E-Mail oder Passwort ist falsch.")

	b.post("/language", url.Values{"language": {"en"}, "back": {"/device"}})
	want("after choosing English", b.get("/device"), inEnglish)
	want("a request for German after choosing English", b.authorize(request(c, "ui_locales", "xx de en")), inGerman)

	locale := "de"
	_, err := w.fabric.Subscribers.Update(context.Background(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Claims: &fabric.StandardClaims{Locale: locale}})
	must(t, err)
	want("an account in German after choosing English", b.account(), inGerman)
	got := b.onPage(b.account(), "/account/display", "language", "en")
	want("the account after choosing English there", got, inEnglish)
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
	link := func() (token, at string) {
		d, err := w.idp.Letters.Write(t.Context(),
			mail.Letter{Kind: mail.Reset, ProjectID: w.project.ID, To: email,
				Facts: map[string]string{"language": "de"}})
		must(t, err)
		u, err := url.Parse(d.Link)
		must(t, err)
		return u.Query().Get("token"), u.RequestURI()
	}

	token, at := link()
	b := w.browser()
	page := b.get(at)
	if !strings.Contains(page.body, inGerman) || !strings.Contains(page.body, `action="/reset?ui_locales=de"`) {
		t.Fatalf("a link in a German email opens %s, want a page in German", page.body)
	}

	if done := b.post("/reset?ui_locales=de",
		url.Values{"token": {token}, "password": {"granite-otter-nine"}}); !strings.Contains(done.body, inGerman) ||
		!strings.Contains(done.body, `id="password-set"`) {
		t.Errorf("the next page is %s, want the German page after the change", done.body)
	}

	_, at = link()
	if page := b.post("/language",
		url.Values{"language": {"en"}, "back": {at}}); !strings.Contains(page.body, inEnglish) ||
		!strings.Contains(page.body, `id="password-submit"`) {
		t.Errorf("after choosing English on the page of a German link: %s, want the English form", page.body)
	}
}

// TestLanguageSwitch shows that a language chosen on a login page overrides the language that the
// app requested. The form cannot be used to redirect to another site.
func TestLanguageSwitch(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()

	page := b.authorize(request(c, "ui_locales", "de"))
	back := "/login?id=" + hiddenID.FindStringSubmatch(page.body)[1]
	if !strings.Contains(page.body, inGerman) || !strings.Contains(page.body, `name="back" value="`+back+`"`) {
		t.Fatalf("a login page in German: %d %s, want its address in the language form", page.status, page.body)
	}

	if got := b.post("/language",
		url.Values{"language": {"en"}, "back": {back}}); !strings.Contains(got.body, inEnglish) ||
		!strings.Contains(got.body, "login-submit") {
		t.Errorf("after the switch: %d %s, want the English login page", got.status, got.body)
	}

	for _, to := range []string{"https://evil.example/", "//evil.example/", "/\\evil.example",
		"javascript:alert(1)", "/\r\nX: y", ""} {
		b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		got := b.post("/language", url.Values{"language": {"de"}, "back": {to}})
		if at := got.header.Get("Location"); got.status != http.StatusSeeOther || at != "/" {
			t.Errorf("the switch back to %q redirects to %q with %d, want /", to, at, got.status)
		}
	}
}
