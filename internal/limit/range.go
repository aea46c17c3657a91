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

// wider gives the rate of a range.
func wider(of session.Rate) session.Rate {
	return session.Rate{Burst: Wide * of.Burst, Every: max(of.Every/Wide, time.Microsecond)}
}

// rangeOf names the range of a network among who is counted; ok is false where it is the
// network itself.
func rangeOf(network string) (who string, ok bool) {
	wide := Range(network)
	return "range " + wide, wide != network
}

// TakeNetwork is Take for a limit of networks: it counts the range of one as well.
func (l *Limiter) TakeNetwork(ctx context.Context, name Name, network string) error {
	if err := l.Take(ctx, name, network); err != nil {
		return err
	}
	rate, held := l.rate(name)
	who, ok := rangeOf(network)
	if !held || !ok {
		return nil
	}
	err := refused(l.ask(ctx, keyOf(name, who), wider(rate), 1))
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
	rate, held := l.rate(name)
	who, ok := rangeOf(network)
	if !held || !ok {
		return nil
	}
	err := l.pass(ctx, name, who, wider(rate))
	if err != nil {
		l.Unpass(name, network)
	}
	return err
}

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
