package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// IsLocal reports whether a request comes directly from this machine, without a proxy, and has a
// loopback name as its Host. IsLocal protects pages that only developers may see.
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

// forwarded reports whether a proxy, trusted or not, forwarded the request. If so, the client may
// be on another machine. The headers of proxies count even if their first line is empty, because
// clients can send an empty line.
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
