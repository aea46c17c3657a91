package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An authority signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority returns an authority with a self-signed certificate.
func newAuthority(t *testing.T) authority {
	a := authority{t: t, key: newKey(t, jose.ES256)}
	root := a.sign(func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "Authority"}
		c.IsCA, c.BasicConstraintsValid = true, true
		c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageCertSign, nil
	}, a.key)
	a.certificate = root.Leaf
	return a
}

// sign returns a certificate for key. If the authority has no certificate, it returns a self-signed
// one.
func (a authority) sign(change func(*x509.Certificate), key crypto.Signer) tls.Certificate {
	a.t.Helper()
	draft := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		Subject:      pkix.Name{CommonName: "app", Organization: []string{"Acme"}},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(draft)
	}

	issuer, signer := a.certificate, a.key
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
func certified(t *testing.T, certificates ...tls.Certificate) json.RawMessage {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, c := range certificates {
		key := jose.JSONWebKey{Key: c.Leaf.PublicKey, Certificates: []*x509.Certificate{c.Leaf}}
		set.Keys = append(set.Keys, key)
	}
	raw, err := json.Marshal(set)
	must(t, err)
	return raw
}

// A tlsClient sends requests with or without a certificate.
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
		return tlsClient{w: w, url: srv.URL, http: &http.Client{Transport: transport}}
	}
}

func (c tlsClient) do(req *http.Request) reply {
	c.w.t.Helper()
	res, err := c.http.Do(req)
	must(c.w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(c.w.t, err)
	return reply{status: res.StatusCode, header: res.Header, body: string(body)}
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
