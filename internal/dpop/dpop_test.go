package dpop_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	sessions "github.com/selvage/selvage/internal/session/sql"
)

const (
	path  = "/oauth/userinfo"
	token = "an.access.token"
)

// A world is a verifier with a clock that tests can set.
type world struct {
	*dpop.Verifier
	config dpop.Config
	now    time.Time
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{now: time.Now()}
	store, err := sessions.Open(context.Background(), sessions.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w.config = dpop.Config{
		Sessions: store,
		Key:      func(purpose string) [32]byte { return sha256.Sum256([]byte(purpose)) },
		Origins:  []string{"https://id.example", "http://127.0.0.1:8080"},
		Now:      func() time.Time { return w.now },
	}
	w.Verifier = dpop.New(w.config)
	return w
}

var use = dpop.Use{Method: "GET", Path: path, Token: token}

// TestVerify has a case for each check of RFC 9449, section 4.3. A verifier that remembers the
// header of an earlier proof must refuse the same proofs as a new verifier.
func TestVerify(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	at := func(d time.Duration) int64 { return w.now.Add(d).Unix() }
	private, foreign := jose.JSONWebKey{Key: h.key}, jose.JSONWebKey{Key: newHolder(t).key.Public()}
	proof := func(pairs ...any) string { return h.proof(t, w.now, pairs...) }
	good := proof()
	parts := strings.Split(good, ".")
	head, payload, signature := parts[0], parts[1], parts[2]
	unsigned := "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6Im5vbmUifQ." + payload + "."

	for name, candidate := range map[string]string{
		"valid":                            good,
		"a query and a fragment":           proof("htu", "https://id.example"+path+"?a=b#c"),
		"upper case":                       proof("htu", "HTTPS://ID.EXAMPLE"+path),
		"the default port":                 proof("htu", "https://id.example:443"+path),
		"a different origin of the server": proof("htu", "http://127.0.0.1:8080"+path),
		"an iat of ten seconds ago":        proof("iat", at(-10*time.Second)),
		"an iat in nine seconds":           proof("iat", at(9*time.Second)),
		"a recent nonce":                   proof("nonce", w.Nonce()),
		"nbf, exp and unknown claims":      proof("nbf", at(0), "exp", at(time.Hour), "x", 1, ":y", 1),
	} {
		// A proof is valid only once, so each is passed to a new verifier only.
		got, err := dpop.New(w.config).Verify(t.Context(), []string{candidate}, use)
		if err != nil || got != h.thumbprint(t) {
			t.Errorf("%s: Verify = %q, %v, want the thumbprint of the key", name, got, err)
		}
	}

	for range 2 { // the second proof has a header that the verifier remembers
		got, err := w.Verify(t.Context(), []string{proof()}, use)
		if err != nil || got != h.thumbprint(t) {
			t.Fatalf("a valid proof: Verify = %q, %v, want the thumbprint of the key", got, err)
		}
	}

	checkRefused := func(code string, proofs map[string]string) {
		t.Helper()
		for name, candidate := range proofs {
			for _, v := range []*dpop.Verifier{dpop.New(w.config), w.Verifier} {
				_, err := v.Verify(t.Context(), []string{candidate}, use)
				if p := problem.First(err); p == nil || p.Code != code {
					t.Errorf("%s: Verify = %v, want the code %q", name, err, code)
				}
			}
		}
	}

	checkRefused("use_dpop_nonce", map[string]string{
		"a different nonce": proof("nonce", "x"),
		"an empty nonce":    proof("nonce", ""),
	})

	checkRefused("invalid_dpop_proof", map[string]string{
		"not a JWT":             "x",
		"unsigned":              unsigned,
		"an altered signature":  good[:len(good)-4] + "AAAA",
		"a short signature":     good[:len(good)-4],
		"no signature":          head + "." + payload + ".",
		"a different payload":   head + ".e30." + signature,
		"two parts":             head + "." + payload,
		"four parts":            good + ".e30",
		"a header alone":        head,
		"too long":              proof("x", strings.Repeat("x", 4000)),
		"no typ":                proof(":typ", nil),
		"a different typ":       proof(":typ", "JWT"),
		"no jwk":                proof(":jwk", nil),
		"a private jwk":         proof(":jwk", private),
		"a different jwk":       proof(":jwk", foreign),
		"an unknown crit":       proof(":crit", []string{"x"}, ":x", 1),
		"no jti":                proof("jti", nil),
		"a long jti":            proof("jti", strings.Repeat("x", 257)),
		"no htm":                proof("htm", nil),
		"a different htm":       proof("htm", "PUT"),
		"no htu":                proof("htu", nil),
		"a different path":      proof("htu", "https://id.example/oauth/token"),
		"a different host":      proof("htu", "https://evil.example"+path),
		"a different scheme":    proof("htu", "http://id.example"+path),
		"a different port":      proof("htu", "https://id.example:444"+path),
		"a user in htu":         proof("htu", "https://a@id.example"+path),
		"no iat":                proof("iat", nil),
		"an iat of an hour ago": proof("iat", at(-time.Hour)),
		"an iat in an hour":     proof("iat", at(time.Hour)),
		"an iat that is text":   proof("iat", "now"),
		"no ath":                proof("ath", nil),
		"a different ath":       proof("ath", dpop.Hash("x")),
	})

	for _, proofs := range [][]string{nil, {proof(), proof()}} {
		if _, err := w.Verify(t.Context(), proofs, use); err == nil {
			t.Errorf("%d proofs were accepted, want an error", len(proofs))
		}
	}
}

// TestAlgorithms shows which keys may sign proofs.
func TestAlgorithms(t *testing.T) {
	w := newWorld(t)
	rsaKey := func(bits int) crypto.Signer {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}

	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	strong := rsaKey(2048)

	tests := []struct {
		name   string
		holder holder
		http   bool // whether proofs of HTTP requests are accepted
		relay  bool // whether proofs of calls to the relay are accepted
	}{
		{name: "EdDSA", holder: holder{ed, jose.EdDSA}, http: true, relay: true},
		{name: "PS256", holder: holder{strong, jose.PS256}, http: true, relay: true},
		{name: "RS256", holder: holder{strong, jose.RS256}, relay: true},
		{name: "PS384", holder: holder{strong, jose.PS384}},
		{name: "P-384", holder: holder{p384, jose.ES384}},
		{name: "PS256 with 1024 bits", holder: holder{rsaKey(1024), jose.PS256}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second proof has a header that the verifier remembers
				const method = "signalwire.connect"
				proof := tt.holder.proof(t, w.now, "rpc", "request", "mth", method)
				err := w.ConfirmRPC(t.Context(), method, proof, tt.holder.thumbprint(t))
				if accepted := err == nil; accepted != tt.relay {
					t.Errorf("a proof for the relay is accepted: %t, %v, want %t", accepted, err, tt.relay)
				}

				proof = tt.holder.proof(t, w.now)
				_, err = w.Verify(t.Context(), []string{proof}, use)
				if accepted := err == nil; accepted != tt.http {
					t.Errorf("a proof for HTTP is accepted: %t, %v, want %t", accepted, err, tt.http)
				}

				proof = tt.holder.proof(t, w.now)
				altered := proof[:len(proof)-8] + "AAAAAAAA"
				if _, err := w.Verify(t.Context(), []string{altered}, use); err == nil {
					t.Error("a proof with an altered signature is accepted")
				}
			}
		})
	}
}

