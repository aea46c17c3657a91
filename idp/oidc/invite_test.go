package oidc_test

import (
	"net/http"
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

// TestInvitationRedirects shows that the form of an invitation redirects to a page in the language of
// the link. The page can be reloaded. Only the browser that sent the form is signed in there.
func TestInvitationRedirects(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	form := formOf(t, b.get(w.invite("grace@example.com")), "/invite")
	form.Set("password", "granite-otter-nine")
	client := *b.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.PostForm(w.url+"/invite?ui_locales=de", form)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("an accepted invitation: status %d, want 303", res.StatusCode)
	}
	accepted := "/invite/accepted?project=" + w.project.ID + "&ui_locales=de"
	if location := res.Header.Get("Location"); location != accepted {
		t.Fatalf("an accepted invitation redirects to %q, want %q", location, accepted)
	}

	button := `id="notice-go" href="/account?project=` + w.project.ID + `"`
	for range 2 {
		wantText(t, "the page after an invitation", b.get(accepted), button, "grace@example.com", inGerman)
	}
	other := w.newBrowser().get(accepted)
	wantText(t, "the same page in another browser", other, `id="notice-account"`)
	wantNoText(t, "the same page in another browser", other, "grace@example.com")
	wantStatus(t, "the page of an unknown project", b.get("/invite/accepted?project=unknown"), http.StatusGone)
}

// TestInvitationLanguage shows that the language can be changed on the page that refuses a password.
func TestInvitationLanguage(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	form := formOf(t, b.get(w.invite("grace@example.com")), "/invite")
	form.Set("password", "short")
	refused := b.post("/invite", form)
	wantStatus(t, "a short password", refused, http.StatusUnprocessableEntity)
	switched := formOf(t, refused, "/language")
	switched.Set("language", "de")
	page := b.post("/language", switched)
	wantText(t, "the page in German", page, `id="password-submit"`, inGerman)
	if token := formOf(t, page, "/invite").Get("token"); token != form.Get("token") {
		t.Errorf("the page in German has the token %q, want %q", token, form.Get("token"))
	}
}
