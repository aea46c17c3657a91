package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/selvage/selvage/internal/problem"
)

// Check returns a problem that names param if the policy forbids all requests to the URL in text. It
// does not resolve names, because addresses are checked when they are dialed.
func (p Policy) Check(param, text string) error {
	u, err := url.Parse(text)
	if err != nil || !isHTTP(u) || strings.ContainsFunc(text, isOdd) {
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "not_an_http_url",
			Param:   param,
			Message: param + " must be an http or https URL with a host",
		}
	}
	if u.User != nil {
		return unsafe(param, "must not have a user name or password")
	}
	if u.Fragment != "" || strings.HasSuffix(text, "#") {
		return unsafe(param, "must not have a fragment")
	}
	if p.allows(u.Hostname()) {
		return checkPort(param, u, true)
	}
	return p.checkHost(param, u)
}

// isHTTP reports whether u is an http or https URL with a host.
func isHTTP(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Opaque == "" && u.Hostname() != ""
}

// isOdd reports whether r does not belong in a URL. Parsers disagree on how to treat such
// characters.
func isOdd(r rune) bool {
	return r == '\\' || unicode.IsSpace(r) || unicode.IsControl(r) || r > unicode.MaxASCII
}

func unsafe(param, why string) error {
	return &problem.Error{Kind: problem.Invalid, Code: "url_is_unsafe", Param: param, Message: param + " " + why}
}

func (p Policy) checkHost(param string, u *url.URL) error {
	host := strings.ToLower(bare(u.Hostname()))
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && isPublic(ip):
	case err != nil && isNumber(host):
		return unsafe(param, "must not have a number as its host; write an IP address as four numbers")
	case err == nil, isLocal(host):
		return unsafe(param, "has an address to which requests are not allowed; to permit it, add "+bare(u.Hostname())+
			" to egress.allow in the configuration (or SELVAGE_EGRESS__ALLOW) and restart the server")
	}
	return checkPort(param, u, false)
}

// isLocal reports whether a name always refers to this machine (RFC 6761, section 6.3).
func isLocal(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// isNumber reports whether host is a number, or ends in one, without being an ordinary IP address.
// Examples are 2130706433, 0x7f000001 and 127.1. Some resolvers interpret these hosts as IPv4
// addresses (inet_aton).
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.TrimLeft(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

func checkPort(param string, u *url.URL, anyPort bool) error {
	text := u.Port()
	if text == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || !anyPort && !isPlainPort(uint16(n)) {
		return unsafe(param, "must have port 80, 443, or 1024 or higher")
	}
	return nil
}
