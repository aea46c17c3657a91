package oidc_test

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/cnf"
)

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
	w.idp.ClientCAs.AddCert(ca.certificate)
	address, err := url.Parse("https://app.example/one")
	must(t, err)
	full := func(c *x509.Certificate) {
		c.DNSNames = []string{"app.example", "*.acme.example"}
		c.URIs = []*url.URL{address}
		c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)}
		c.EmailAddresses = []string{"app@acme.example"}
	}
	good, bare := ca.issue(full), ca.issue(func(c *x509.Certificate) { c.Subject.CommonName = "other" })

	service := func(subject idp.CertificateSubject) idp.Client {
		return w.service(idp.AuthTLS, func(n *idp.Client) { n.CertificateSubject = subject })
	}
	ask := func(c idp.Client, certificates ...tls.Certificate) reply {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID}}
		return connect(certificates...).post("/oauth/token", form)
	}

	for name, subject := range map[string]idp.CertificateSubject{
		"the subject": {DN: "CN=app, O=Acme"},
		"a DNS name":  {DNS: "App.example"},
		"a URI":       {URI: address.String()},
		"an IP":       {IP: "192.0.2.1"},
		"an email":    {Email: "app@acme.example"},
	} {
		c := service(subject)
		wantStatus(t, name, ask(c, good), http.StatusOK)
		wantError(t, name+" of another client", ask(c, bare), "invalid_client")
	}

	c := service(idp.CertificateSubject{DNS: "app.example"})
	byClient := authority{t: t, certificate: good.Leaf, key: good.PrivateKey.(crypto.Signer)}
	altered := func(change func(*x509.Certificate)) tls.Certificate {
		return ca.issue(func(c *x509.Certificate) { full(c); change(c) })
	}
	expired := altered(func(c *x509.Certificate) { c.NotAfter = c.NotBefore })
	later := altered(func(c *x509.Certificate) { c.NotBefore = c.NotAfter })
	forServers := altered(func(c *x509.Certificate) { c.ExtKeyUsage[0] = x509.ExtKeyUsageServerAuth })
	for name, got := range map[string]reply{
		"no certificate":                   ask(c),
		"an unknown authority":             ask(c, newAuthority(t).issue(full)),
		"a self-signed certificate":        ask(c, selfSigned(t, full)),
		"a wildcard":                       ask(service(idp.CertificateSubject{DNS: "a.acme.example"}), good),
		"a certificate that has expired":   ask(c, expired),
		"a certificate that begins later":  ask(c, later),
		"a certificate for servers":        ask(c, forServers),
		"a certificate issued by a client": ask(c, byClient.issue(full)),
	} {
		wantError(t, name, got, "invalid_client")
	}

	plain := w.token("grant_type", "client_credentials", "client_id", c.ID)
	wantStatus(t, "without TLS", plain, http.StatusUnauthorized)
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

	for path, form := range map[string]url.Values{
		"/oauth/introspect":           {"token": {"x"}},
		"/oauth/revoke":               {"token": {"x"}},
		"/oauth/device_authorization": {"scope": {"openid"}},
		"/oauth/par":                  request(c),
	} {
		form.Set("client_id", c.ID)
		if got := connect(own).post(path, form); got.status >= 300 {
			t.Errorf("%s: status %d, want success: %s", path, got.status, got.body)
		}

		for name, client := range map[string]tlsClient{
			"no certificate":                          connect(),
			"a different certificate":                 connect(stranger),
			"a renewed certificate with the same key": connect(renewed),
			"a certificate that has expired":          connect(expired),
		} {
			got := client.post(path, form)
			wantStatus(t, path+", "+name, got, http.StatusUnauthorized)
			wantError(t, path+", "+name, got, "invalid_client")
		}

		form.Set("client_secret", "x")
		wantStatus(t, path+", with a secret", connect(own).post(path, form), http.StatusUnauthorized)
	}
}

// TestCertificateBoundTokens shows that a client can use a certificate instead of an assertion and
// proofs in a FAPI 2.0 flow. The tokens are rejected on connections without the certificate.
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
		tokens := w.certificateFlow(t, connect(own), c)
		wantMembers(t, "the token response", tokens, map[string]any{"token_type": "Bearer"})
		token := text(tokens["access_token"])
		wantStatus(t, "with the certificate", connect(own).userinfo("Bearer", token), http.StatusOK)
		for name, got := range map[string]reply{
			"without the certificate":  connect().userinfo("Bearer", token),
			"with another certificate": connect(stranger).userinfo("Bearer", token),
			"as DPoP":                  connect(own).userinfo("DPoP", token),
			"without TLS":              w.userinfo(token),
		} {
			wantStatus(t, string(format)+" "+name, got, http.StatusUnauthorized)
		}

		form := url.Values{"client_id": {c.ID}, "token": {token}}
		introspected := connect(own).post("/oauth/introspect", form).json(t)
		wantMembers(t, "introspection", introspected, map[string]any{"token_type": "Bearer"})
		bound, _ := introspected["cnf"].(map[string]any)
		want := map[string]any{"x5t#S256": cnf.ClaimOf(cnf.OfCertificate(own.Leaf.Raw)).X5T}
		if !maps.Equal(bound, want) {
			t.Errorf("%s: introspection has the cnf %v, want %v", format, bound, want)
		}

		form = url.Values{
			"grant_type":    {"refresh_token"},
			"client_id":     {c.ID},
			"refresh_token": {text(tokens["refresh_token"])},
		}
		stolen := connect(stranger).post("/oauth/token", form)
		wantError(t, "refreshing with a different certificate", stolen, "invalid_client")

		next := text(connect(own).post("/oauth/token", form).json(t)["access_token"])
		info := connect(stranger).userinfo("Bearer", next)
		wantStatus(t, "a refreshed token with a different certificate", info, http.StatusUnauthorized)
	}
}

