package oidc_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/mail"
)

// A click is a form that a browser sends several times with the same cookies.
type click struct {
	from *browser // with the cookies of the page
	path string
	form url.Values
}

// clickOn fills in the form of a page that posts to path.
func clickOn(t *testing.T, b *browser, page reply, path string, pairs ...string) click {
	t.Helper()
	return click{from: b.copy(), path: path, form: with(formOf(t, page, path), pairs...)}
}

// send sends the form in a copy of the browser, and returns the copy.
func (c click) send() (*browser, reply) {
	b := c.from.copy()
	return b, b.post(c.path, c.form)
}

// TestDoubleClick shows that a double click on a form that uses something up gets the same response as
// a single click. If the form is sent again later, or by another browser, it is refused.
func TestDoubleClick(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) {
		n.FirstParty, n.FrontchannelLogoutURI = false, "https://app.example/bye"
	})
	// double sends a form twice, and checks that both responses contain text. It returns the browser and
	// the first response.
	double := func(sent click, text string) (*browser, reply) {
		t.Helper()
		b, first := sent.send()
		wantText(t, sent.path, first, text)
		_, second := sent.send()
		wantText(t, sent.path+" sent twice", second, text)
		return b, first
	}

	b := w.newBrowser()
	login := clickOn(t, b, b.authorize(request(c)), "/login", "username", email, "password", secret)
	b, page := double(login, `id="consent-allow"`)
	consent := clickOn(t, b, page, "/consent", "answer", "allow")
	b, first := consent.send()
	wantCode(t, "allowing access", first)
	_, second := consent.send()
	if first.param("code") != second.param("code") {
		t.Errorf("allowing access twice returns the codes %q and %q, want one code", first.param("code"),
			second.param("code"))
	}
	w.pass(4 * time.Second) // the response is no longer in memory
	_, late := consent.send()
	wantStatus(t, "allowing access later", late, http.StatusBadRequest)

	w.redeem(c, first.param("code"))
	const frame = `src="https://app.example/bye` // without it, the app would not be signed out
	double(clickOn(t, b, b.get("/logout"), "/logout"), frame)
	for _, path := range []string{"/account/sessions/end", "/account/sessions/end-all"} {
		b = w.newBrowser()
		w.redeem(c, b.code(c))
		double(clickOn(t, b, b.account(), path), frame)
	}

	b = w.newBrowser()
	invitation := clickOn(t, b, b.get(w.invite("grace@example.com")), "/invite", "password", "granite-otter-nine")
	double(invitation, `id="notice-go"`)

	delivery, err := w.idp.Letters.Write(t.Context(), mail.Letter{
		Kind:      mail.Reset,
		ProjectID: w.project.ID,
		To:        email,
		Facts:     map[string]string{},
	})
	must(t, err)
	link, err := url.Parse(delivery.Link)
	must(t, err)
	b = w.newBrowser()
	reset := clickOn(t, b, b.get(link.RequestURI()), "/reset", "password", "granite-otter-nine")
	double(reset, `id="password-set"`)
	for _, other := range []*browser{w.newBrowser(), w.newBrowser()} {
		got := other.post(reset.path, reset.form)
		wantStatus(t, "the form sent by another browser", got, http.StatusGone)
	}
}
