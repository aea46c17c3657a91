package limit

import (
	"context"
	"net/netip"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// Wide is the factor by which the limit of a range (see [Range]) exceeds the limit of a network in it.
// Without a limit for ranges, the owner of a /48 could use the limits of 65,536 networks.
const Wide = 5

// ofRange returns the name and the rate with which to count events of the range that contains the given
// network. ok is false if the limit is disabled, or if the range is the network itself.
func (l *Limiter) ofRange(name Name, network string) (who string, rate session.Rate, ok bool) {
	wide := Range(network)
	one, limited := l.rate(name)
	if !limited || wide == network {
		return "", session.Rate{}, false
	}
	rate = session.Rate{Burst: Wide * one.Burst, Every: max(one.Every/Wide, time.Microsecond)}
	return "range " + wide, rate, true
}

// TakeNetwork is like [Limiter.Take], for a limit per network. It also counts the event against the
// limit of the network's range. If the range is over its limit, the event is not counted at all.
func (l *Limiter) TakeNetwork(ctx context.Context, name Name, network string) error {
	if err := l.Take(ctx, name, network); err != nil {
		return err
	}
	who, rate, ok := l.ofRange(name, network)
	if !ok {
		return nil
	}
	err := refused(l.ask(ctx, keyOf(name, who), rate, 1))
	if err != nil {
		l.Return(ctx, name, network)
	}
	return err
}

// PassNetwork is like [Limiter.Pass], for a limit per network. It also counts the event against the
// limit of the network's range. If the range is over its limit, the event is not counted at all.
func (l *Limiter) PassNetwork(ctx context.Context, name Name, network string) error {
	if err := l.Pass(ctx, name, network); err != nil {
		return err
	}
	who, rate, ok := l.ofRange(name, network)
	if !ok {
		return nil
	}
	err := l.pass(ctx, name, who, rate)
	if err != nil {
		l.Unpass(name, network)
	}
	return err
}

// Range returns the block of addresses that contains network and that a single customer may own.
// For IPv6 this is a /48, since providers assign whole /48s. For IPv4 it is a /24. network is an
// address or a prefix. Any other text is returned unchanged.
func Range(network string) string {
	address, err := netip.ParseAddr(network)
	if err == nil {
		return RangeOf(address).String()
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return network
	}
	return RangeOf(prefix.Addr()).String()
}

// RangeOf is like Range, for an address.
func RangeOf(address netip.Addr) netip.Prefix {
	bits := 48
	if address.Is4() {
		bits = 24
	}
	wide, _ := address.Prefix(bits) // fails only for the zero Addr, for which it returns the zero prefix
	return wide
}
