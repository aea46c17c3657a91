package egress

import "net/netip"

// elsewhere lists networks that are not part of the internet, according to IANA's registries of
// special-purpose addresses. Of the IPv6 networks, it lists only those within global.
var elsewhere = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // behind a carrier's NAT
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, cloud metadata services
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocols
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/3",     // multicast, reserved, broadcast
	"2001::/23",       // protocols, Teredo
	"2001:db8::/32",   // documentation
	"3fff::/20",       // documentation
)

// nat64 and sixTo4 are IPv6 ranges whose addresses contain an IPv4 address. Packets to an address
// in these ranges are forwarded to the IPv4 address.
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
	global = netip.MustParsePrefix("2000::/3") // the only IPv6 addresses assigned so far
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// isPublic reports whether an address belongs to the internet.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Zone() != "" {
		return false
	}
	if ip.Is6() {
		b := ip.As16()
		switch {
		case nat64.Contains(ip):
			return isPublic(netip.AddrFrom4([4]byte(b[12:16])))
		case sixTo4.Contains(ip):
			return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
		case !global.Contains(ip):
			return false
		}
	}

	for _, p := range elsewhere {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}
