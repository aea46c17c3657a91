package web

import (
	"net/http"
	"net/netip"
)

// Address returns the address that a request comes from, without a port: the one that
// a trusted proxy told, see [Proxies], or who is at the other end of the connection.
// It is "" on a listener that is no TCP.
func Address(r *http.Request) string {
	ip, ok := addressOf(r.RemoteAddr)
	if !ok {
		return ""
	}
	return ip.String()
}

// Network returns what is counted as one place of a request: an IPv4 address, or the
// /64 of an IPv6 one, which one person has.
func Network(r *http.Request) string { return networkOf(r.RemoteAddr) }

func networkOf(remote string) string {
	ip, ok := addressOf(remote)
	if !ok {
		return "" // a listener that is no TCP: all are one
	}
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return ""
	}
	return prefix.String()
}

func addressOf(remote string) (netip.Addr, bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}, false
	}
	return at.Addr().Unmap().WithZone(""), true
}
