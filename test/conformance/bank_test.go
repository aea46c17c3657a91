package conformance

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// A way describes how the clients in a FAPI 2.0 plan authenticate, and to what their tokens are
// bound.
type way struct{ auth, bind string }

// These are the values in a way, as the OpenID Foundation names them.
const (
	byKey  = "private_key_jwt"
	byTLS  = "mtls"
	byDPoP = "dpop"
)

// wayOf returns the way with the name AUTH+BIND.
func wayOf(name string) way {
	auth, bind, _ := strings.Cut(name, "+")
	return way{auth, bind}
}

// certificateHeader is the header in which a trusted proxy passes on the certificate of a client.
// The test acts as this proxy.
const certificateHeader = "X-SSL-Cert"

// A bank is a client with the profile fapi2. It has a key for its assertions and request objects,
// another key for its proofs, and a certificate.
type bank struct {
	*harness.Client
	way
	signing     jose.JSONWebKey
	holder      *ecdsa.PrivateKey
	certificate string // value of certificateHeader
}

// newKey returns a new key for ES256.
func newKey(t harness.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return key
}

// newBank registers a bank, with additional flags of selvage client create.
func newBank(t harness.T, p *harness.Project, w way, flags ...string) bank {
	t.Helper()
	key := jose.JSONWebKey{Key: newKey(t), KeyID: "bank", Algorithm: "ES256", Use: "sig"}
	return newBankWith(t, p, w, key, flags...)
}

// newBankWith is like newBank, but signing is the key for assertions and request objects.
func newBankWith(t harness.T, p *harness.Project, w way, signing jose.JSONWebKey, flags ...string) bank {
	t.Helper()
	b := bank{way: w, signing: signing, holder: newKey(t)}
	self, der := selfSigned(t)
	b.certificate = ":" + base64.StdEncoding.EncodeToString(der) + ":"
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("%v", err)
	}

	certified := jose.JSONWebKey{Key: self.Public(), KeyID: "certificate", Certificates: []*x509.Certificate{leaf}}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{signing.Public(), certified}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, set, 0o600); err != nil {
		t.Fatalf("%v", err)
	}

	all := []string{"--profile", "fapi2", "--auth-method", byKey, "--jwks", file, "--access-token", "jwt",
		"--scope", "openid,profile,email,address,phone,offline_access"}
	if w.auth == byTLS {
		all[3] = "self_signed_tls_client_auth"
	}
	switch {
	case w.bind == byTLS:
		all = append(all, "--tls-client-certificate-bound-access-tokens")
	case w.auth == byTLS: // otherwise, tokens would be bound to the certificate
		all = append(all, "--dpop-bound-access-tokens")
	}
	b.Client = p.NewClient(t, "web", append(all, flags...)...)
	return b
}

// selfSigned returns a key and a certificate that is signed with this key.
func selfSigned(t harness.T) (key *ecdsa.PrivateKey, der []byte) {
	t.Helper()
	key = newKey(t)
	draft := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "bank"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return key, der
}

// sign returns a compact JWT. head contains additional members of its header.
func (m *module) sign(key any, alg jose.SignatureAlgorithm, head, claims members) string {
	m.Helper()
	o := &jose.SignerOptions{}
	for name, value := range head {
		o.WithHeader(jose.HeaderKey(name), value)
	}

	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		m.Fatal(err)
	}

	jws, err := signer.Sign(mustJSON(m, claims))
	if err != nil {
		m.Fatal(err)
	}

	text, err := jws.CompactSerialize()
	if err != nil {
		m.Fatal(err)
	}
	return text
}

// changed returns a copy of all with the given changes. A nil value removes a member.
func changed(all, changes members) members {
	all = maps.Clone(all)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// bankAssertion returns a client assertion (FAPI 2.0 Security Profile, section 5.3.2.1), with
// changes to its claims.
func (m *module) bankAssertion(b bank, changes members) string {
	m.Helper()
	now := time.Now()
	alg := jose.SignatureAlgorithm(cmp.Or(b.signing.Algorithm, "ES256"))
	return m.sign(b.signing.Key, alg, members{"kid": b.signing.KeyID}, changed(members{
		"iss": b.ID,
		"sub": b.ID,
		"aud": m.op.Issuer(),
		"jti": rand.Text(),
		"iat": now.Unix(),
		"nbf": now.Unix(),
		"exp": now.Add(time.Minute).Unix(),
	}, changes))
}

// authenticated returns the options that send a form and authenticate the bank. If the form already
// contains an assertion, no other is added.
func (m *module) authenticated(b bank, form url.Values) []harness.Option {
	m.Helper()
	v := maps.Clone(form)
	if v.Get("client_id") == "" {
		v.Set("client_id", b.ID)
	}
	if b.auth == byKey && !v.Has("client_assertion") {
		v.Set("client_assertion", m.bankAssertion(b, nil))
		v.Set("client_assertion_type", assertionType)
	}
	options := []harness.Option{harness.Form(v)}
	if b.auth == byTLS || b.bind == byTLS {
		options = append(options, harness.Header(certificateHeader, b.certificate))
	}
	return options
}

// proof returns a DPoP proof for a request to an endpoint, with changes to its claims.
func (m *module) proof(b bank, method, endpoint, token string, changes members) string {
	m.Helper()
	claims := members{"jti": rand.Text(), "htm": method, "htu": endpoint, "iat": time.Now().Unix()}
	if token != "" {
		claims["ath"] = sumOf(token)
	}
	public := jose.JSONWebKey{Key: b.holder.Public()}
	return m.sign(b.holder, jose.ES256, members{"typ": "dpop+jwt", "jwk": public}, changed(claims, changes))
}

// thumbprint returns the thumbprint of the bank's key for proofs, in the form of dpop_jkt.
func (m *module) thumbprint(b bank) string {
	m.Helper()
	return thumbprintOf(m, b.holder.Public())
}

// otherHolder returns a copy of the bank with a different key for proofs.
func (m *module) otherHolder(b bank) bank {
	m.Helper()
	b.holder = newKey(m)
	return b
}

// rsaKey returns a key for PS256.
func rsaKey(m *module) jose.JSONWebKey {
	m.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		m.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: "rsa", Algorithm: "PS256", Use: "sig"}
}
