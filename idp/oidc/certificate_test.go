package oidc_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/problem"
)

// An authority signs certificates.
type authority struct {
	t    *testing.T
	leaf *x509.Certificate
	key  crypto.Signer
}

func newAuthority(t *testing.T) authority {
	a := authority{t: t, key: newKey(t, jose.ES256)}
	c := a.sign(func(c *x509.Certificate) {
		c.Subject, c.IsCA, c.BasicConstraintsValid = pkix.Name{CommonName: "Authority"}, true, true
		c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageCertSign, nil
	}, a.key)
	a.leaf = c.Leaf
	return a
}

// sign returns a certificate for key. If the authority has no certificate, it returns a self-signed
// one.
func (a authority) sign(change func(*x509.Certificate), key crypto.Signer) tls.Certificate {
	a.t.Helper()
	draft := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject:     pkix.Name{CommonName: "app", Organization: []string{"Acme"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(draft)
	}

	issuer, signer := a.leaf, a.key
	if issuer == nil {
		issuer, signer = draft, key
	}

	der, err := x509.CreateCertificate(rand.Reader, draft, issuer, key.Public(), signer)
	must(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	must(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// issue returns a certificate with a new key.
func (a authority) issue(change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	return a.sign(change, newKey(a.t, jose.ES256))
}

// selfSigned returns a self-signed certificate.
func selfSigned(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	return authority{t: t}.issue(change)
}

// certified returns a key set with certificates.
func certified(t *testing.T, all ...tls.Certificate) json.RawMessage {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, c := range all {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: c.Leaf.PublicKey, Certificates: []*x509.Certificate{c.Leaf}})
	}
	raw, err := json.Marshal(set)
	must(t, err)
	return raw
}

// A tlsClient sends requests with a certificate, or without one.
type tlsClient struct {
	w    *world
	url  string
	http *http.Client
}

// listenTLS starts a listener that asks for certificates. It returns a function that creates
// clients of the listener.
func (w *world) listenTLS() func(certificates ...tls.Certificate) tlsClient {
	srv := httptest.NewUnstartedServer(w.handler)
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	w.t.Cleanup(srv.Close)
	return func(certificates ...tls.Certificate) tlsClient {
		transport := srv.Client().Transport.(*http.Transport).Clone()
		transport.TLSClientConfig.Certificates = certificates
		w.t.Cleanup(transport.CloseIdleConnections)
		return tlsClient{w, srv.URL, &http.Client{Transport: transport}}
	}
}

func (c tlsClient) do(req *http.Request) reply {
	c.w.t.Helper()
	res, err := c.http.Do(req)
	must(c.w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(c.w.t, err)
	return reply{res.StatusCode, res.Header, string(body), nil}
}

func (c tlsClient) post(path string, form url.Values) reply {
	c.w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.url+path, strings.NewReader(form.Encode()))
	must(c.w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.do(req)
}

func (c tlsClient) userinfo(scheme, token string) reply {
	c.w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, c.url+"/oauth/userinfo", nil)
	must(c.w.t, err)
	req.Header.Set("Authorization", scheme+" "+token)
	return c.do(req)
}

// service registers a service that authenticates with a certificate.
func (w *world) service(method idp.AuthMethod, change func(*idp.Client)) idp.Client {
	w.t.Helper()
	c, _ := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.Scopes = idp.Service, method, []string{"Voice"}
		n.RedirectURIs = nil
		change(n)
	})
	return c
}

