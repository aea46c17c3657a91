package web

import (
	"net/http"
	"net/netip"
)

// Address returns the IP address from which a request comes. It is the address that a trusted proxy
// reported (see [Proxies]), or else the address of the peer. It is "" if the listener does not use
// TCP.
func Address(r *http.Request) string {
	ip, ok := addressOf(r.RemoteAddr)
	if !ok {
		return ""
	}
	return ip.String()
}

// Network returns the network that rate limits count as one client: the IPv4 address, or the /64
// prefix of the IPv6 address, because one user usually has a whole /64.
func Network(r *http.Request) string { return networkOf(r.RemoteAddr) }

func networkOf(remote string) string {
	ip, ok := addressOf(remote)
	if !ok {
		return "" // not TCP: all clients count as one
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
