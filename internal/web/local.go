package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// IsLocal reports whether a request comes from this machine, under one of its loopback
// names and through no proxy. It protects pages that only developers may see.
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

// forwarded reports whether a proxy, trusted or not, passed the request on. The client
// behind a proxy may be on another machine. A header counts even if its first line is
// empty, because a client can send that line.
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
