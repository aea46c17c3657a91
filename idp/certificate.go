package idp

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/internal/problem"
)

// A CertificateSubject is the name that the certificate of a client with AuthTLS must contain.
// Exactly one field is set (RFC 8705, section 2.1.2).
type CertificateSubject struct {
	DN    string `json:"tls_client_auth_subject_dn,omitempty"` // RFC 4514
	DNS   string `json:"tls_client_auth_san_dns,omitempty"`
	URI   string `json:"tls_client_auth_san_uri,omitempty"`
	IP    string `json:"tls_client_auth_san_ip,omitempty"`
	Email string `json:"tls_client_auth_san_email,omitempty"`
}

// matches reports whether a certificate contains s. Names are compared exactly, except for the case
// of DNS names. A wildcard does not match.
func (s CertificateSubject) matches(c *x509.Certificate) bool {
	switch {
	case s.DN != "":
		want, err := parseDN(s.DN)
		return err == nil && matchesDN(want, c.RawSubject)
	case s.DNS != "":
		return slices.ContainsFunc(c.DNSNames, func(name string) bool { return strings.EqualFold(name, s.DNS) })
	case s.URI != "":
		return slices.ContainsFunc(c.URIs, func(u *url.URL) bool { return u.String() == s.URI })
	case s.IP != "":
		want, err := netip.ParseAddr(s.IP)
		return err == nil && slices.ContainsFunc(c.IPAddresses, func(ip net.IP) bool {
			got, ok := netip.AddrFromSlice(ip)
			return ok && got.Unmap() == want.Unmap()
		})
	case s.Email != "":
		return slices.Contains(c.EmailAddresses, s.Email)
	}
	return false
}

// A subjectField is a field of a CertificateSubject that is set.
type subjectField struct{ name, value string }

// fields returns the fields that are set.
func (s CertificateSubject) fields() []subjectField {
	all := []subjectField{
		{"tls_client_auth_subject_dn", s.DN},
		{"tls_client_auth_san_dns", s.DNS},
		{"tls_client_auth_san_uri", s.URI},
		{"tls_client_auth_san_ip", s.IP},
		{"tls_client_auth_san_email", s.Email},
	}
	return slices.DeleteFunc(all, func(f subjectField) bool { return f.value == "" })
}

// Setting returns the field that is set, such as tls_client_auth_san_dns=app.example, or "".
func (s CertificateSubject) Setting() string {
	var all []string
	for _, f := range s.fields() {
		all = append(all, f.name+"="+f.value)
	}
	return strings.Join(all, " ")
}

// errCertificate is the error for a client that does not authenticate with its certificate. It does
// not contain the reason, because anyone may have opened the connection.
var errCertificate = problem.New(problem.Unauthenticated, "invalid_client",
	"the certificate of the connection is missing, expired, or not the client's")

// VerifyCertificate checks that a certificate authenticates the client, whose AuthMethod must be
// AuthTLS or AuthSelfSignedTLS. chain holds the certificate and its intermediates. The TLS
// handshake has already proved possession of the private key. If the certificate does not
// authenticate the client, the error is problem.Unauthenticated.
func (as *Assertions) VerifyCertificate(ctx context.Context, c Client, chain []*x509.Certificate) error {
	now := as.Now()
	if len(chain) == 0 || now.Before(chain[0].NotBefore) || now.After(chain[0].NotAfter) {
		return errCertificate
	}
	if c.AuthMethod == AuthSelfSignedTLS {
		return as.checkSelfSigned(ctx, c, chain[0])
	}
	if !as.isTrusted(chain, now) || !c.CertificateSubject.matches(chain[0]) {
		return errCertificate
	}
	return nil
}

// isTrusted reports whether the first certificate of chain is a client certificate that was issued
// by one of the configured authorities.
func (as *Assertions) isTrusted(chain []*x509.Certificate, now time.Time) bool {
	if as.ClientCAs == nil {
		return false
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots:         as.ClientCAs,
		Intermediates: intermediates,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

// checkSelfSigned checks that a certificate is in the client's key set, as the first certificate in a
// key's x5c (RFC 8705, section 2.2.2).
func (as *Assertions) checkSelfSigned(ctx context.Context, c Client, leaf *x509.Certificate) error {
	found, err := as.keysOf(ctx, c, func(k jose.JSONWebKey) bool {
		return len(k.Certificates) > 0 && bytes.Equal(k.Certificates[0].Raw, leaf.Raw)
	})
	var why unverified
	if errors.As(err, &why) {
		return errCertificate
	}
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errCertificate
	}
	return nil
}

// byCertificate reports whether clients that use the method authenticate with a certificate.
func (m AuthMethod) byCertificate() bool { return m == AuthTLS || m == AuthSelfSignedTLS }

// ByCertificate reports whether the client authenticates with a certificate.
func (c Client) ByCertificate() bool { return c.AuthMethod.byCertificate() }

// checkCertificate reports invalid settings for the client's certificate.
func (c *Client) checkCertificate(found *problems) {
	subject := c.CertificateSubject.fields()
	switch {
	case c.AuthMethod == AuthTLS && len(subject) != 1:
		found.add("tls_client_auth_subject_dn", "a client with tls_client_auth needs exactly one of "+
			"tls_client_auth_subject_dn, _san_dns, _san_uri, _san_ip and _san_email")
	case c.AuthMethod != AuthTLS && len(subject) > 0:
		found.add(subject[0].name, "is only for clients with the auth method tls_client_auth")
	}

	if dn := c.CertificateSubject.DN; dn != "" {
		if _, err := parseDN(dn); err != nil {
			found.add("tls_client_auth_subject_dn", "%q is not a name such as CN=app,O=Acme (RFC 4514): %v", dn, err)
		}
	}
	if ip := c.CertificateSubject.IP; ip != "" {
		if _, err := netip.ParseAddr(ip); err != nil {
			found.add("tls_client_auth_san_ip", "%q is not an IP address", ip)
		}
	}
	for _, f := range subject {
		if len(f.value) > maxURI || strings.ContainsFunc(f.value, isControl) {
			found.add(f.name, "must have at most %d bytes and no control characters", maxURI)
		}
	}

	if c.CertificateBound && c.DPoPBound {
		found.add("tls_client_certificate_bound_access_tokens",
			"tokens are bound either to a certificate or to a key (dpop_bound_access_tokens)")
	}
}