// TestCertificateOfAuthority shows that a client can authenticate with a certificate that contains
// the registered name. A trusted authority must have issued the certificate (RFC 8705, section
// 2.1).
func TestCertificateOfAuthority(t *testing.T) {
	w := newWorld(t)
	ca, connect := newAuthority(t), w.listenTLS()
	w.idp.ClientCAs = x509.NewCertPool()
	w.idp.ClientCAs.AddCert(ca.leaf)
	address, err := url.Parse("https://app.example/one")
	must(t, err)
	full := func(c *x509.Certificate) {
		c.DNSNames, c.URIs = []string{"app.example", "*.acme.example"}, []*url.URL{address}
		c.IPAddresses, c.EmailAddresses = []net.IP{net.IPv4(192, 0, 2, 1)}, []string{"app@acme.example"}
	}
	good, bare := ca.issue(full), ca.issue(func(c *x509.Certificate) { c.Subject.CommonName = "other" })

	ask := func(c idp.Client, certificates ...tls.Certificate) string {
		got := connect(certificates...).post("/oauth/token",
			url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID}})
		return text(got.json(t)["error"])
	}

	var last idp.Client
	for name, subject := range map[string]idp.CertificateSubject{
		"subject": {DN: "CN=app, O=Acme"}, "DNS": {DNS: "App.example"}, "URI": {URI: address.String()},
		"IP": {IP: "192.0.2.1"}, "email": {Email: "app@acme.example"},
	} {
		last = w.service(idp.AuthTLS, func(n *idp.Client) { n.CertificateSubject = subject })
		if got := ask(last, good); got != "<nil>" {
			t.Errorf("%s: %s", name, got)
		}
		if got := ask(last, bare); got != "invalid_client" {
			t.Errorf("%s, of another client: %s, want invalid_client", name, got)
		}
	}

	wildcard := w.service(idp.AuthTLS, func(n *idp.Client) { n.CertificateSubject.DNS = "a.acme.example" })
	with := func(change func(*x509.Certificate)) tls.Certificate {
		return ca.issue(func(c *x509.Certificate) { full(c); change(c) })
	}

	for name, got := range map[string]string{
		"no certificate":           ask(last),
		"an unknown authority":     ask(last, newAuthority(t).issue(full)),
		"one that signed itself":   ask(last, selfSigned(t, full)),
		"a wildcard":               ask(wildcard, good),
		"one that has expired":     ask(last, with(func(c *x509.Certificate) { c.NotAfter = c.NotBefore })),
		"one that begins later":    ask(last, with(func(c *x509.Certificate) { c.NotBefore = c.NotAfter })),
		"one for servers":          ask(last, with(func(c *x509.Certificate) { c.ExtKeyUsage[0]-- })),
		"one signed by a client's": ask(last, authority{t, good.Leaf, good.PrivateKey.(crypto.Signer)}.issue(full)),
	} {
		if got != "invalid_client" {
			t.Errorf("%s: %s", name, got)
		}
	}

	if got := w.token("grant_type", "client_credentials", "client_id", last.ID); got.status != 401 {
		t.Errorf("without TLS: %d %s, want 401", got.status, got.body)
	}
}

// TestSelfSignedCertificate shows that a client can authenticate at each endpoint with a
// certificate in its key set (RFC 8705, section 2.2).
func TestSelfSignedCertificate(t *testing.T) {
	w := newWorld(t)
	connect := w.listenTLS()
	own, stranger := selfSigned(t, nil), selfSigned(t, nil)
	renewed := authority{t: t}.sign(nil, own.PrivateKey.(crypto.Signer))
	expired := selfSigned(t, func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Minute) })
	c, _ := w.client(func(n *idp.Client) {
		n.Type, n.AuthMethod, n.JWKS = idp.Web, idp.AuthSelfSignedTLS, certified(t, own, expired)
		n.Grants = []string{idp.GrantCode, idp.GrantRefresh, idp.GrantDevice}
	})

	forms := map[string]url.Values{
		"/oauth/introspect":           {"token": {"x"}},
		"/oauth/revoke":               {"token": {"x"}},
		"/oauth/device_authorization": {"scope": {"openid"}},
		"/oauth/par":                  request(c),
	}
	for path, form := range forms {
		form.Set("client_id", c.ID)
		if got := connect(own).post(path, form); got.status >= 300 {
			t.Errorf("%s: %d %s, want a success", path, got.status, got.body)
		}

		for name, client := range map[string]tlsClient{
			"no certificate": connect(), "a different certificate": connect(stranger),
			"another one with the same key": connect(renewed), "one that has expired": connect(expired),
		} {
			if got := client.post(path, form); got.status != 401 || got.json(t)["error"] != "invalid_client" {
				t.Errorf("%s, %s: %d %s, want invalid_client", path, name, got.status, got.body)
			}
		}

		form.Set("client_secret", "x")
		if got := connect(own).post(path, form); got.status != 401 {
			t.Errorf("%s, with a secret: %d %s, want 401", path, got.status, got.body)
		}
	}
}

