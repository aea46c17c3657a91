// Package egress is how requests leave for addresses that somebody else has chosen:
// webhooks, and whatever else is sent to a URL of a project's.
//
// Who chooses a URL must not reach by it what only this machine can reach. A name may
// lead to one address when it is looked at and to another when it is dialled, so the
// address is judged where it is dialled, after the name was resolved; a URL is looked
// at before only to tell early what can never be sent to. Names that an operator
// allows may lead to private addresses. Redirects are not followed, and proxies of the
// environment not used.
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

// A Policy says where requests may go.
type Policy struct {
	// Allow has names of hosts, as they stand in URLs, which may lead to private
	// addresses and have any port. Case does not matter.
	Allow []string

	Resolver *net.Resolver // of names; nil means the system's
}

// allows reports whether an operator allows a host.
func (p Policy) allows(host string) bool {
	return slices.ContainsFunc(p.Allow, func(name string) bool {
		return strings.EqualFold(bare(name), bare(host))
	})
}

// bare returns a name without the dot of the root, and an address without brackets.
func bare(host string) string {
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// errUnsafe is all that is told of an address: what a name leads to here is nobody's
// business.
func errUnsafe() error {
	return problem.New(problem.Forbidden, "url_is_unsafe", "the host leads to an address that nothing may be sent to")
}

// dialTimeout is how long it may take to be connected.
const dialTimeout = 5 * time.Second

// Dial connects to a host by TCP, unless its address is not one that it may have.
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

// judge refuses the address of a connection that is about to be made.
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

// isPlainPort reports whether web servers may be at a port: below 1024 there are other
// services, which could be made to read what is sent.
func isPlainPort(port uint16) bool { return port == 80 || port == 443 || port >= 1024 }

// Client returns a client that dials as the policy says. It follows no redirect, and
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
