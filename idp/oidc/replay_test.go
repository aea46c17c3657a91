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

// tokenProof returns a new proof for the token endpoint.
func (b bank) tokenProof() string { return b.proof("POST", "/oauth/token", "") }

// TestReplayedRedemption shows that an assertion, a proof and a code are used up together. A thief
// who repeats a client's whole request gets no tokens, and does not revoke the client's tokens.
// This is also true after the session store was emptied.
func TestReplayedRedemption(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	form, proof := b.asserted(t, b.redemption(b.code(t))), b.tokenProof()
	set := w.postProven("/oauth/token", proof, form).json(t)
	token := text(set["access_token"])
	if set["token_type"] != "DPoP" {
		t.Fatalf("the tokens are %v, want tokens of type DPoP", set)
	}

	replay := func(name string) {
		t.Helper()
		wantInvalidClient(t, name+", the same request", w.postProven("/oauth/token", proof, form))
		wantInvalidClient(t, name+", the same request with a new proof",
			w.postProven("/oauth/token", b.tokenProof(), form))
		got := w.postProven("/oauth/token", proof, b.asserted(t, b.redemption(b.code(t))))
		if got.status != http.StatusBadRequest || got.json(t)["error"] != "invalid_dpop_proof" {
			t.Errorf("%s, the same proof with a new code: %d %s, want invalid_dpop_proof", name, got.status, got.body)
		}
		if got := b.userinfo("DPoP", token, b.proof("GET", "/oauth/userinfo", token)); got.status != http.StatusOK {
			t.Errorf("%s: userinfo: %d %s, want 200", name, got.status, got.body)
		}
	}

	replay("at once")
	w.empty()
	replay("after the session store was emptied")

	// If the client itself uses the code again, with a new assertion and a new proof, its tokens
	// are revoked (RFC 9700, section 4.5).
	got := w.postProven("/oauth/token", b.tokenProof(), b.asserted(t, form))
	if got.json(t)["error"] != "invalid_grant" {
		t.Errorf("the same code: %d %s, want invalid_grant", got.status, got.body)
	}
	if got := b.userinfo("DPoP", token, b.proof("GET", "/oauth/userinfo", token)); got.status != 401 {
		t.Errorf("userinfo after the code was replayed: %d %s, want 401", got.status, got.body)
	}
}

// TestConcurrentReplays shows that only one of several identical concurrent requests gets tokens,
// and that these tokens are valid.
func TestConcurrentReplays(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	form, proof := b.asserted(t, b.redemption(b.code(t))), b.tokenProof()

	replies := make([]reply, 8)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = w.postProven("/oauth/token", proof, form) })
	}
	all.Wait()

	var tokens []string
	for _, got := range replies {
		if got.status == http.StatusOK {
			tokens = append(tokens, text(got.json(t)["access_token"]))
		} else if got.json(t)["error"] != "invalid_client" {
			t.Errorf("a replay: %d %s, want invalid_client", got.status, got.body)
		}
	}

	if len(tokens) != 1 {
		t.Fatalf("%d of %d identical requests got tokens, want 1", len(tokens), len(replies))
	}
	got := b.userinfo("DPoP", tokens[0], b.proof("GET", "/oauth/userinfo", tokens[0]))
	if got.status != http.StatusOK {
		t.Errorf("userinfo: %d %s, want 200", got.status, got.body)
	}
}

// TestReplayedRefresh shows that a thief who repeats the whole request for a refresh does not get
// the new tokens and does not revoke the grant. This applies whether or not the client's tokens are
// rotated.
func TestReplayedRefresh(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	token := text(b.post(t, "/oauth/token", b.redemption(b.code(t))).json(t)["refresh_token"])
	kept := b.asserted(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
	proof := b.tokenProof()
	if got := w.postProven("/oauth/token", proof, kept); got.status != http.StatusOK {
		t.Fatalf("refreshing: %d %s, want 200", got.status, got.body)
	}
	wantInvalidClient(t, "the bank's request again", w.postProven("/oauth/token", proof, kept))
	if got := b.post(t, "/oauth/token", kept); got.status != http.StatusOK {
		t.Errorf("the bank's next refresh: %d %s, want 200", got.status, got.body)
	}

	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "offline_access"} })
	app := w.holder()
	first := app.tokens(c, w.browser().code(c, "scope", "openid offline_access")).json(t)
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID},
		"refresh_token": {text(first["refresh_token"])}}
	proof = app.proof("POST", "/oauth/token", "")
	next := w.postProven("/oauth/token", proof, form).json(t)
	for range 2 { // the second time after the session store was emptied
		if got := w.postProven("/oauth/token", proof, form); got.json(t)["error"] != "invalid_dpop_proof" {
			t.Errorf("the app's request again: %d %s, want invalid_dpop_proof", got.status, got.body)
		}
		w.empty()
	}

	form.Set("refresh_token", text(next["refresh_token"]))
	got := w.postProven("/oauth/token", app.proof("POST", "/oauth/token", ""), form)
	if got.status != http.StatusOK {
		t.Errorf("the app's next refresh: %d %s, want 200", got.status, got.body)
	}
}

