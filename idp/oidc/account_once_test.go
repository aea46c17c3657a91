package oidc_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
)

// twice submits a form two times with the same cookies, as a double click without scripts does.
func (b *browser) twice(page reply, path string, pairs ...string) (first, second reply) {
	b.w.t.Helper()
	again := b.copy()
	first = b.onPage(page, path, pairs...)
	return first, again.onPage(page, path, pairs...)
}

var shownCodes = regexp.MustCompile(`(?s)<ul class="codes" id="recovery-codes">.*?</ul>`)

// TestAccountFormSentTwice shows that a form of the account page that is sent twice is handled
// once. Both requests get the same page, even if the first one replaced the browser's cookie. A
// later request learns that the form was sent before.
func TestAccountFormSentTwice(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	d := &factortest.Authenticator{Origin: strings.Replace(w.url, "127.0.0.1", "localhost", 1)}
	shown := b.account()
	first, second := b.twice(shown, "/account/passkeys",
		"credential", string(d.Create(shown.options(t))), "name", "Phone")
	codes := shownCodes.FindString(first.body)
	if codes == "" || shownCodes.FindString(second.body) != codes {
		t.Errorf("a passkey added twice shows the codes\n%s\nand\n%s\nwant the same codes", codes, second.body)
	}

	shown = b.account()
	first, second = b.twice(shown, "/account/codes")
	codes = shownCodes.FindString(first.body)
	if codes == "" || shownCodes.FindString(second.body) != codes {
		t.Errorf("codes made twice are\n%s\nand\n%s\nwant the same codes", codes, second.body)
	}
	w.pass(4 * time.Second)
	third := b.onPage(shown, "/account/codes")
	if third.status != http.StatusConflict || !strings.Contains(third.body, "This form was sent before") ||
		shownCodes.MatchString(third.body) {
		t.Errorf("the form sent again later: %d %s, want 409 without codes", third.status, third.body)
	}
	if another := b.onPage(b.account(), "/account/codes"); !shownCodes.MatchString(another.body) {
		t.Errorf("the form of a new page: %d %s, want codes", another.status, another.body)
	}

	first, second = b.twice(b.account(), "/account/password", "current", secret, "password", "violet ferry kitchen 9")
	for _, got := range []reply{first, second} {
		if !strings.Contains(got.body, "Your password was changed.") {
			t.Errorf("a password changed twice: %d %s, want the notice", got.status, got.body)
		}
	}
}

// TestAccountMailSentTwice shows that a request for a link is mailed once, and that a request that was
// refused can be sent again.
func TestAccountMailSentTwice(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	shown := b.account()
	first, second := b.twice(shown, "/account/email", "email", "not an address")
	if first.status != http.StatusUnprocessableEntity || second.status != first.status {
		t.Errorf("a wrong address sent twice: %d and %d, want 422", first.status, second.status)
	}

	first, second = b.twice(shown, "/account/email", "email", "new@example.com")
	w.pass(4 * time.Second)
	third := b.onPage(shown, "/account/email", "email", "new@example.com")
	if !strings.Contains(first.body, "We sent a link") || !strings.Contains(second.body, "We sent a link") ||
		third.status != http.StatusConflict {
		t.Errorf("an address sent three times: %d, %d and %d, want the notice twice, and then 409",
			first.status, second.status, third.status)
	}

	letters, err := w.rows.ListLetters(t.Context(), "", page.Query{Size: 50})
	must(t, err)
	n := 0
	for _, l := range letters.Items {
		if l.Kind == mail.ChangeAddress {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d links were mailed, want 1", n)
	}
}
