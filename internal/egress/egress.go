// Package egress sends requests to addresses that somebody else chose, such as webhook
// URLs of a project.
//
// The author of a URL must not reach hosts that only this machine can reach. A name may
// resolve to one address when it is checked and to another when it is dialed, so the
// address is judged at the moment of dialing. A URL is checked earlier only to report
// early that it can never be used. Names that an operator allows may resolve to private
// addresses. Redirects are not followed, and proxies from the environment are ignored.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A Policy decides where requests may go.
type Policy struct {
	// Allow lists host names, as written in URLs, that may resolve to private addresses and
	// use any port. Case does not matter.
	Allow []string

	Resolver *net.Resolver // nil means the system's resolver
}

// allows reports whether the operator allows a host.
func (p Policy) allows(host string) bool {
	return slices.ContainsFunc(p.Allow, func(name string) bool {
		return strings.EqualFold(bare(name), bare(host))
	})
}

// bare removes the dot of the root from a name, and the brackets from an address.
func bare(host string) string {
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// errUnsafe is the only error that callers see for a refused address. It does not reveal
// what a name resolves to on this network.
func errUnsafe() error {
	return problem.New(problem.Forbidden, "url_is_unsafe",
		"requests to the host's address are not allowed")
}

// dialTimeout is the most time a connection may take to be established.
const dialTimeout = 5 * time.Second

// Dial connects to a host over TCP, unless the policy refuses its address.
func (p Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading address: %w", err)
	}
	allowed := p.allows(host)
	d := net.Dialer{
		Timeout: dialTimeout, Resolver: p.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error { return judge(address, allowed) },
	}
	return d.DialContext(ctx, network, address)
}

// judge returns an error if a connection to address is not permitted.
func judge(address string, allowed bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errUnsafe()
	}
	ip := at.Addr().Unmap()
	if allowed && !ip.IsUnspecified() && !ip.IsMulticast() || isPublic(ip) && isPlainPort(at.Port()) {
		return nil
	}
	return errUnsafe()
}

// isPlainPort reports whether a web server may use a port. Other ports below 1024 belong
// to services that could be made to misread a request.
func isPlainPort(port uint16) bool { return port == 80 || port == 443 || port >= 1024 }

// Client returns a client that dials as the policy permits. It follows no redirects and
// keeps few connections for a short time.
func (p Policy) Client() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            p.Dial,
			DisableCompression:     true,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        30 * time.Second,
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: 32 << 10,
		},
	}
}
