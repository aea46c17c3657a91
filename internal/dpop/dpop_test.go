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
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/spent"
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
		Sessions: store, Key: func(p string) [32]byte { return sha256.Sum256([]byte(p)) },
		Origins: []string{"https://id.example", "http://127.0.0.1:8080"}, Now: func() time.Time { return w.now },
	}
	w.Verifier = dpop.New(w.config)
	return w
}

// A holder is a client with a key.
type holder struct {
	key crypto.Signer
	alg jose.SignatureAlgorithm
}

func newHolder(t testing.TB) holder {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return holder{key, jose.ES256}
}

func (h holder) thumbprint(t testing.TB) string {
	t.Helper()
	sum, err := (&jose.JSONWebKey{Key: h.key.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// proof returns a valid proof for a GET of path with token. pairs contains alternating names and
// values, which replace claims. A name that begins with a colon replaces a header. A nil value
// removes the claim or header.
func (h holder) proof(t testing.TB, now time.Time, pairs ...any) string {
	t.Helper()
	claims := map[string]any{"jti": rand.Text(), "htm": "GET", "htu": "https://id.example" + path,
		"iat": now.Unix(), "ath": dpop.Hash(token)}
	head := map[jose.HeaderKey]any{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: h.key.Public()}}
	for i := 0; i < len(pairs); i += 2 {
		name, isHeader := strings.CutPrefix(pairs[i].(string), ":")
		switch {
		case isHeader && pairs[i+1] == nil:
			delete(head, jose.HeaderKey(name))
		case isHeader:
			head[jose.HeaderKey(name)] = pairs[i+1]
		case pairs[i+1] == nil:
			delete(claims, name)
		default:
			claims[name] = pairs[i+1]
		}
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: h.alg, Key: h.key},
		&jose.SignerOptions{ExtraHeaders: head})
	if err != nil {
		t.Fatal(err)
	}

	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}

	jws, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}

	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	unsigned := "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6Im5vbmUifQ." + strings.Split(good, ".")[1] + "."

	check := func(code string, proofs map[string]string) {
		t.Helper()
		for name, one := range proofs {
			for _, v := range []*dpop.Verifier{dpop.New(w.config), w.Verifier} {
				got, err := v.Verify(t.Context(), []string{one}, use)
				said := ""
				if p := problem.First(err); p != nil {
					said = p.Code
				}
				if said != code || err == nil && got != h.thumbprint(t) {
					t.Errorf("%s: %q, %v, want %q", name, got, err, code)
				}
				if err == nil {
					break // a proof is valid once
				}
			}
		}
	}

	check("", map[string]string{
		"valid":                            good,
		"a query and a fragment":           proof("htu", "https://id.example"+path+"?a=b#c"),
		"upper case":                       proof("htu", "HTTPS://ID.EXAMPLE"+path),
		"the default port":                 proof("htu", "https://id.example:443"+path),
		"a different origin of the server": proof("htu", "http://127.0.0.1:8080"+path),
		"an iat of ten seconds ago":        proof("iat", at(-10*time.Second)),
		"an iat in nine seconds":           proof("iat", at(9*time.Second)),
		"a recent nonce":                   proof("nonce", w.Nonce()),
		"nbf, exp and unknown claims":      proof("nbf", at(0), "exp", at(time.Hour), "x", 1, ":y", 1),
	})

	for range 2 { // the second proof has a header that the verifier remembers
		if got, err := w.Verify(t.Context(), []string{proof()}, use); got != h.thumbprint(t) {
			t.Fatalf("a valid proof: %q, %v, want the thumbprint of its key", got, err)
		}
	}

	check("use_dpop_nonce", map[string]string{
		"a different nonce": proof("nonce", "x"),
		"an empty nonce":    proof("nonce", ""),
	})

	check("invalid_dpop_proof", map[string]string{
		"not a JWT":             "x",
		"unsigned":              unsigned,
		"an altered signature":  good[:len(good)-4] + "AAAA",
		"a short signature":     good[:len(good)-4],
		"no signature":          good[:strings.LastIndexByte(good, '.')+1],
		"a different payload":   strings.Split(good, ".")[0] + ".e30." + strings.Split(good, ".")[2],
		"two parts":             good[:strings.LastIndexByte(good, '.')],
		"four parts":            good + ".e30",
		"a header alone":        strings.Split(good, ".")[0],
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

	for name, tt := range map[string]struct {
		h       holder
		ok, rpc bool
	}{
		"EdDSA": {holder{ed, jose.EdDSA}, true, true}, "PS256": {holder{strong, jose.PS256}, true, true},
		"RS256": {holder{strong, jose.RS256}, false, true}, "PS384": {holder{strong, jose.PS384}, false, false},
		"P-384": {holder{p384, jose.ES384}, false, false}, "1024": {holder{rsaKey(1024), jose.PS256}, false, false},
	} {
		for range 2 { // the second proof has a header that the verifier remembers
			proof := tt.h.proof(t, w.now, "rpc", "request", "mth", "signalwire.connect")
			err := w.ConfirmRPC(t.Context(), "signalwire.connect", proof, tt.h.thumbprint(t))
			if (err == nil) != tt.rpc {
				t.Errorf("%s for the relay: %v", name, err)
			}
			if _, err := w.Verify(t.Context(), []string{tt.h.proof(t, w.now)}, use); (err == nil) != tt.ok {
				t.Errorf("%s for HTTP: %v", name, err)
			}

			altered := tt.h.proof(t, w.now)
			altered = altered[:len(altered)-8] + "AAAAAAAA"
			if _, err := w.Verify(t.Context(), []string{altered}, use); err == nil {
				t.Errorf("%s with an altered signature was accepted", name)
			}
		}
	}
}

// TestOnce shows that only one of several concurrent uses of a proof succeeds, and that clients
// with different keys may use the same jti.
func TestOnce(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	proof := h.proof(t, w.now)
	var all sync.WaitGroup
	won := make(chan struct{}, 50)
	for range 50 {
		all.Go(func() {
			if _, err := w.Verify(context.Background(), []string{proof}, use); err == nil {
				won <- struct{}{}
			}
		})
	}

	all.Wait()
	if len(won) != 1 {
		t.Errorf("%d of 50 uses of a proof succeeded, want 1", len(won))
	}

	same := newHolder(t).proof(t, w.now, "jti", "a")
	if _, err := w.Verify(t.Context(), []string{same}, use); err != nil {
		t.Error(err)
	}
	if _, err := w.Verify(t.Context(), []string{h.proof(t, w.now, "jti", "a")}, use); err != nil {
		t.Errorf("a jti that another key has used: %v, want success", err)
	}
}

// TestOnceAlone shows that the only node of an installation accepts each proof once, whether or not
// the verifier remembers the header of the proof. The node's next process refuses the proof, too,
// even if the first process has not closed the log.
func TestOnceAlone(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	dir := t.TempDir()
	node := func() *dpop.Verifier {
		log, err := spent.Open(spent.Config{Dir: dir, Now: w.config.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		c := w.config
		c.Used = log
		return dpop.New(c)
	}

	first := node()
	var proofs []string
	for range 3 {
		proof := h.proof(t, w.now)
		proofs = append(proofs, proof)
		if _, err := first.Verify(t.Context(), []string{proof}, use); err != nil {
			t.Fatalf("Verify of a new proof = %v, want success", err)
		}
	}
	for age := time.Duration(0); age < time.Minute; age += 10 * time.Second {
		for _, v := range []*dpop.Verifier{first, node()} {
			for _, proof := range proofs {
				if _, err := v.Verify(t.Context(), []string{proof}, use); !errors.Is(err, dpop.ErrUsed) {
					t.Errorf("Verify of a proof used %s ago = %v, want ErrUsed", age, err)
				}
			}
		}
		w.now = w.now.Add(10 * time.Second)
	}
}

// TestNonce shows that a nonce is accepted for at least five minutes, and for less than eleven.
func TestNonce(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	nonce := w.Nonce()
	for _, tt := range []struct {
		after time.Duration
		ok    bool
	}{{5 * time.Minute, true}, {11 * time.Minute, false}} {
		w.now = time.Now().Add(tt.after)
		_, err := w.Verify(t.Context(), []string{h.proof(t, w.now, "nonce", nonce)}, use)
		if (err == nil) != tt.ok {
			t.Errorf("Verify with a nonce from %s ago = %v", tt.after, err)
		}
	}
}

// TestReplacedKey shows that the server offers valid nonces again a second after the key was
// replaced.
func TestReplacedKey(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	key := "first"
	c := w.config
	c.Key = func(string) [32]byte { return sha256.Sum256([]byte(key)) }
	v := dpop.New(c)
	verify := func(nonce string) error {
		_, err := v.Verify(t.Context(), []string{h.proof(t, w.now, "nonce", nonce)}, use)
		return err
	}

	old := v.Nonce()
	if err := verify(old); err != nil {
		t.Fatal(err)
	}
	key = "second"
	w.now = w.now.Add(time.Second)
	if err := verify(v.Nonce()); err != nil {
		t.Errorf("the new nonce: %v, want success", err)
	}
	if err := verify(old); problem.First(err) == nil || problem.First(err).Code != "use_dpop_nonce" {
		t.Errorf("the nonce with the old key: %v, want use_dpop_nonce", err)
	}
}

// TestConfirm shows that a bound token needs the scheme DPoP and a proof signed with its key. A
// token that is not bound must not be used with this scheme.
func TestConfirm(t *testing.T) {
	w, h := newWorld(t), newHolder(t)
	bound := h.thumbprint(t)

	for name, tt := range map[string]struct {
		scheme, proof, thumbprint string
		ok                        bool
	}{
		"bound":                {"DPoP", h.proof(t, w.now), bound, true},
		"bound, in lower case": {"dpop", h.proof(t, w.now), bound, true},
		"not bound":            {"Bearer", "", "", true},
		"a downgrade":          {"Bearer", "", bound, false},
		"a downgrade, proven":  {"Bearer", h.proof(t, w.now), bound, false},
		"no proof":             {"DPoP", "", bound, false},
		"a different key":      {"DPoP", newHolder(t).proof(t, w.now), bound, false},
		"not bound, but DPoP":  {"DPoP", h.proof(t, w.now), "", false},
	} {

		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Authorization", tt.scheme+" "+token)
		if tt.proof != "" {
			r.Header.Set("DPoP", tt.proof)
		}
		err := w.Confirm(r, token, tt.thumbprint)
		if p := problem.First(err); (err == nil) != tt.ok || err != nil && p.Kind != problem.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzProof shows that an accepted proof is always signed with the key in its own header. A seed
// from another process may contain a key that this process does not have.
func FuzzProof(f *testing.F) {
	w, h := newWorld(f), newHolder(f)
	for _, proof := range []string{
		h.proof(f, w.now), h.proof(f, w.now, "htu", "https://"+strings.Repeat("%25", 900)), "a.b.c", "",
		strings.Repeat(".", 4096), strings.Repeat("eyJ", 1300) + ".e30.AA",
		"eyJqd2siOnsia3R5IjoiUlNBIiwibiI6I" + strings.Repeat("A", 3000) + ".e30.AA",
	} {
		f.Add(proof)
	}

	bound := fuzzcost.Bound{CPU: 5 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 256 << 10, PerByte: 128}
	f.Fuzz(func(t *testing.T, proof string) {
		var got string
		var err error
		bound.Check(t, len(proof), func() {
			got, err = w.Verify(context.Background(), []string{proof}, use)
		})
		if err == nil && got != thumbprintIn(t, proof) {
			t.Errorf("%q is accepted for the key %q, which is not the key in its header", proof, got)
		}
	})
}

// thumbprintIn returns the thumbprint of the key in a proof's header.
func thumbprintIn(t *testing.T, proof string) string {
	t.Helper()
	algorithms := []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.PS256, jose.RS256}
	parsed, err := jose.ParseSignedCompact(proof, algorithms)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := parsed.Signatures[0].Protected.JSONWebKey.Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
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
