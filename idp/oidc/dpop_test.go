package oidc_test

import (
	"crypto"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
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

// newHolder returns a holder with a new key.
func (w *world) newHolder() holder { return holder{w: w, key: newKey(w.t, jose.ES256)} }

// thumbprint identifies the holder's key in requests and tokens (RFC 7638).
func (h holder) thumbprint() string {
	sum, err := (&jose.JSONWebKey{Key: h.key.Public()}).Thumbprint(crypto.SHA256)
	must(h.w.t, err)
	return base64.RawURLEncoding.EncodeToString(sum)
}

// proof returns a proof for a request with the access token, which may be "". pairs contains
// additional claims.
func (h holder) proof(method, path, token string, pairs ...any) string {
	h.w.t.Helper()
	claims := map[string]any{
		"jti": rand.Text(),
		"htm": method,
		"htu": h.w.url + path,
		"iat": h.w.now().Unix(),
	}
	if token != "" {
		claims["ath"] = dpop.Hash(token)
	}
	for pair := range slices.Chunk(pairs, 2) {
		claims[pair[0].(string)] = pair[1]
	}
	raw, err := json.Marshal(claims)
	must(h.w.t, err)

	options := (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: h.key}, options)
	must(h.w.t, err)
	jws, err := signer.Sign(raw)
	must(h.w.t, err)
	proof, err := jws.CompactSerialize()
	must(h.w.t, err)
	return proof
}

// tokenProof returns a proof for the token endpoint.
func (h holder) tokenProof(pairs ...any) string {
	h.w.t.Helper()
	return h.proof("POST", "/oauth/token", "", pairs...)
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
	return w.newBrowser().do(req)
}

// tokens redeems a code with a proof by the holder.
func (h holder) tokens(c idp.Client, code string) reply {
	h.w.t.Helper()
	return h.w.postProven("/oauth/token", h.tokenProof(), redemption(c, code))
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
	return h.w.newBrowser().do(req)
}

// TestDPoP shows that tokens of both formats are rejected without a proof if they were requested with
// one.
func TestDPoP(t *testing.T) {
	w := newWorld(t)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		t.Run(string(format), func(t *testing.T) {
			c, clientSecret := w.client(func(n *idp.Client) {
				n.Type, n.AuthMethod, n.AccessToken = idp.Web, idp.AuthPost, format
				n.Scopes = []string{"openid", "offline_access"}
			})
			authenticated := url.Values{"client_id": {c.ID}, "client_secret": {clientSecret}}
			owner, thief := w.newHolder(), w.newHolder()

			form := redemption(c, w.newBrowser().code(c, "scope", "openid offline_access"))
			maps.Copy(form, authenticated)
			got := w.postProven("/oauth/token", owner.tokenProof(), form)
			tokens := got.json(t)
			if tokens["token_type"] != "DPoP" {
				t.Fatalf("the token_type is %v, want DPoP", tokens["token_type"])
			}
			nonce := got.header.Get("DPoP-Nonce")
			if nonce == "" {
				t.Fatal("the token response has no DPoP-Nonce, want one")
			}
			token := text(tokens["access_token"])
			wantProofChecked(t, owner, thief, token, nonce)

			unbound := w.redeem(c, w.newBrowser().code(c), "client_secret", clientSecret).json(t)
			info := w.userinfo(text(unbound["access_token"]))
			wantStatus(t, "a token that is not bound", info, http.StatusOK)

			form = url.Values{"token": {token}}
			maps.Copy(form, authenticated)
			introspected := w.newBrowser().post("/oauth/introspect", form).json(t)
			if introspected["token_type"] != "DPoP" {
				t.Errorf("introspection: the token_type is %v, want DPoP", introspected["token_type"])
			}
			cnf, _ := introspected["cnf"].(map[string]any)
			if cnf["jkt"] != owner.thumbprint() {
				t.Errorf("introspection: the jkt is %v, want %s", cnf["jkt"], owner.thumbprint())
			}

			// The refresh token is bound to the same key, and so are the tokens from a refresh.
			form = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text(tokens["refresh_token"])}}
			maps.Copy(form, authenticated)
			unproven := w.postProven("/oauth/token", "", form)
			wantError(t, "refreshing without a proof", unproven, "invalid_grant")
			stolen := w.postProven("/oauth/token", thief.tokenProof(), form)
			wantError(t, "refreshing with a different key", stolen, "invalid_grant")
			refreshed := w.postProven("/oauth/token", owner.tokenProof(), form).json(t)
			if refreshed["token_type"] != "DPoP" {
				t.Errorf("refreshing: the token_type is %v, want DPoP", refreshed["token_type"])
			}
		})
	}
}

