package limit

import (
	"context"
	"net/netip"
	"time"

	"github.com/selvage/selvage/internal/session"
)

// Wide is how many times as much as one network the networks have together that one may
// have, see [Range]: who has a /48 has 65,536 networks, and must not have as many times what
// one may do.
const Wide = 5

// ofRange returns the range of a network as it is counted by a limit, and what the networks of
// one may do together; ok is false where the limit is off, or the network is its own range.
func (l *Limiter) ofRange(name Name, network string) (who string, rate session.Rate, ok bool) {
	wide := Range(network)
	one, held := l.rate(name)
	if !held || wide == network {
		return "", session.Rate{}, false
	}
	return "range " + wide, session.Rate{Burst: Wide * one.Burst, Every: max(one.Every/Wide, time.Microsecond)}, true
}

// TakeNetwork is Take for a limit of networks: it counts the range of one as well.
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

// PassNetwork is Pass for a limit of networks: it counts the range of one as well.
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

// Range returns what whoever has a network may have more of: of an IPv6 /64 its /48, which
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