// certificateFlow signs ada in with a pushed request, and returns the tokens.
func (w *world) certificateFlow(t *testing.T, conn tlsClient, c idp.Client) map[string]any {
	t.Helper()
	pushed := conn.post("/oauth/par", request(c, "scope", "openid offline_access")).json(t)
	b := w.newBrowser()
	got := b.logIn(b.authorize(reference(c, text(pushed["request_uri"]))), email, secret)
	wantCode(t, "the pushed request", got)
	redeemed := conn.post("/oauth/token", redemption(c, got.param("code")))
	wantStatus(t, "redeeming", redeemed, http.StatusOK)
	return redeemed.json(t)
}

// TestCertificateBoundRefresh shows that the refresh token of a public client is also bound to the
// client's certificate.
func TestCertificateBoundRefresh(t *testing.T) {
	w := newWorld(t)
	connect := w.listenTLS()
	own := selfSigned(t, nil)
	expired := selfSigned(t, func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(time.Minute) })
	c, _ := w.client(func(n *idp.Client) { n.CertificateBound = true })
	redeem := func(client tlsClient) reply {
		return client.post("/oauth/token", redemption(c, w.newBrowser().code(c)))
	}
	wantError(t, "no certificate", redeem(connect()), "invalid_request")
	wantError(t, "an expired certificate", redeem(connect(expired)), "invalid_request")

	tokens := redeem(connect(own)).json(t)
	refresh := func(client tlsClient) reply {
		return client.post("/oauth/token", url.Values{
			"grant_type":    {"refresh_token"},
			"client_id":     {c.ID},
			"refresh_token": {text(tokens["refresh_token"])},
		})
	}
	wantError(t, "refreshing without a certificate", refresh(connect()), "invalid_grant")
	another := connect(selfSigned(t, nil))
	wantError(t, "refreshing with another certificate", refresh(another), "invalid_grant")
	if got := refresh(connect(own)).json(t); got["access_token"] == nil {
		t.Errorf("refreshing with the certificate: %v, want an access token", got)
	}
}

// TestCertificateSettings shows which settings a client with a certificate may not have.
func TestCertificateSettings(t *testing.T) {
	w := newWorld(t)
	own := certified(t, selfSigned(t, nil))
	plain := keySet(t, "", map[string]crypto.Signer{"k": newKey(t, jose.ES256)})

	for name, tt := range map[string]struct {
		change    func(*idp.Client)
		wantParam string
	}{
		"no name": {
			change:    func(c *idp.Client) { c.AuthMethod = idp.AuthTLS },
			wantParam: "tls_client_auth_subject_dn",
		},
		"two names": {
			change: func(c *idp.Client) {
				c.AuthMethod, c.CertificateSubject = idp.AuthTLS, idp.CertificateSubject{DNS: "a", URI: "b:c"}
			},
			wantParam: "tls_client_auth_subject_dn",
		},
		"an invalid name": {
			change: func(c *idp.Client) {
				c.AuthMethod, c.CertificateSubject = idp.AuthTLS, idp.CertificateSubject{DN: "app"}
			},
			wantParam: "tls_client_auth_subject_dn",
		},
		"an invalid address": {
			change: func(c *idp.Client) {
				c.AuthMethod, c.CertificateSubject = idp.AuthTLS, idp.CertificateSubject{IP: "localhost"}
			},
			wantParam: "tls_client_auth_san_ip",
		},
		"a name without the method": {
			change:    func(c *idp.Client) { c.CertificateSubject.DNS = "a" },
			wantParam: "tls_client_auth_san_dns",
		},
		"no key set": {
			change:    func(c *idp.Client) { c.AuthMethod = idp.AuthSelfSignedTLS },
			wantParam: "jwks",
		},
		"a key without certificate": {
			change:    func(c *idp.Client) { c.AuthMethod, c.JWKS = idp.AuthSelfSignedTLS, plain },
			wantParam: "jwks",
		},
		"a certificate and a key": {
			change: func(c *idp.Client) {
				c.AuthMethod, c.JWKS = idp.AuthSelfSignedTLS, own
				c.CertificateBound, c.DPoPBound = true, true
			},
			wantParam: "tls_client_certificate_bound_access_tokens",
		},
	} {
		c := idp.Client{ProjectID: w.project.ID, Type: idp.Web, RedirectURIs: []string{callback}}
		tt.change(&c)
		_, _, err := w.idp.Clients.Create(t.Context(), c)
		wantProblem(t, "a client with "+name, err, tt.wantParam)
	}
}
