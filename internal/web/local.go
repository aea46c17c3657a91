package web

import (
	"net"
	"net/http"
	"net/netip"
)

// IsLocal reports whether a request comes from this machine itself, under a name of it, and
// through no proxy: what is for developers is shown to nobody else.
func IsLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return isLoopbackHost(host)
}
