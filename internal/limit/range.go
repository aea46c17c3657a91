package limit

import "net/netip"

// Range gives what whoever has a network may have more of: of an IPv6 /64 its /48, which
// providers give away whole, of an IPv4 address its /24. What is no network is a range of
// its own.
func Range(network string) string {
	at, err := netip.ParseAddr(network)
	if err != nil {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return network
		}
		at = prefix.Addr()
	}
	bits := 48
	if at.Is4() {
		bits = 24
	}
	wide, err := at.Prefix(bits)
	if err != nil {
		return network
	}
	return wide.String()
}
