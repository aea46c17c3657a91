package idp

import (
	"net/url"
	"strings"
)

// maxURI is the maximum length of a URI in a client's settings.
const maxURI = 2000

// A URIFault is the reason why a URI may not be registered; "" means that it may.
type URIFault string

// These are the faults of URIs, in the words of the API. Each is the end of a sentence about the URI.
const (
	URIMalformed URIFault = "is not an absolute address without fragment, wildcard, user or spaces"
	URIUnescaped URIFault = "has characters that a URI must escape as %XX, " +
		"such as %22 for a quote (RFC 3986, section 2)"
	URIUnencrypted URIFault = "must be https; http is only for localhost, 127.0.0.1 and [::1]"
	URIPrivate     URIFault = "must be https; a private scheme is only for native clients " +
		"and is a reversed domain name, such as com.example.app (RFC 8252, section 7.1)"
)

// FaultOfURI reports why c may not register a URI to which browsers are sent, or returns "". The
// URI must be absolute and valid (RFC 3986, section 2), without a fragment (RFC 6749, section 3.1.2)
// or a wildcard. http is allowed only for loopback hosts. Other schemes are allowed only for native
// clients and must contain a dot, so that no browser runs code from the URI.
func (c *Client) FaultOfURI(uri string) URIFault {
	u, err := url.Parse(uri)
	switch {
	case err != nil || len(uri) > maxURI || !u.IsAbs() || strings.ContainsAny(uri, "#*\\ \t\r\n") ||
		u.User != nil || !isASCII(uri):
		return URIMalformed
	case strings.ContainsAny(uri, "\"<>^`{|}"):
		return URIUnescaped
	case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && isLocal(u.Hostname()):
		return ""
	case u.Scheme == "http":
		return URIUnencrypted
	case c.Type != Native || !strings.Contains(u.Scheme, "."):
		return URIPrivate
	}
	return ""
}

// checkURI reports a URI that may not be registered.
func (c *Client) checkURI(found *problems, param, uri string) {
	if fault := c.FaultOfURI(uri); fault != "" {
		found.add(param, "%q %s", uri, fault)
	}
}

func isLocal(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || strings.HasSuffix(host, ".localhost")
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || isControl(r) })
}
