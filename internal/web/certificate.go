package web

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/cnf"
)

// Certificates returns the client's certificate, followed by intermediate certificates. It returns
// nil if the client did not use a certificate. The server has only checked that the client has the private
// key, not who issued the certificate.
func Certificates(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// CertificateBinding returns the binding of tokens to the client's certificate, see package cnf. It
// returns "" if the client did not use a certificate, or if the certificate has expired.
func CertificateBinding(r *http.Request) string {
	chain, now := Certificates(r), time.Now()
	if len(chain) == 0 || now.Before(chain[0].NotBefore) || now.After(chain[0].NotAfter) {
		return ""
	}
	return cnf.OfCertificate(chain[0].Raw)
}

// maxCertificate is the maximum length of a header with a certificate, in bytes.
const maxCertificate = 16 << 10

// forwardCertificate replaces the certificates of r with the certificate in the named header, and
// removes the header. If the header is missing or invalid, it removes the certificates, because those of
// the connection belong to the proxy.
func forwardCertificate(r *http.Request, name string) {
	values := r.Header.Values(name)
	r.Header = r.Header.Clone()
	r.Header.Del(name)

	var state tls.ConnectionState
	if r.TLS != nil {
		state = *r.TLS
	}
	state.PeerCertificates = nil
	if len(values) == 1 {
		if c := parseCertificate(values[0]); c != nil {
			state.PeerCertificates = []*x509.Certificate{c}
		}
	}
	if r.TLS != nil || state.PeerCertificates != nil {
		r.TLS = &state
	}
}

// parseCertificate parses the certificate in a proxy's header, or returns nil. It accepts
//
//   - base64 between colons, as in Client-Cert (RFC 9440, section 2.1),
//   - the Cert field of Envoy's X-Forwarded-Client-Cert, if the header has a single element,
//   - URL-encoded PEM, as in $ssl_client_escaped_cert of nginx.
func parseCertificate(value string) *x509.Certificate {
	if len(value) > maxCertificate {
		return nil
	}

	var der []byte
	var ok bool
	if strings.HasPrefix(value, ":") {
		der, ok = decodeByteSequence(value)
	} else {
		escaped, isEnvoy := envoyCertificate(value)
		if !isEnvoy {
			escaped = value
		}
		der, ok = decodeEscapedPEM(escaped)
	}
	if !ok {
		return nil
	}

	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	return c
}

// decodeByteSequence decodes base64 between colons (RFC 8941, section 3.3.5).
func decodeByteSequence(value string) (der []byte, ok bool) {
	text, hasStart := strings.CutPrefix(value, ":")
	text, hasEnd := strings.CutSuffix(text, ":")
	if !hasStart || !hasEnd {
		return nil, false
	}
	der, err := base64.StdEncoding.DecodeString(text)
	return der, err == nil
}

// decodeEscapedPEM decodes URL-encoded PEM. The PEM must consist of exactly one block, a
// certificate.
func decodeEscapedPEM(escaped string) (der []byte, ok bool) {
	text, err := url.PathUnescape(escaped) // unlike QueryUnescape, it keeps the plus signs of base64
	if err != nil {
		return nil, false
	}

	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, false
	}
	isAlone := strings.TrimSpace(string(rest)) == ""
	return block.Bytes, isAlone
}

// envoyCertificate returns the value of Cert in an X-Forwarded-Client-Cert with one element. If the
// header has several elements, ok is false, because a client may have sent all but the last element.
func envoyCertificate(value string) (text string, ok bool) {
	pairs := splitEscaped(value)
	if pairs == nil {
		return "", false
	}

	for _, pair := range pairs {
		name, quoted, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "Cert") {
			continue
		}
		if ok {
			return "", false // there are two Cert fields
		}
		text = strings.Trim(quoted, `"`)
		ok = true
	}
	return text, ok
}

// splitEscaped returns the parts of an element of X-Forwarded-Client-Cert, which are separated by
// semicolons. In a quoted part, such as the subject that a client chooses, a backslash escapes a
// quote. splitEscaped returns nil if there are several elements, which are separated by commas, or
// if a quote is not closed.
func splitEscaped(element string) (parts []string) {
	begin := 0 // where the current part begins
	quoted := false
	for i := 0; i < len(element); i++ {
		c := element[i]
		switch {
		case quoted && c == '\\':
			i++ // skip the escaped byte
		case c == '"':
			quoted = !quoted
		case quoted:
			// A separator between quotes belongs to the part.
		case c == ',':
			return nil
		case c == ';':
			parts = append(parts, element[begin:i])
			begin = i + 1
		}
	}

	if quoted {
		return nil
	}
	return append(parts, element[begin:])
}
