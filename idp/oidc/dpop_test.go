package oidc_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/dpop"
)

// A holder makes proofs with its own key.
type holder struct {
	w   *world
	key crypto.Signer
}

func (w *world) holder() holder { return holder{w, newKey(w.t, jose.ES256)} }

func (h holder) thumbprint() string {
	sum, err := (&jose.JSONWebKey{Key: h.key.Public()}).Thumbprint(crypto.SHA256)
	must(h.w.t, err)
	return base64.RawURLEncoding.EncodeToString(sum)
}

// proof returns a proof for a request with the access token, which may be "". pairs contains
// additional claims.
func (h holder) proof(method, path, token string, pairs ...any) string {
	h.w.t.Helper()
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": h.w.url + path, "iat": h.w.now().Unix()}
	if token != "" {
		claims["ath"] = dpop.Hash(token)
	}
	for i := 0; i < len(pairs); i += 2 {
		claims[pairs[i].(string)] = pairs[i+1]
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: h.key},
		(&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"))
	must(h.w.t, err)
	raw, err := json.Marshal(claims)
	must(h.w.t, err)
	jws, err := signer.Sign(raw)
	must(h.w.t, err)
	text, err := jws.CompactSerialize()
	must(h.w.t, err)
	return text
}

// postProven posts a form with a proof.
func (w *world) postProven(path, proof string, form url.Values) reply {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.url+path, strings.NewReader(form.Encode()))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if proof != "" {
		req.Header.Set("DPoP", proof)
	}
	return w.browser().do(req)
}

// tokens redeems a code with a proof by the holder.
func (h holder) tokens(c idp.Client, code string) reply {
	h.w.t.Helper()
	return h.w.postProven("/oauth/token", h.proof("POST", "/oauth/token", ""), url.Values{
		"grant_type": {"authorization_code"}, "client_id": {c.ID}, "code": {code},
		"redirect_uri": {c.RedirectURIs[0]}, "code_verifier": {verifier}})
}

// userinfo asks for userinfo with an access token and a proof, which may be "".
func (h holder) userinfo(scheme, token, proof string) reply {
	h.w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, h.w.url+"/oauth/userinfo", nil)
	must(h.w.t, err)
	req.Header.Set("Authorization", scheme+" "+token)
	if proof != "" {
		req.Header.Set("DPoP", proof)
	}
	return h.w.browser().do(req)
}

// TestDPoP shows that tokens that were requested with a proof, in both formats, are rejected
// without one.
func TestDPoP(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, secret := w.client(func(n *idp.Client) {
			n.Type, n.AuthMethod, n.AccessToken = idp.Web, idp.AuthPost, format
			n.Scopes = []string{"openid", "offline_access"}
		})
		h, thief := w.holder(), w.holder()
		got := w.postProven("/oauth/token", h.proof("POST", "/oauth/token", ""), url.Values{
			"grant_type": {"authorization_code"}, "client_id": {c.ID}, "client_secret": {secret},
			"code": {w.browser().code(c, "scope", "openid offline_access")}, "code_verifier": {verifier}})
		set := got.json(t)
		token := text(set["access_token"])
		if set["token_type"] != "DPoP" || got.header.Get("DPoP-Nonce") == "" {
			t.Fatalf("%s: %d %v %s, want DPoP tokens and a nonce", format, got.status, got.header, got.body)
		}
		proof := h.proof("GET", "/oauth/userinfo", token)

		userinfo := func(scheme, proof string) reply { return h.userinfo(scheme, token, proof) }
		get := func(h holder, token string, pairs ...any) string {
			return h.proof("GET", "/oauth/userinfo", token, pairs...)
		}

		for _, tt := range []struct {
			name   string
			reply  reply
			status int
			said   string
		}{
			{"with a proof", userinfo("DPoP", proof), 200, ""},
			{"with it again", userinfo("DPoP", proof), 401, "invalid_dpop_proof"},
			{"as Bearer", userinfo("Bearer", ""), 401, "invalid_token"},
			{"as Bearer, proven", userinfo("Bearer", get(h, token)), 401, "invalid_token"},
			{"without a proof", userinfo("DPoP", ""), 401, "invalid_dpop_proof"},
			{"by a different key", userinfo("DPoP", get(thief, token)), 401, "invalid_dpop_proof"},
			{"for another token", userinfo("DPoP", get(h, "x")), 401, "invalid_dpop_proof"},
			{"with a stale nonce", userinfo("DPoP", get(h, token, "nonce", "x")), 401, "use_dpop_nonce"},
			{"with a recent nonce", userinfo("DPoP", get(h, token, "nonce", got.header.Get("DPoP-Nonce"))), 200, ""},
		} {
			if tt.reply.status != tt.status || !strings.Contains(tt.reply.header.Get("WWW-Authenticate"), tt.said) {
				t.Errorf("%s %s: %d %v", format, tt.name, tt.reply.status, tt.reply.header)
			}
		}

		if other := w.userinfo(text(w.unbound(c, secret)["access_token"])); other.status != 200 {
			t.Errorf("%s: a token that is not bound: %d, want 200", format, other.status)
		}

		seen := w.browser().post("/oauth/introspect", url.Values{"client_id": {c.ID}, "client_secret": {secret},
			"token": {token}}).json(t)
		cnf, _ := seen["cnf"].(map[string]any)
		if seen["token_type"] != "DPoP" || cnf["jkt"] != h.thumbprint() {
			t.Errorf("%s: introspection %v, want the type DPoP and the key's thumbprint", format, seen)
		}

		// The refresh token is bound to the same key. The tokens from a refresh are also bound to
		// it.
		refresh := func(proof string) reply {
			return w.postProven("/oauth/token", proof, url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID},
				"client_secret": {secret}, "refresh_token": {text(set["refresh_token"])}})
		}
		other := thief.proof("POST", "/oauth/token", "")
		for name, proof := range map[string]string{"no proof": "", "a different key": other} {
			if got := refresh(proof); got.json(t)["error"] != "invalid_grant" {
				t.Errorf("%s: refreshing with %s: %s, want invalid_grant", format, name, got.body)
			}
		}
		if next := refresh(h.proof("POST", "/oauth/token", "")).json(t); next["token_type"] != "DPoP" {
			t.Errorf("%s: refreshing: %v, want DPoP tokens", format, next)
		}
	}
}

