package oidc_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// TestConsent shows when people are asked for their consent, and from which browser an answer is
// accepted.
func TestConsent(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.FirstParty = false })
	b := w.newBrowser()

	page := b.logIn(b.authorize(request(c)), email, secret)
	wantText(t, "the consent page", page, `id="consent-allow"`)

	// Only the browser that showed the page may answer.
	silent := b.authorize(request(c, "prompt", "none"))
	wantParam(t, "prompt=none before consent", silent, "error", "consent_required")
	wantStatus(t, "consent in another browser", w.newBrowser().consent(page, "allow"), http.StatusForbidden)

	denied := b.consent(page, "deny")
	wantParam(t, "denying", denied, "error", "access_denied")
	wantParam(t, "denying", denied, "state", "s")

	// A consent covers later requests with the same scope. It does not cover requests with a wider
	// scope or with prompt=consent.
	wantCode(t, "allowing", b.consent(b.authorize(request(c)), "allow"))
	wantCode(t, "the same scope again", b.authorize(request(c)))
	wantStatus(t, "a wider scope", b.authorize(request(c, "scope", "openid email")), http.StatusOK)
	page = b.authorize(request(c, "prompt", "consent"))
	wantStatus(t, "prompt=consent", page, http.StatusOK)

	// A consent page shown to ada cannot be answered after bob has signed in using another tab.
	w.subscriber("bob@example.com")
	b.logIn(b.authorize(request(c, "prompt", "login")), "bob@example.com", secret)
	wantStatus(t, "ada's page answered by bob's login", b.consent(page, "allow"), http.StatusBadRequest)
}

// TestLoginEndsMeanwhile shows that a person signs in again if the login ends elsewhere while a page asks
// for consent, or whether to link an account. The same request is then answered.
func TestLoginEndsMeanwhile(t *testing.T) {
	f := federate(t, nil)
	thirdParty, _ := f.client(func(n *idp.Client) { n.FirstParty = false })
	b := f.newBrowser()
	end := func(page reply, form string) string {
		t.Helper()
		wantText(t, "the page", page, `action="`+form+`"`)
		must(t, f.fabric.Subscribers.Revoke(t.Context(), f.project.ID, f.ada.ID))
		f.pass(time.Second)
		return form + "?id=" + hiddenID.FindStringSubmatch(page.body)[1]
	}

	consent := b.logIn(b.authorize(request(thirdParty)), email, secret)
	path := end(consent, "/consent")
	wantText(t, "the consent page, loaded again", b.get(path), `id="login-submit"`)
	again := b.consent(consent, "allow")
	wantText(t, "an answer after the login ended", again, `id="login-submit"`)
	consent = b.logIn(again, email, secret)
	done := b.consent(consent, "allow")
	wantCode(t, "consent after a new login", done)
	wantParam(t, "consent after a new login", done, "state", "s")

	b = f.newBrowser()
	link := b.logIn(f.signIn(b, f.ada.Email), email, secret)
	path = end(link, "/login/link")
	wantText(t, "the link page, loaded again", b.get(path), `id="login-submit"`)
	form := link.hiddenFields()
	form.Set("answer", "yes")
	again = b.post("/login/link", form)
	wantText(t, "linking after the login ended", again, `id="login-submit"`)
	form = b.logIn(again, email, secret).hiddenFields()
	form.Set("answer", "yes")
	wantCode(t, "linking after a new login", b.post("/login/link", form))
}

// TestConsentRevoked shows that revoking a consent ends all of the client's tokens and
// unredeemed codes, and that the client must ask again. Other clients are not affected.
func TestConsentRevoked(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		thirdParty := func(n *idp.Client) {
			n.FirstParty, n.AccessToken, n.ResponseTypes = false, format, []string{"code", "id_token"}
		}
		c, _ := w.client(thirdParty)
		other, _ := w.client(thirdParty)

		b := w.newBrowser()
		allow := func(c idp.Client) map[string]any {
			t.Helper()
			page := b.authorize(request(c, "scope", "openid offline_access"))
			if strings.Contains(page.body, `id="login-submit"`) {
				page = b.logIn(page, email, secret)
			}
			return w.redeem(c, b.consent(page, "allow").param("code")).json(t)
		}

		tokens, others := allow(c), allow(other)
		code := b.code(c)

		// Tokens, refresh tokens and codes of the client have ended.
		must(t, w.idp.Consents.Revoke(t.Context(), w.ada.ID, c.ID))
		w.lives(string(format)+": the client's", false, tokens)
		refreshed := w.refresh(c, text(tokens["refresh_token"]))
		wantStatus(t, "a refresh after the consent was revoked", refreshed, http.StatusBadRequest)
		wantError(t, "a refresh after the consent was revoked", refreshed, "invalid_grant")
		redeemed := w.redeem(c, code)
		wantStatus(t, "a code from before the consent was revoked", redeemed, http.StatusBadRequest)
		wantError(t, "a code from before the consent was revoked", redeemed, "invalid_grant")

		// The client must ask for consent again, even for ID tokens.
		silent := b.authorize(request(c, "prompt", "none"))
		wantParam(t, "a code after the consent was revoked", silent, "error", "consent_required")
		silent = b.authorize(implicit(c, "prompt", "none"))
		wantParam(t, "an ID token after the consent was revoked", silent, "error", "consent_required")

		// The other client is not affected.
		w.lives(string(format)+": another client's", true, others)
		refreshed = w.refresh(other, text(others["refresh_token"]))
		wantStatus(t, "another client's refresh", refreshed, http.StatusOK)

		// There is no consent to revoke until it is given again.
		if err := w.idp.Consents.Revoke(t.Context(), w.ada.ID, c.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("%s: revoking again: %v, want not found", format, err)
		}
		w.lives(string(format)+": after a new consent, the client's", true, allow(c))
	}
}

// TestConsentOfFirstParty shows that first-party clients need no consent. Revoking their consent
// still ends their tokens.
func TestConsentOfFirstParty(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	tokens := w.tokens(c, "scope", "openid offline_access")
	must(t, w.idp.Consents.Revoke(t.Context(), w.ada.ID, c.ID))
	wantError(t, "a refresh of a revoked grant", w.refresh(c, text(tokens["refresh_token"])), "invalid_grant")
	w.tokens(c)
}