// TestCertificateBoundTokens shows a FAPI 2.0 flow with a certificate instead of an assertion and
// proofs. Its tokens are rejected on connections without the certificate.
func TestCertificateBoundTokens(t *testing.T) {
	w := newWorld(t)
	connect := w.listenTLS()
	own, stranger := selfSigned(t, nil), selfSigned(t, nil)
	for _, format := range []idp.TokenFormat{idp.FabricToken, idp.JWTToken} {
		c, _ := w.client(func(n *idp.Client) {
			n.Type, n.Profile, n.AccessToken = idp.Web, idp.FAPI2, format
			n.AuthMethod, n.JWKS = idp.AuthSelfSignedTLS, certified(t, own)
			n.Scopes, n.CertificateBound = []string{"openid", "offline_access"}, format == idp.JWTToken
		})
		set := w.certificateFlow(t, connect(own), c)
		token := text(set["access_token"])
		for _, tt := range []struct {
			name   string
			reply  reply
			status int
		}{
			{"with the certificate", connect(own).userinfo("Bearer", token), 200},
			{"without it", connect().userinfo("Bearer", token), 401},
			{"with another", connect(stranger).userinfo("Bearer", token), 401},
			{"as DPoP", connect(own).userinfo("DPoP", token), 401},
			{"without TLS", w.userinfo(token), 401},
		} {
			if tt.reply.status != tt.status {
				t.Errorf("%s %s: %d %s", format, tt.name, tt.reply.status, tt.reply.body)
			}
		}

		seen := connect(own).post("/oauth/introspect", url.Values{"client_id": {c.ID}, "token": {token}}).json(t)
		bound, _ := seen["cnf"].(map[string]any)
		want := cnf.ClaimOf(cnf.OfCertificate(own.Leaf.Raw)).X5T
		if set["token_type"] != "Bearer" || seen["token_type"] != "Bearer" || len(bound) != 1 ||
			bound["x5t#S256"] != want {
			t.Errorf("%s: token type %v, introspection %v, want Bearer and the certificate's x5t#S256",
				format, set["token_type"], seen)
		}

		refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID},
			"refresh_token": {text(set["refresh_token"])}}
		if got := connect(stranger).post("/oauth/token", refresh).json(t); got["error"] != "invalid_client" {
			t.Errorf("%s: refreshing with a different certificate: %v, want invalid_client", format, got)
		}

		next := text(connect(own).post("/oauth/token", refresh).json(t)["access_token"])
		if got := connect(stranger).userinfo("Bearer", next); got.status != 401 {
			t.Errorf("%s: a refreshed token with a different certificate: %d, want 401",
				format, got.status)
		}
	}
}

// certificateFlow signs ada in with a pushed request, and returns the tokens.
func (w *world) certificateFlow(t *testing.T, conn tlsClient, c idp.Client) map[string]any {
	t.Helper()
	pushed := conn.post("/oauth/par", request(c, "scope", "openid offline_access")).json(t)
	b := w.browser()
	got := b.logIn(b.authorize(reference(c, text(pushed["request_uri"]))), email, secret)
	set := conn.post("/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ID},
		"code": {got.param("code")}, "code_verifier": {verifier}, "redirect_uri": {callback}})
	if set.status != http.StatusOK {
		t.Fatalf("no tokens: %d %s, want 200, after %v", set.status, set.body, got.parameters())
	}
	return set.json(t)
}

