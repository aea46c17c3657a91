package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// IsLocal reports whether a request comes from this machine itself, under a name of it, and
// through no proxy: what is for developers is shown to nobody else.
func IsLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() || forwarded(r.Header) {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return isLoopbackHost(host)
}

// forwarded reports whether something passed a request on: who stands behind it is not
// known to sit at this machine, trusted proxy or not. A header that is there counts, be its
// first line empty: that is the client's own.
func forwarded(h http.Header) bool {
	for name := range h {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Original-Host":
			return true
		}
		if strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}
