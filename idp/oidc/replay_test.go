package oidc_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/idp"
)

// asserted returns form with a new client assertion of the bank.
func (b bank) asserted(t *testing.T, form url.Values) url.Values {
	t.Helper()
	return with(form, "client_assertion", b.assertion(t), "client_assertion_type", idp.AssertionType)
}

// TestReplayedRedemption shows that an assertion, a proof and a code are used up together. A thief
// who repeats a client's whole request gets no tokens, and does not revoke the client's tokens.
// This is also true after the session store was emptied.
func TestReplayedRedemption(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	form, proof := b.asserted(t, b.redemption(b.code(t))), b.tokenProof()
	set := w.postProven("/oauth/token", proof, form).json(t)
	token := text(set["access_token"])
	if set["token_type"] != "DPoP" {
		t.Fatalf("the tokens are %v, want tokens of type DPoP", set)
	}

	userinfo := func() reply { return b.userinfo("DPoP", token, b.proof("GET", "/oauth/userinfo", token)) }
	replay := func(name string) {
		t.Helper()
		wantInvalidClient(t, name+", the same request", w.postProven("/oauth/token", proof, form))
		withProof := w.postProven("/oauth/token", b.tokenProof(), form)
		wantInvalidClient(t, name+", the same request with a new proof", withProof)
		withCode := w.postProven("/oauth/token", proof, b.asserted(t, b.redemption(b.code(t))))
		wantStatus(t, name+", the same proof with a new code", withCode, http.StatusBadRequest)
		wantError(t, name+", the same proof with a new code", withCode, "invalid_dpop_proof")
		wantStatus(t, name+", userinfo", userinfo(), http.StatusOK)
	}

	replay("at once")
	w.empty()
	replay("after the session store was emptied")

	// If the client itself uses the code again, with a new assertion and a new proof, its tokens
	// are revoked (RFC 9700, section 4.5).
	again := w.postProven("/oauth/token", b.tokenProof(), b.asserted(t, form))
	wantError(t, "the same code", again, "invalid_grant")
	wantStatus(t, "userinfo after the code was replayed", userinfo(), http.StatusUnauthorized)
}

// TestConcurrentReplays shows that only one of several identical concurrent requests gets tokens,
// and that these tokens are valid.
func TestConcurrentReplays(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	form, proof := b.asserted(t, b.redemption(b.code(t))), b.tokenProof()

	replies := make([]reply, 8)
	var requests sync.WaitGroup
	for i := range replies {
		requests.Go(func() { replies[i] = w.postProven("/oauth/token", proof, form) })
	}
	requests.Wait()

	var tokens []string
	for _, got := range replies {
		if got.status == http.StatusOK {
			tokens = append(tokens, text(got.json(t)["access_token"]))
			continue
		}
		wantError(t, "a replay", got, "invalid_client")
	}

	if len(tokens) != 1 {
		t.Fatalf("%d of %d identical requests got tokens, want 1", len(tokens), len(replies))
	}
	info := b.userinfo("DPoP", tokens[0], b.proof("GET", "/oauth/userinfo", tokens[0]))
	wantStatus(t, "userinfo", info, http.StatusOK)
}

// TestReplayedRefresh shows that a thief who repeats the whole request for a refresh does not get
// the new tokens and does not revoke the grant. This applies whether or not the client's tokens are
// rotated.
func TestReplayedRefresh(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	token := text(b.post(t, "/oauth/token", b.redemption(b.code(t))).json(t)["refresh_token"])
	kept := b.asserted(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
	proof := b.tokenProof()
	wantStatus(t, "refreshing", w.postProven("/oauth/token", proof, kept), http.StatusOK)
	wantInvalidClient(t, "the bank's request again", w.postProven("/oauth/token", proof, kept))
	wantStatus(t, "the bank's next refresh", b.post(t, "/oauth/token", kept), http.StatusOK)

	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "offline_access"} })
	app := w.newHolder()
	first := app.tokens(c, w.newBrowser().code(c, "scope", "openid offline_access")).json(t)
	form := url.Values{
		"grant_type":    {"refresh_token"},
		"client_id":     {c.ID},
		"refresh_token": {text(first["refresh_token"])},
	}
	proof = app.tokenProof()
	next := w.postProven("/oauth/token", proof, form).json(t)
	for range 2 { // the second time after the session store was emptied
		again := w.postProven("/oauth/token", proof, form)
		wantError(t, "the app's request again", again, "invalid_dpop_proof")
		w.empty()
	}

	form.Set("refresh_token", text(next["refresh_token"]))
	wantStatus(t, "the app's next refresh", w.postProven("/oauth/token", app.tokenProof(), form), http.StatusOK)
}