// TestConfirm shows that a bound token needs the scheme DPoP and a proof signed with its key. A
// token that is not bound must not be used with this scheme.
func TestConfirm(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	bound := h.thumbprint(t)

	tests := []struct {
		name       string
		scheme     string
		proof      string
		thumbprint string // of the key to which the token is bound; "" if it is not bound
		want       error
	}{
		{"bound", "DPoP", h.proof(t, w.now), bound, nil},
		{"bound, in lower case", "dpop", h.proof(t, w.now), bound, nil},
		{"not bound", "Bearer", "", "", nil},
		{"a downgrade", "Bearer", "", bound, problem.Unauthenticated},
		{"a downgrade with a valid proof", "Bearer", h.proof(t, w.now), bound, problem.Unauthenticated},
		{"no proof", "DPoP", "", bound, problem.Unauthenticated},
		{"a different key", "DPoP", newHolder(t).proof(t, w.now), bound, problem.Unauthenticated},
		{"not bound, but DPoP", "DPoP", h.proof(t, w.now), "", problem.Unauthenticated},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", path, nil)
			r.Header.Set("Authorization", tt.scheme+" "+token)
			if tt.proof != "" {
				r.Header.Set("DPoP", tt.proof)
			}
			if err := w.Confirm(r, token, tt.thumbprint); !errors.Is(err, tt.want) {
				t.Errorf("Confirm = %v, want %v", err, tt.want)
			}
		})
	}
}

// BenchmarkVerify measures the verification of an ES256 proof for an access token, including the
// entry in the session store.
func BenchmarkVerify(b *testing.B) {
	w, h := newWorld(b), newHolder(b)
	proofs := make([]string, b.N)
	for i := range proofs {
		proofs[i] = h.proof(b, w.now)
	}
	b.ResetTimer()
	for i := range b.N {
		if _, err := w.Verify(context.Background(), proofs[i:i+1], use); err != nil {
			b.Fatal(err)
		}
	}
}
