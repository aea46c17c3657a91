package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestRange(t *testing.T) {
	for network, want := range map[string]string{
		"192.0.2.7":            "192.0.2.0/24",
		"2001:db8:1:2::/64":    "2001:db8:1::/48",
		"2001:db8:1:ffff::/64": "2001:db8:1::/48",
		"2001:db8:2:2::/64":    "2001:db8:2::/48",
		"":                     "",
		"elsewhere":            "elsewhere",
	} {
		if got := Range(network); got != want {
			t.Errorf("Range(%q) = %q, want %q", network, got, want)
		}
	}
}

// TestTakeAll shows that TakeAll counts either all events or none.
func TestTakeAll(t *testing.T) {
	ctx := t.Context()
	l := New(open(t), Rates{LoginPerNetwork: Of(5, time.Hour), LoginPerRange: Of(2, time.Hour)})
	both := []Count{{LoginPerNetwork, "network"}, {LoginPerRange, "range"}}

	for range 2 {
		_, err := l.TakeAll(ctx, both)
		wantFree(t, "TakeAll", err)
	}

	for range 9 {
		over, err := l.TakeAll(ctx, both)
		wantLimited(t, "TakeAll over a limit", err)
		if over != both[1] {
			t.Errorf("TakeAll over a limit returned the count %v, want %v", over, both[1])
		}
	}

	l.ReturnAll(ctx, both)
	_, err := l.TakeAll(ctx, both)
	wantFree(t, "TakeAll after ReturnAll", err)
	for range 3 {
		wantFree(t, "Take after ReturnAll", l.Take(ctx, LoginPerNetwork, "network"))
	}
	wantLimited(t, "Take over the limit", l.Take(ctx, LoginPerNetwork, "network"))
}

// TestRangeOfNetworks shows that the networks in a range share the range's limit, and that an event
// that is refused for the range is not counted for its network.
func TestRangeOfNetworks(t *testing.T) {
	ctx := t.Context()
	network := func(i int) string { return fmt.Sprintf("2001:db8:1:%x::/64", i) }
	type take = func(l *Limiter, network string) error
	for name, of := range map[string]struct{ both, network take }{
		"Take": {
			func(l *Limiter, network string) error { return l.TakeNetwork(ctx, MailPerNetwork, network) },
			func(l *Limiter, network string) error { return l.Take(ctx, MailPerNetwork, network) },
		},
		"Pass": {
			func(l *Limiter, network string) error { return l.PassNetwork(ctx, MailPerNetwork, network) },
			func(l *Limiter, network string) error { return l.Pass(ctx, MailPerNetwork, network) },
		},
	} {
		l := New(open(t), Rates{MailPerNetwork: Of(2, time.Hour)})

		for i := range 2 * Wide {
			wantFree(t, name, of.both(l, network(i)))
		}
		for range 3 {
			wantLimited(t, name+" of an exhausted range", of.both(l, network(2*Wide)))
		}

		wantFree(t, name+" of another range", of.both(l, "2001:db8:2::/64"))
		for range 2 {
			wantFree(t, name+" of a network that was refused", of.network(l, network(2*Wide)))
		}
		wantFree(t, name+" of text that is not a network", of.both(l, ""))
		wantFree(t, name+" of a limit that is off", of.both(New(open(t), nil), network(0)))
	}
}
