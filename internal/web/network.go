package web

import "net/netip"

// Network gives what is counted as one place of a request's RemoteAddr: an IPv4
// address, or the /64 of an IPv6 one, which one person has.
func Network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "" // a listener that is no TCP: all are one
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return ""
	}
	return prefix.String()
}