// TestInventedCodeWritesNothing shows that a request with an invented code or refresh token does
// not use up its proof, because anyone can make this request without a secret. A request with a
// real code uses up its proof.
func TestInventedCodeWritesNothing(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "offline_access"} })
	proof := w.newHolder().tokenProof()
	redeem := func(code string, pairs ...string) reply {
		return w.postProven("/oauth/token", proof, with(redemption(c, code), pairs...))
	}
	refresh := func(token string) reply {
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID}, "refresh_token": {token}}
		return w.postProven("/oauth/token", proof, form)
	}

	unissued := base64.RawURLEncoding.EncodeToString(make([]byte, 16)) + "." + strings.Repeat("A", 26)
	for name, got := range map[string]reply{
		"a code":                      redeem("x"),
		"a sealed code":               redeem("x..y"),
		"a stored code":               redeem(strings.Repeat("A", 26)),
		"a token":                     refresh("x"),
		"a token of an unknown grant": refresh(unissued),
	} {
		wantStatus(t, name, got, http.StatusBadRequest)
		wantError(t, name, got, "invalid_grant")
	}

	code := w.newBrowser().code(c, "scope", "openid offline_access")
	refused := redeem(code, "code_verifier", strings.Repeat("x", 43))
	wantError(t, "the wrong verifier", refused, "invalid_grant")
	wantError(t, "the proof of a refused request with a real code", redeem(code), "invalid_dpop_proof")
}

// TestRefusedRequestUsesUp shows that a refused request uses up its assertion and its proof.
func TestRefusedRequestUsesUp(t *testing.T) {
	w := newWorld(t)
	b := w.newBank(t, nil)
	for name, form := range map[string]url.Values{
		"an unknown code":             b.redemption("x"),
		"an old refresh token":        {"grant_type": {"refresh_token"}, "refresh_token": {"x"}},
		"a grant that it may not use": {"grant_type": {"client_credentials"}},
	} {
		form, proof := b.asserted(t, form), b.tokenProof()
		wantStatus(t, name, w.postProven("/oauth/token", proof, form), http.StatusBadRequest)
		good := with(b.redemption(b.code(t)), "client_assertion", form.Get("client_assertion"),
			"client_assertion_type", idp.AssertionType)
		wantInvalidClient(t, name+", then its assertion", w.postProven("/oauth/token", b.tokenProof(), good))
	}

	// A pushed request uses up both as well.
	form, proof := b.asserted(t, request(b.c, "scope", "")), b.proof("POST", "/oauth/par", "")
	wantError(t, "pushing without a scope", w.postProven("/oauth/par", proof, form), "invalid_scope")
	again := w.postProven("/oauth/par", b.proof("POST", "/oauth/par", ""), with(form, "scope", "openid"))
	wantInvalidClient(t, "pushing again", again)
	sameProof := w.postProven("/oauth/par", proof, b.asserted(t, request(b.c)))
	wantError(t, "pushing with the same proof", sameProof, "invalid_dpop_proof")
}

// TestPushedForms shows that a pushed request works in the same way whether it is stored in its
// reference or in the session store. Each request is answered only once, even if the session store
// was emptied.
func TestPushedForms(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for name, tt := range map[string]struct {
		state      string
		wantSealed bool // whether the request is stored in its reference
	}{
		"a short request": {state: "s", wantSealed: true},
		"a long request":  {state: strings.Repeat("s", 600), wantSealed: false},
	} {
		uri, b := w.pushed(c, "state", tt.state), w.newBrowser()
		if sealed := strings.Contains(uri, ".."); sealed != tt.wantSealed {
			t.Errorf("%s is stored in its reference: %t, want %t; it is %s", name, sealed, tt.wantSealed, uri)
		}
		if len(uri) > 1100 {
			t.Errorf("the reference of %s has %d bytes, want at most 1100", name, len(uri))
		}
		wantCode(t, name, b.logIn(b.authorize(reference(c, uri)), email, secret))

		w.empty()
		if again := b.authorize(reference(c, uri)); again.location != nil {
			t.Errorf("%s, a second time, redirects to %v, want a page", name, again.location)
		}
	}

	other, _ := w.client(nil)
	stolen := w.newBrowser().authorize(reference(other, w.pushed(c)))
	wantStatus(t, "a reference of another client", stolen, http.StatusBadRequest)
	if stolen.location != nil {
		t.Errorf("a reference of another client redirects to %v, want a page", stolen.location)
	}
}
