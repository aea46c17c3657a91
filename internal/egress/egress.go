// Package egress sends requests to URLs that others chose, such as the webhook URLs of a project.
//
// The author of a URL must not be able to reach hosts that only this machine can reach. A name may
// resolve to one address when it is checked, and to another when it is dialed. Therefore, addresses
// are checked when they are dialed. Earlier checks of a URL only find URLs that can never be used.
// Names that the operator allows may resolve to private addresses. Redirects are not followed, and
// proxies from the environment are ignored.
package egress

import (
	"context"
	"errors"
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

	Log *Log // records refused addresses; nil discards them
}

// allows reports whether the operator allows host.
func (p Policy) allows(host string) bool {
	return slices.ContainsFunc(p.Allow, func(name string) bool {
		return strings.EqualFold(bare(name), bare(host))
	})
}

// bare removes the trailing dot from a name, and the brackets from an IPv6 address.
func bare(host string) string {
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// A refusal is the error for a refused address. Its message does not reveal the address to which a
// name resolves in this network.
type refusal struct {
	shown   *problem.Error
	address string
}

func (r refusal) Error() string { return r.shown.Error() }

func (r refusal) Unwrap() error { return r.shown }

func refuse(address string) error {
	return refusal{problem.New(problem.Forbidden, "url_is_unsafe",
		"requests to the host's address are not allowed, unless the host is in egress.allow"), address}
}

// Refused returns the address that the policy refused, if err is the error of a refused request.
// Otherwise it returns "". Only operators of the installation may see the address.
func Refused(err error) string {
	var r refusal
	if errors.As(err, &r) {
		return r.address
	}
	return ""
}

// dialTimeout is how long connecting may take.
const dialTimeout = 5 * time.Second

// Dial connects to address over TCP, unless the policy forbids it.
func (p Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading address: %w", err)
	}
	allowed := p.allows(host)
	d := net.Dialer{
		Timeout:  dialTimeout,
		Resolver: p.Resolver,
		Control:  func(_, address string, _ syscall.RawConn) error { return judge(address, allowed) },
	}
	conn, err := d.DialContext(ctx, network, address)
	if refused := Refused(err); refused != "" {
		p.Log.add(ctx, host, refused)
	}
	return conn, err
}

// MayReach reports whether packets may be sent to address, to which host resolves.
func (p Policy) MayReach(host string, address netip.AddrPort) bool {
	return judge(address.String(), p.allows(host)) == nil
}

// judge returns an error if connections to address are not permitted. The parameter allowed is true
// if the operator allows the name that resolved to address.
func judge(address string, allowed bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse(address)
	}
	ip := at.Addr().Unmap()
	if allowed && !ip.IsUnspecified() && !ip.IsMulticast() {
		return nil
	}
	if isPublic(ip) && isPlainPort(at.Port()) {
		return nil
	}
	return refuse(address)
}

// isPlainPort reports whether web servers commonly use the port. Other ports below 1024 belong to
// services that could misread a request as one of their own commands.
func isPlainPort(port uint16) bool { return port == 80 || port == 443 || port >= 1024 }

// Client returns a client that connects only as the policy permits. It follows no redirects, and
// keeps only a few idle connections, for a short time.
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