// unbound signs ada in to a client that has a secret, without a proof.
func (w *world) unbound(c idp.Client, secret string) map[string]any {
	w.t.Helper()
	return w.redeem(c, w.browser().code(c), "client_secret", secret).json(w.t)
}

// TestDPoPCode shows that dpop_jkt binds a code to a key.
func TestDPoPCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	h, thief := w.holder(), w.holder()

	newCode := func() string { return w.browser().code(c, "dpop_jkt", h.thumbprint()) }
	if got := thief.tokens(c, newCode()); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a different key than dpop_jkt: %s, want invalid_grant", got.body)
	}
	if got := w.redeem(c, newCode()); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("no key, but dpop_jkt: %s, want invalid_grant", got.body)
	}
	if got := h.tokens(c, newCode()); got.status != 200 {
		t.Errorf("the key of dpop_jkt: %s, want 200", got.body)
	}
	if got := w.browser().authorize(request(c, "dpop_jkt", "x")); got.param("error") != "invalid_request" {
		t.Errorf("an invalid dpop_jkt: %v, want invalid_request", got.parameters())
	}
}

// TestDPoPPushedRequest shows that the code of a pushed request is bound to the key of the
// request's proof.
func TestDPoPPushedRequest(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	h, thief := w.holder(), w.holder()

	push := func(proof string, pairs ...string) reply {
		return w.postProven("/oauth/par", proof, request(c, pairs...))
	}
	codeOf := func(pushed reply) string {
		b := w.browser()
		uri := text(pushed.json(t)["request_uri"])
		page := b.authorize(reference(c, uri))
		return b.logIn(page, email, secret).param("code")
	}
	proof := func() string { return h.proof("POST", "/oauth/par", "") }

	code := codeOf(push(proof()))
	if got := thief.tokens(c, code); got.json(t)["error"] != "invalid_grant" {
		t.Errorf("a different key than that of the pushed request: %s, want invalid_grant", got.body)
	}
	code = codeOf(push(proof(), "dpop_jkt", h.thumbprint()))
	if got := h.tokens(c, code); got.status != 200 {
		t.Errorf("the key of the pushed request: %s, want 200", got.body)
	}

	anHourAgo := w.now().Add(-time.Hour).Unix()
	for name, got := range map[string]reply{
		"a dpop_jkt of another key": push(proof(), "dpop_jkt", thief.thumbprint()),
		"a proof for another URL":   push(h.proof("POST", "/oauth/token", "")),
		"an old proof":              push(h.proof("POST", "/oauth/par", "", "iat", anHourAgo)),
	} {
		if got.status != 400 || got.json(t)["error"] != "invalid_dpop_proof" {
			t.Errorf("pushing with %s: %d %s, want invalid_dpop_proof", name, got.status, got.body)
		}
	}
}

// TestDPoPRequired shows that a client whose tokens must be bound gets no unbound tokens.
func TestDPoPRequired(t *testing.T) {
	w := newWorld(t)
	c, secret := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.Scopes = idp.Service, idp.AuthPost, []string{"Voice"}
		n.RedirectURIs, n.DPoPBound = nil, true
	})
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID}, "client_secret": {secret}}
	if got := w.postProven("/oauth/token", "", form); got.json(t)["error"] != "invalid_dpop_proof" {
		t.Errorf("no proof: %s, want invalid_dpop_proof", got.body)
	}

	got := w.postProven("/oauth/token", w.holder().proof("POST", "/oauth/token", "", "nonce", "x"), form)
	if got.status != 400 || got.json(t)["error"] != "use_dpop_nonce" {
		t.Errorf("an unknown nonce: %d %s, want use_dpop_nonce", got.status, got.body)
	}

	h := w.holder()
	proof := h.proof("POST", "/oauth/token", "", "nonce", got.header.Get("DPoP-Nonce"))
	if got := w.postProven("/oauth/token", proof, form); got.json(t)["token_type"] != "DPoP" {
		t.Errorf("with the nonce: %s, want a DPoP token", got.body)
	}

	if got := w.postProven("/oauth/token", proof, form); got.json(t)["error"] != "invalid_dpop_proof" {
		t.Errorf("the same proof again: %s, want invalid_dpop_proof", got.body)
	}

	// Another node also accepts the nonce, and knows which proofs have been used.
	second := dpop.New(dpop.Config{Sessions: w.idp.Sessions, Key: w.second().Ring.Derive, Origins: []string{w.url},
		Now: w.now})
	use := dpop.Use{Method: "GET", Path: "/oauth/userinfo"}
	proof = h.proof("GET", "/oauth/userinfo", "", "nonce", got.header.Get("DPoP-Nonce"))
	if _, err := second.Verify(context.Background(), []string{proof}, use); err != nil {
		t.Errorf("another node refuses the nonce: %v", err)
	}
	third := dpop.New(dpop.Config{Sessions: w.idp.Sessions, Key: w.second().Ring.Derive, Origins: []string{w.url},
		Now: w.now})
	if _, err := third.Verify(context.Background(), []string{proof}, use); err != dpop.ErrUsed {
		t.Errorf("another node and a used proof: %v, want %v", err, dpop.ErrUsed)
	}
}