// wantProofChecked checks with which proofs the owner of a token can use it. nonce is the current
// nonce.
func wantProofChecked(t *testing.T, owner, thief holder, token, nonce string) {
	t.Helper()
	prove := func(h holder, token string, pairs ...any) string {
		return h.proof("GET", "/oauth/userinfo", token, pairs...)
	}
	proof := prove(owner, token)

	for _, tt := range []struct {
		name, scheme, proof string
		wantError           string // in WWW-Authenticate; "" means success
	}{
		{name: "with a proof", scheme: "DPoP", proof: proof},
		{name: "with the same proof", scheme: "DPoP", proof: proof, wantError: "invalid_dpop_proof"},
		{name: "as Bearer", scheme: "Bearer", proof: "", wantError: "invalid_token"},
		{name: "as Bearer, proven", scheme: "Bearer", proof: prove(owner, token), wantError: "invalid_token"},
		{name: "without a proof", scheme: "DPoP", proof: "", wantError: "invalid_dpop_proof"},
		{name: "by a different key", scheme: "DPoP", proof: prove(thief, token), wantError: "invalid_dpop_proof"},
		{name: "for another token", scheme: "DPoP", proof: prove(owner, "x"), wantError: "invalid_dpop_proof"},
		{
			name:      "with a stale nonce",
			scheme:    "DPoP",
			proof:     prove(owner, token, "nonce", "x"),
			wantError: "use_dpop_nonce",
		},
		{name: "with a recent nonce", scheme: "DPoP", proof: prove(owner, token, "nonce", nonce)},
	} {
		got := owner.userinfo(tt.scheme, token, tt.proof)
		if tt.wantError == "" {
			wantStatus(t, tt.name, got, http.StatusOK)
			continue
		}
		wantStatus(t, tt.name, got, http.StatusUnauthorized)
		if challenge := got.header.Get("WWW-Authenticate"); !strings.Contains(challenge, tt.wantError) {
			t.Errorf("%s: WWW-Authenticate %q, want %s in it", tt.name, challenge, tt.wantError)
		}
	}
}

// TestDPoPCode shows that dpop_jkt binds a code to a key.
func TestDPoPCode(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	owner, thief := w.newHolder(), w.newHolder()

	newCode := func() string { return w.newBrowser().code(c, "dpop_jkt", owner.thumbprint()) }
	wantError(t, "a different key than dpop_jkt", thief.tokens(c, newCode()), "invalid_grant")
	wantError(t, "no key, but dpop_jkt", w.redeem(c, newCode()), "invalid_grant")
	wantStatus(t, "the key of dpop_jkt", owner.tokens(c, newCode()), http.StatusOK)
	invalid := w.newBrowser().authorize(request(c, "dpop_jkt", "x"))
	wantParam(t, "an invalid dpop_jkt", invalid, "error", "invalid_request")
}

// TestDPoPPushedRequest shows that the code of a pushed request is bound to the key of the
// request's proof.
func TestDPoPPushedRequest(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	owner, thief := w.newHolder(), w.newHolder()

	push := func(proof string, pairs ...string) reply {
		return w.postProven("/oauth/par", proof, request(c, pairs...))
	}
	codeOf := func(pushed reply) string {
		b := w.newBrowser()
		uri := text(pushed.json(t)["request_uri"])
		page := b.authorize(reference(c, uri))
		return b.logIn(page, email, secret).param("code")
	}
	proof := func(pairs ...any) string { return owner.proof("POST", "/oauth/par", "", pairs...) }

	code := codeOf(push(proof()))
	wantError(t, "a different key than that of the pushed request", thief.tokens(c, code), "invalid_grant")
	code = codeOf(push(proof(), "dpop_jkt", owner.thumbprint()))
	wantStatus(t, "the key of the pushed request", owner.tokens(c, code), http.StatusOK)

	anHourAgo := w.now().Add(-time.Hour).Unix()
	for name, got := range map[string]reply{
		"a dpop_jkt of another key": push(proof(), "dpop_jkt", thief.thumbprint()),
		"a proof for another URL":   push(owner.tokenProof()),
		"an old proof":              push(proof("iat", anHourAgo)),
	} {
		wantStatus(t, "pushing with "+name, got, http.StatusBadRequest)
		wantError(t, "pushing with "+name, got, "invalid_dpop_proof")
	}
}

// TestDPoPRequired shows that a client whose tokens must be bound gets no unbound tokens.
func TestDPoPRequired(t *testing.T) {
	w := newWorld(t)
	c, clientSecret := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.Scopes = idp.Service, idp.AuthPost, []string{"Voice"}
		n.RedirectURIs, n.DPoPBound = nil, true
	})
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID}, "client_secret": {clientSecret}}
	wantError(t, "no proof", w.postProven("/oauth/token", "", form), "invalid_dpop_proof")

	h := w.newHolder()
	got := w.postProven("/oauth/token", h.tokenProof("nonce", "x"), form)
	wantStatus(t, "an unknown nonce", got, http.StatusBadRequest)
	wantError(t, "an unknown nonce", got, "use_dpop_nonce")

	nonce := got.header.Get("DPoP-Nonce")
	proof := h.tokenProof("nonce", nonce)
	got = w.postProven("/oauth/token", proof, form)
	if kind := got.json(t)["token_type"]; kind != "DPoP" {
		t.Errorf("with the nonce, the token_type is %v, want DPoP", kind)
	}
	wantError(t, "the same proof again", w.postProven("/oauth/token", proof, form), "invalid_dpop_proof")

	// Another node also accepts the nonce, and knows which proofs have been used.
	verifyElsewhere := func(proof string) error {
		node := dpop.New(dpop.Config{
			Sessions: w.idp.Sessions,
			Key:      w.second().Ring.Derive,
			Origins:  []string{w.url},
			Now:      w.now,
		})
		use := dpop.Use{Method: "GET", Path: "/oauth/userinfo"}
		_, err := node.Verify(t.Context(), []string{proof}, use)
		return err
	}
	proof = h.proof("GET", "/oauth/userinfo", "", "nonce", nonce)
	if err := verifyElsewhere(proof); err != nil {
		t.Errorf("another node refuses the nonce: %v", err)
	}
	if err := verifyElsewhere(proof); err != dpop.ErrUsed {
		t.Errorf("another node's error for a used proof is %v, want %v", err, dpop.ErrUsed)
	}
}