// TestInventedCodeWritesNothing shows that a request with an invented code or refresh token does
// not use up its proof, because anyone can make this request without a secret. A request with a
// real code uses up its proof.
func TestInventedCodeWritesNothing(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(n *idp.Client) { n.Scopes = []string{"openid", "offline_access"} })
	h := w.holder()
	proof := h.proof("POST", "/oauth/token", "")
	redeem := func(code, verifier string) reply {
		return w.postProven("/oauth/token", proof, url.Values{"grant_type": {"authorization_code"}, "code": {code},
			"client_id": {c.ID}, "redirect_uri": {callback}, "code_verifier": {verifier}})
	}

	refresh := func(token string) reply {
		return w.postProven("/oauth/token", proof, url.Values{"grant_type": {"refresh_token"},
			"client_id": {c.ID}, "refresh_token": {token}})
	}

	unissued := base64.RawURLEncoding.EncodeToString(make([]byte, 16)) + "." + strings.Repeat("A", 26)
	for name, got := range map[string]reply{
		"a code": redeem("x", verifier), "a sealed code": redeem("x..y", verifier),
		"a stored code": redeem(strings.Repeat("A", 26), verifier),
		"a token":       refresh("x"), "a token of an unknown grant": refresh(unissued),
	} {
		if got.status != http.StatusBadRequest || got.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s: %d %s, want invalid_grant", name, got.status, got.body)
		}
	}

	code := w.browser().code(c, "scope", "openid offline_access")
	if got := redeem(code, strings.Repeat("x", 43)); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("the wrong verifier: %d %s, want invalid_grant", got.status, got.body)
	}
	if got := redeem(code, verifier); got.json(t)["error"] != "invalid_dpop_proof" {
		t.Errorf("the proof of a refused request with a real code: %d %s, want invalid_dpop_proof",
			got.status, got.body)
	}
}

// TestRefusedRequestUsesUp shows that a refused request uses up its assertion and its proof.
func TestRefusedRequestUsesUp(t *testing.T) {
	w := newWorld(t)
	b := w.bank(t, nil)
	for name, form := range map[string]url.Values{
		"an unknown code":       b.redemption("x"),
		"an old refresh token":  {"grant_type": {"refresh_token"}, "refresh_token": {"x"}},
		"a grant it may not do": {"grant_type": {"client_credentials"}},
	} {
		form, proof := b.asserted(t, form), b.tokenProof()
		if got := w.postProven("/oauth/token", proof, form); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", name, got.status, got.body)
		}
		good := with(b.redemption(b.code(t)), "client_assertion", form.Get("client_assertion"),
			"client_assertion_type", idp.AssertionType)
		wantInvalidClient(t, name+", then its assertion", w.postProven("/oauth/token", b.tokenProof(), good))
	}

	// A pushed request uses up both as well.
	form, proof := b.asserted(t, request(b.c, "scope", "")), b.proof("POST", "/oauth/par", "")
	if got := w.postProven("/oauth/par", proof, form); got.json(t)["error"] != "invalid_scope" {
		t.Errorf("pushing without a scope: %d %s, want invalid_scope", got.status, got.body)
	}
	wantInvalidClient(t, "pushing again", w.postProven("/oauth/par", b.proof("POST", "/oauth/par", ""),
		with(form, "scope", "openid")))
	got := w.postProven("/oauth/par", proof, b.asserted(t, request(b.c)))
	if got.json(t)["error"] != "invalid_dpop_proof" {
		t.Errorf("pushing with the same proof: %d %s, want invalid_dpop_proof", got.status, got.body)
	}
}

// TestPushedForms shows that a pushed request works in the same way whether it is stored in its
// reference or in the session store. Each request is answered only once, even if the session store
// was emptied.
func TestPushedForms(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	for name, state := range map[string]string{"sealed": "s", "stored": strings.Repeat("s", 600)} {
		uri, b := w.pushed(c, "state", state), w.browser()
		if sealed := strings.Contains(uri, ".."); sealed != (name == "sealed") || len(uri) > 1100 {
			t.Errorf("%s: the reference is %s", name, uri)
		}
		page := b.authorize(reference(c, uri))
		if got := b.logIn(page, email, secret); got.param("code") == "" {
			t.Fatalf("%s: %d %v, want a code", name, got.status, got.parameters())
		}
		w.empty()
		if got := b.authorize(reference(c, uri)); got.location != nil {
			t.Errorf("%s, a second time: %d %v, want no redirect", name, got.status, got.location)
		}
	}

	other, _ := w.client(nil)
	if got := w.browser().authorize(reference(other, w.pushed(c))); got.status != 400 || got.location != nil {
		t.Errorf("sealed, by another client: %d %v, want 400", got.status, got.location)
	}
}