// TestCertificateBoundRefresh shows that the refresh token of a public client is also bound to its
// certificate.
func TestCertificateBoundRefresh(t *testing.T) {
	w := newWorld(t)
	connect := w.listenTLS()
	own := selfSigned(t, nil)
	expired := selfSigned(t, func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Minute) })
	c, _ := w.client(func(n *idp.Client) { n.CertificateBound = true })
	redeem := func(client tlsClient) reply {
		return client.post("/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ID},
			"code": {w.browser().code(c)}, "code_verifier": {verifier}, "redirect_uri": {callback}})
	}
	for name, client := range map[string]tlsClient{"no certificate": connect(), "an expired one": connect(expired)} {
		if got := redeem(client); got.json(t)["error"] != "invalid_request" {
			t.Errorf("%s: %s, want invalid_request", name, got.body)
		}
	}

	set := redeem(connect(own)).json(t)
	refresh := func(client tlsClient) map[string]any {
		return client.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID},
			"refresh_token": {text(set["refresh_token"])}}).json(t)
	}
	for name, client := range map[string]tlsClient{"none": connect(), "another": connect(selfSigned(t, nil))} {
		if got := refresh(client); got["error"] != "invalid_grant" {
			t.Errorf("refreshing with %s: %v, want invalid_grant", name, got)
		}
	}
	if got := refresh(connect(own)); got["access_token"] == nil {
		t.Errorf("refreshing with the certificate: %v, want an access token", got)
	}
}

// TestCertificateSettings shows which settings a client with a certificate may not have.
func TestCertificateSettings(t *testing.T) {
	w := newWorld(t)
	own := certified(t, selfSigned(t, nil))
	plain := keySet(t, "", map[string]crypto.Signer{"k": newKey(t, jose.ES256)})

	for name, tt := range map[string]struct {
		param  string
		change func(*idp.Client)
	}{
		"no name": {"tls_client_auth_subject_dn", func(c *idp.Client) { c.AuthMethod = idp.AuthTLS }},
		"two names": {"tls_client_auth_subject_dn", func(c *idp.Client) {
			c.AuthMethod, c.CertificateSubject = idp.AuthTLS, idp.CertificateSubject{DNS: "a", URI: "b:c"}
		}},
		"an invalid name": {"tls_client_auth_subject_dn", func(c *idp.Client) {
			c.AuthMethod, c.CertificateSubject = idp.AuthTLS, idp.CertificateSubject{DN: "app"}
		}},
		"an invalid address": {"tls_client_auth_san_ip", func(c *idp.Client) {
			c.AuthMethod, c.CertificateSubject = idp.AuthTLS, idp.CertificateSubject{IP: "localhost"}
		}},
		"a name without the method": {"tls_client_auth_san_dns", func(c *idp.Client) {
			c.CertificateSubject.DNS = "a"
		}},
		"no key set": {"jwks", func(c *idp.Client) { c.AuthMethod = idp.AuthSelfSignedTLS }},

		"a key without certificate": {"jwks", func(c *idp.Client) {
			c.AuthMethod, c.JWKS = idp.AuthSelfSignedTLS, plain
		}},
		"a certificate and a key": {"tls_client_certificate_bound_access_tokens", func(c *idp.Client) {
			c.AuthMethod, c.JWKS = idp.AuthSelfSignedTLS, own
			c.CertificateBound, c.DPoPBound = true, true
		}},
	} {
		c := idp.Client{ProjectID: w.project.ID, Type: idp.Web, RedirectURIs: []string{callback}}
		tt.change(&c)
		_, _, err := w.idp.Clients.Create(context.Background(), c)
		if p := problem.First(err); p == nil || p.Param != tt.param {
			t.Errorf("a client with %s: %v, want an error about the setting", name, err)
		}
	}
}
