package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/test/harness"
)

// A certificate is the certificate of a client, with its key.
type certificate struct {
	leaf *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newCertificate returns a certificate for a name. It is signed by issuer or, if issuer is nil,
// self-signed.
func newCertificate(t *testing.T, name string, issuer *certificate) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	draft := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name, Organization: []string{"Acme"}},
		IsCA:                  issuer == nil,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
	}
	if issuer == nil {
		issuer = &certificate{draft, key}
	}

	der, err := x509.CreateCertificate(rand.Reader, draft, issuer.leaf, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}

	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate{leaf, key}
}

// certificate returns the certificate in PEM.
func (c certificate) certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.leaf.Raw}))
}

// private returns the key in PEM.
func (c certificate) private(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// writeFile writes text to a new file, and returns the file's name.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// keySetOf returns the name of a file with a JWKS that contains the certificate.
func keySetOf(t *testing.T, c certificate) string {
	t.Helper()
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: c.key.Public(),
		Certificates: []*x509.Certificate{c.leaf}}}})
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, string(set))
}

// TestMTLS shows that openid-client completes FAPI 2.0 with a certificate from an authority and
// with a self-signed certificate, and that the APIs check the certificates.
func TestMTLS(t *testing.T) {
	harness.OneBackend(t)
	authority := newCertificate(t, "Authority", nil)
	s := harness.Start(t, "--listen-mtls", "127.0.0.1:0", "--config",
		writeFile(t, "tls:\n  client_ca: "+writeFile(t, authority.certificate())+"\n"))
	p := s.NewProject(t)
	sub := p.NewSubscriber(t)
	root, err := os.ReadFile(filepath.Join(s.Data, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}

	own, other := newCertificate(t, "app", &authority), newCertificate(t, "other", &authority)
	self := newCertificate(t, "self", nil)
	for _, tt := range []struct {
		own   certificate
		flags []string
	}{
		{own, []string{"--auth-method", "tls_client_auth", "--tls-client-auth-subject-dn", "CN=app,O=Acme"}},
		{self, []string{"--auth-method", "self_signed_tls_client_auth", "--jwks", keySetOf(t, self),
			"--tls-client-certificate-bound-access-tokens"}},
	} {
		t.Run(tt.flags[1], func(t *testing.T) {
			c := p.NewClient(t, "web", append([]string{"--profile", "fapi2", "--access-token", "fabric",
				"--scope", "openid,email,offline_access,Voice"}, tt.flags...)...)
			runWithClient(t, "mtls.mjs", c, sub, map[string]string{
				"ca":         string(root),
				"cert":       tt.own.certificate(),
				"cert_key":   tt.own.private(t),
				"other_cert": other.certificate(),
				"other_key":  other.private(t),
				"apis":       "/api/fabric/subscriber/info /oauth/userinfo",
			})
		})
	}
}

// TestCertificateHeader shows that a trusted proxy can report the certificates of clients, and that
// the header is ignored if anyone else sends it.
func TestCertificateHeader(t *testing.T) {
	harness.OneBackend(t)
	self := newCertificate(t, "self", nil)
	header := url.PathEscape(self.certificate())
	trusting := harness.StartConfig(t, harness.Config{Args: []string{"--client-cert-header", "X-SSL-Cert",
		"--trusted-proxies", "127.0.0.0/8"}})
	strict := harness.StartConfig(t, harness.Config{Args: []string{
		"--client-cert-header", "X-SSL-Cert", "--trusted-proxies", "192.0.2.0/24"}})

	for s, want := range map[*harness.Server]int{trusting: http.StatusOK, strict: http.StatusUnauthorized} {
		c := s.NewProject(t).NewClient(t, "service", "--auth-method", "self_signed_tls_client_auth", "--scope", "Voice",
			"--jwks", keySetOf(t, self), "--tls-client-certificate-bound-access-tokens", "--access-token", "jwt")
		status, body := postWith(t, s.HTTP+"/oauth/token", header,
			url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID}})
		if status != want {
			t.Fatalf("requesting a token returned %d %s, want %d", status, body, want)
		}
		if status != http.StatusOK {
			continue
		}

		var set struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal([]byte(body), &set); err != nil {
			t.Fatal(err)
		}

		recordings := s.HTTP + "/api/laml/2010-04-01/Accounts/" + c.Project.ID + "/Recordings.json"
		for certificate, want := range map[string]int{
			header: http.StatusOK,
			"":     http.StatusUnauthorized,
			url.PathEscape(newCertificate(t, "self", nil).certificate()): http.StatusUnauthorized,
		} {
			if got := getWith(t, recordings, certificate, set.Token); got != want {
				t.Errorf("recordings with the certificate %.60q: %d, want %d", certificate, got, want)
			}
		}
	}
}

// postWith posts a form with a client certificate in a proxy's header.
func postWith(t *testing.T, address, certificate string, form url.Values) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-SSL-Cert", certificate)
	return send(t, req)
}

func getWith(t *testing.T, address, certificate, token string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if certificate != "" {
		req.Header.Set("X-SSL-Cert", certificate)
	}
	status, _ := send(t, req)
	return status
}

func send(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
