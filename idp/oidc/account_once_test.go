package oidc_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/mail"
	pages "github.com/selvage/selvage/internal/page"
)

// submitTwice submits a form twice with the same cookies, as a double click without scripts does.
func (b *browser) submitTwice(page reply, path string, pairs ...string) (first, second reply) {
	b.w.t.Helper()
	again := b.copy()
	first = b.onPage(page, path, pairs...)
	return first, again.onPage(page, path, pairs...)
}

// wantSameCodes checks that two pages show the same recovery codes.
func wantSameCodes(t *testing.T, name string, first, second reply) {
	t.Helper()
	list := regexp.MustCompile(`(?s)<ul class="codes" id="recovery-codes">.*?</ul>`)
	codes := list.FindString(first.body)
	if codes == "" {
		t.Errorf("%s: the first page shows no codes: %d %s", name, first.status, first.body)
	}
	if again := list.FindString(second.body); again != codes {
		t.Errorf("%s: the second page shows the codes\n%s\nwant\n%s", name, again, codes)
	}
}

// TestAccountFormSentTwice shows that a form of the account page that is sent twice is handled only
// once. Both requests get the same page, even if the first one replaced the browser's cookie. A
// later request learns that the form was sent before.
func TestAccountFormSentTwice(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	device := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1)}
	page := b.account()
	credential := string(device.Create(page.options(t)))
	first, second := b.submitTwice(page, "/account/passkeys", "credential", credential, "name", "Phone")
	wantSameCodes(t, "adding a passkey", first, second)

	page = b.account()
	first, second = b.submitTwice(page, "/account/codes")
	wantSameCodes(t, "creating codes", first, second)
	w.pass(4 * time.Second)
	late := b.onPage(page, "/account/codes")
	wantStatus(t, "the form sent again later", late, http.StatusConflict)
	wantText(t, "the form sent again later", late, "This form was sent before")
	wantNoText(t, "the form sent again later", late, `id="recovery-codes"`)
	wantText(t, "the form of a new page", b.onPage(b.account(), "/account/codes"), `id="recovery-codes"`)

	first, second = b.submitTwice(b.account(), "/account/password",
		"current", secret, "password", "violet ferry kitchen 9")
	wantText(t, "changing the password", first, "Your password was changed.")
	wantText(t, "changing the password again", second, "Your password was changed.")
}

// TestAccountMailSentTwice shows that a request that is sent twice leads to only one email with a link.
// A request that was refused can be sent again.
func TestAccountMailSentTwice(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
	shown := b.account()
	first, second := b.submitTwice(shown, "/account/email", "email", "not an address")
	wantStatus(t, "a wrong address", first, http.StatusUnprocessableEntity)
	wantStatus(t, "a wrong address sent twice", second, http.StatusUnprocessableEntity)

	first, second = b.submitTwice(shown, "/account/email", "email", "new@example.com")
	wantText(t, "an address", first, "We sent a link")
	wantText(t, "an address sent twice", second, "We sent a link")
	w.pass(4 * time.Second)
	third := b.onPage(shown, "/account/email", "email", "new@example.com")
	wantStatus(t, "an address sent again later", third, http.StatusConflict)

	letters, err := w.rows.ListLetters(t.Context(), "", pages.Query{Size: 50})
	must(t, err)
	links := 0
	for _, letter := range letters.Items {
		if letter.Kind == mail.ChangeAddress {
			links++
		}
	}
	if links != 1 {
		t.Errorf("%d links were mailed, want 1", links)
	}
}

// TestVerificationThrottled shows that subscribers learn that no email is sent if too many were
// requested for their address.
func TestVerificationThrottled(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.MailPerAddress: limit.Of(1, time.Hour)})
	b := w.newBrowser()
	wantText(t, "the first request", b.onPage(b.account(), "/account/email/verify"), "We sent a link")
	got := b.onPage(b.account(), "/account/email/verify")
	wantStatus(t, "a request above the limit", got, http.StatusTooManyRequests)
	wantText(t, "a request above the limit", got, "Too many emails were requested")
	w.wantLetters("after both requests", mail.Verify, 1)
}
