package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/cnf"
)

// newCertificate returns a self-signed certificate that expires at end.
func newCertificate(t *testing.T, name string, end time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	draft := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-48 * time.Hour),
		NotAfter:     end,
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// escaped returns a certificate in the form that nginx and Envoy send.
func escaped(c *x509.Certificate) string {
	return url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})))
}

// TestCertificateHeader shows that the header with a client's certificate counts only if a trusted proxy
// sends it, and if it contains exactly one valid certificate.
func TestCertificateHeader(t *testing.T) {
	const proxy, stranger = "10.0.0.1:4000", "203.0.113.9:4000"
	end := time.Now().Add(time.Hour)
	ada, eve := newCertificate(t, "ada", end), newCertificate(t, "eve", end)
	old := newCertificate(t, "old", time.Now().Add(-time.Hour))
	want, text := cnf.OfCertificate(ada.Raw), escaped(ada)
	der := ":" + base64.StdEncoding.EncodeToString(ada.Raw) + ":"

	tests := []struct {
		name, peer string
		values     []string
		want       string
	}{
		{"nginx", proxy, []string{text}, want},
		{"RFC 9440", proxy, []string{der}, want},
		{"Envoy", proxy, []string{`By=spiffe://a;Hash=00;Cert="` + text + `";Subject="CN=\"a;Cert=b\"";URI=`}, want},
		{"a stranger", stranger, []string{text}, ""},
		{"no header", proxy, nil, ""},
		{"an empty header", proxy, []string{""}, ""},
		{"two headers", proxy, []string{text, escaped(eve)}, ""},
		{"two elements", proxy, []string{`Cert="` + escaped(eve) + `",Cert="` + text + `"`}, ""},
		{"two certificates in one element", proxy, []string{`Cert="` + text + `";Cert="` + text + `"`}, ""},
		{"a subject like a certificate", proxy,
			[]string{`Cert="` + text + `";Subject="\";Cert=\"` + escaped(eve) + `"`},
			want},
		{"a quote that is not closed", proxy, []string{`Cert="` + text}, ""},
		{"a truncated certificate", proxy, []string{der[:100] + ":"}, ""},
		{"two PEM blocks", proxy, []string{text + escaped(eve)}, ""},
		{"a certificate that has expired", proxy, []string{escaped(old)}, ""},
	}

	p := Proxies{CertificateHeader: "X-Client-Cert"}
	p.Set([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	var got string
	var passed http.Header
	h := p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, passed = CertificateBinding(r), r.Header
	}))
	for _, tt := range tests {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.peer
		r.Header["X-Client-Cert"] = tt.values
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != tt.want {
			t.Errorf("%s: the binding is %q, want %q", tt.name, got, tt.want)
		}
		if header := passed.Get("X-Client-Cert"); header != "" {
			t.Errorf("%s: the handler gets the header %q, want none", tt.name, header)
		}
	}

	// The proxy's own certificate does not count as the certificate of a client.
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.TLS = proxy, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{ada}}
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got != "" {
		t.Errorf("without a header, the binding of a client is %q, want none", got)
	}
	r.RemoteAddr = stranger
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got != want {
		t.Errorf("the binding of a client without a proxy is %q, want %q", got, want)
	}
}
