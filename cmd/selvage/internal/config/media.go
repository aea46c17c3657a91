package config

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// lookUpHost limits how long a start waits for the lookup of the public URL's host.
const lookUpHost = 2 * time.Second

// MediaAddresses returns the addresses to which browsers send the media of calls. all is the first
// of these that is not empty:
//
//   - the configured addresses,
//   - the address of the listener,
//   - the addresses of the public URL's host that belong to this machine.
//
// If the host is on loopback, MediaAddresses adds the machine's other addresses, because Firefox
// sends no media to loopback. elsewhere holds the host's addresses that belong to other machines.
// If all is empty, the server chooses among the addresses of this machine.
func (c Config) MediaAddresses(ctx context.Context, public string) (all, elsewhere []netip.Addr, err error) {
	host, _, _ := net.SplitHostPort(string(c.MediaListener()))
	if len(c.MediaAddress) > 0 {
		return c.MediaAddress, nil, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		return []netip.Addr{ip}, nil, nil
	}

	u, err := url.Parse(public)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the public URL: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, lookUpHost)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, nil, nil // DNS is unavailable: the server chooses
	}

	for _, ip := range found {
		ip = ip.Unmap()
		if hasAddress(ip) {
			all = append(all, ip)
		} else {
			elsewhere = append(elsewhere, ip)
		}
	}

	if len(all) > 0 && !slices.ContainsFunc(all, netip.Addr.IsGlobalUnicast) {
		all = append(all, globalAddresses()...)
	}
	return all, elsewhere, nil
}

// globalAddresses returns the addresses of this machine that are neither loopback nor link-local.
func globalAddresses() (all []netip.Addr) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil // loopback is sufficient for most browsers
	}
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			all = append(all, prefix.Addr())
		}
	}
	return all
}

// hasAddress reports whether this machine has an address.
func hasAddress(ip netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip.AsSlice())
	})
}
