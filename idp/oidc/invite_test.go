package oidc_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// invite adds a subscriber without a password, and returns the path of an invitation link.
func (w *world) invite(email string) string {
	w.t.Helper()
	sub, err := w.fabric.Subscribers.Create(w.t.Context(), w.project.ID, fabric.SubscriberInput{Email: &email})
	must(w.t, err)
	link, err := w.idp.Letters.HandOver(w.t.Context(), w.project.ID, sub.ID, "Ada")
	must(w.t, err)
	return strings.TrimPrefix(link, w.url)
}

// TestInvitationRedirects shows that the form of an invitation leads to a page that can be reloaded,
// in the language of the link, and that only the browser that sent the form is signed in there.
func TestInvitationRedirects(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	form := formOf(t, b.get(w.invite("grace@example.com")), "/invite")
	form.Set("password", "granite-otter-nine")
	c := *b.http
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	sent, err := c.PostForm(w.url+"/invite?ui_locales=de", form)
	must(t, err)
	defer sent.Body.Close()
	to := "/invite/accepted?project=" + w.project.ID + "&ui_locales=de"
	if sent.StatusCode != http.StatusSeeOther || sent.Header.Get("Location") != to {
		t.Fatalf("an accepted invitation: %s to %q, want 303 to %q", sent.Status, sent.Header.Get("Location"), to)
	}

	for range 2 {
		page := b.get(to)
		if !strings.Contains(page.body, `id="notice-go" href="/account?project=`+w.project.ID+`"`) ||
			!strings.Contains(page.body, "grace@example.com") || !strings.Contains(page.body, inGerman) {
			t.Errorf("the page after an invitation: %d %s, want the account in German", page.status, page.body)
		}
	}
	other := w.browser().get(to)
	if strings.Contains(other.body, "grace@example.com") || !strings.Contains(other.body, `id="notice-account"`) {
		t.Errorf("the same page in another browser: %d %s, want no email", other.status, other.body)
	}
	if got := b.get("/invite/accepted?project=unknown"); got.status != http.StatusGone {
		t.Errorf("the page of an unknown project: %d, want 410", got.status)
	}
}

// TestInvitationLanguage shows that the language can be changed after a password was refused.
func TestInvitationLanguage(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	form := formOf(t, b.get(w.invite("grace@example.com")), "/invite")
	form.Set("password", "short")
	refused := b.post("/invite", form)
	_, back, found := strings.Cut(refused.body, `name="back" value="`)
	back, _, _ = strings.Cut(back, `"`)
	if refused.status != http.StatusUnprocessableEntity || !found {
		t.Fatalf("a short password: %d %s, want 422 with the language menu", refused.status, refused.body)
	}
	page := b.post("/language", url.Values{"language": {"de"}, "back": {html.UnescapeString(back)}})
	if !strings.Contains(page.body, `id="password-submit"`) || !strings.Contains(page.body, inGerman) ||
		formOf(t, page, "/invite").Get("token") != form.Get("token") {
		t.Errorf("the page in German: %d %s, want the same form", page.status, page.body)
	}
}
