package relay_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/web"
)

// proof returns a proof for a JSON-RPC method, in the form that browser SDKs use. pairs are names
// and values of claims, which replace the usual claims.
func proof(t *testing.T, key *rsa.PrivateKey, method string, now time.Time, pairs ...any) string {
	t.Helper()
	claims := map[string]any{"jti": rand.Text(), "rpc": "request", "mth": method, "iat": now.Unix()}
	for i := 0; i < len(pairs); i += 2 {
		claims[pairs[i].(string)] = pairs[i+1]
	}
	opts := (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	return must[string](t)(jws.CompactSerialize())
}

// TestBoundToken shows that a token bound to a key connects only with a proof made with that key.
func TestBoundToken(t *testing.T) {
	w := newWorld(t)
	n, second := w.node(relay.Limits{}), w.node(relay.Limits{})
	key := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	thief := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	sum := must[[]byte](t)((&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256))
	bound := n.seal(func(t *fabric.Token) { t.Binding = base64.RawURLEncoding.EncodeToString(sum) })
	with := func(proof string) string { return authentication(bound) + fmt.Sprintf(`,"dpop_token":%q}`, proof) }

	const connect, again = "signalwire.connect", "signalwire.reauthenticate"
	used := proof(t, key, connect, n.now())
	n.dial().call(connect, with(used)).wantCode(t, "connecting with a proof", 0)
	for name, params := range map[string]string{
		"no proof":                       authentication(bound) + "}",
		"an empty proof":                 with(""),
		"a used proof":                   with(used),
		"a different key":                with(proof(t, thief, connect, n.now())),
		"a proof for a different method": with(proof(t, key, again, n.now())),
		"a proof from an hour ago":       with(proof(t, key, connect, n.now().Add(-time.Hour))),
		"an unknown nonce":               with(proof(t, key, connect, n.now(), "nonce", "x")),
	} {
		n.dial().call(connect, params).wantCode(t, name+", at one node", authenticationFailed)
		second.dial().call(connect, params).wantCode(t, name+", at another node", authenticationFailed)
	}

	c := n.dial()
	c.connect(bound, fmt.Sprintf(`,"dpop_token":%q`, proof(t, key, connect, n.now())))
	renew := func(proof string) frame {
		return c.call(again, fmt.Sprintf(`{"authentication":{"jwt_token":%q,"dpop_token":%q}}`, bound, proof))
	}
	renew("").wantCode(t, "renewing without a proof", authenticationFailed)
	renew(proof(t, key, again, n.now())).wantCode(t, "renewing with a proof", 0)
}

// TestCertificateBoundToken shows that a token bound to a certificate connects only on a socket
// that was opened with the certificate.
func TestCertificateBoundToken(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	srv := httptest.NewUnstartedServer(web.Outer(n.relay, slog.New(slog.DiscardHandler), nil))
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)

	own, stranger := newCertificate(t), newCertificate(t)
	bound := n.seal(func(t *fabric.Token) { t.Binding = cnf.OfCertificate(own.Certificate[0]) })
	for name, tt := range map[string]struct {
		certificates []tls.Certificate
		want         int
	}{
		"the certificate":     {[]tls.Certificate{own}, 0},
		"another certificate": {[]tls.Certificate{stranger}, authenticationFailed},
		"no certificate":      {nil, authenticationFailed},
	} {
		transport := srv.Client().Transport.(*http.Transport).Clone()
		transport.TLSClientConfig.Certificates = tt.certificates
		opts := &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}
		url := "wss" + strings.TrimPrefix(srv.URL, "https") + "/"
		conn, _, err := websocket.Dial(t.Context(), url, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		c := &client{t: t, conn: conn}
		got := c.call("signalwire.connect", authentication(bound)+"}")
		got.wantCode(t, "with "+name, tt.want)
	}

	got := n.dial().call("signalwire.connect", authentication(bound)+"}")
	got.wantCode(t, "without TLS", authenticationFailed)
}

// newCertificate returns a self-signed certificate.
func newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	draft := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
