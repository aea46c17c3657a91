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

// MediaAddresses returns the addresses to which browsers send the media of calls: the configured
// ones, or else the one on which the listener listens, or else those of the public URL's host.
//
// all omits addresses of the public URL's host that belong to other machines. These are in elsewhere.
// If all is empty, the server chooses among its own addresses.
func (c Config) MediaAddresses(ctx context.Context, public string) (all, elsewhere []netip.Addr, err error) {
	if len(c.MediaAddress) > 0 {
		return c.MediaAddress, nil, nil
	}
	if ip, ok := listenerAddress(c.MediaListener()); ok {
		return []netip.Addr{ip}, nil, nil
	}

	u, err := url.Parse(public)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the public URL: %w", err)
	}
	for _, ip := range resolve(ctx, u.Hostname()) {
		if isOwnAddress(ip) {
			all = append(all, ip)
		} else {
			elsewhere = append(elsewhere, ip)
		}
	}

	// Firefox sends no media to loopback, and cannot use a link-local address without its interface.
	if len(all) > 0 && !slices.ContainsFunc(all, netip.Addr.IsGlobalUnicast) {
		all = append(all, globalAddresses()...)
	}
	return all, elsewhere, nil
}

// listenerAddress returns the address on which a listener listens, unless it listens on all addresses.
func listenerAddress(l HostPort) (ip netip.Addr, ok bool) {
	host, _, err := net.SplitHostPort(string(l))
	if err != nil {
		return netip.Addr{}, false
	}
	ip, err = netip.ParseAddr(host)
	return ip, err == nil && !ip.IsUnspecified()
}

// resolveTimeout limits how long the start of a server waits for DNS.
const resolveTimeout = 2 * time.Second

// resolve returns the addresses of a host, or none if DNS is unavailable.
func resolve(ctx context.Context, host string) (all []netip.Addr) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range found {
		all = append(all, ip.Unmap())
	}
	return all
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

// isOwnAddress reports whether ip is an address of this machine.
func isOwnAddress(ip netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip.AsSlice())
	})
}
