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

// TestRangeOfNetworks shows that the networks in a range share the limit of the range, and that an event
// that this limit refuses does not count for its network, either.
func TestRangeOfNetworks(t *testing.T) {
	ctx := t.Context()
	nth := func(i int) string { return fmt.Sprintf("2001:db8:1:%x::/64", i) }
	for _, tt := range []struct {
		name    string
		both    func(l *Limiter, network string) error // counts for the network and its range
		network func(l *Limiter, network string) error // counts only for the network
	}{
		{
			name:    "Take",
			both:    func(l *Limiter, network string) error { return l.TakeNetwork(ctx, MailPerNetwork, network) },
			network: func(l *Limiter, network string) error { return l.Take(ctx, MailPerNetwork, network) },
		},
		{
			name:    "Pass",
			both:    func(l *Limiter, network string) error { return l.PassNetwork(ctx, MailPerNetwork, network) },
			network: func(l *Limiter, network string) error { return l.Pass(ctx, MailPerNetwork, network) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(open(t), Rates{MailPerNetwork: Of(2, time.Hour)})
			for i := range 2 * Wide {
				wantFree(t, "an event of one of many networks", tt.both(l, nth(i)))
			}

			refused := nth(2 * Wide)
			for range 3 {
				wantLimited(t, "an event of another network in the same range", tt.both(l, refused))
			}
			wantFree(t, "an event of a network in a different range", tt.both(l, "2001:db8:2::/64"))
			for range 2 {
				wantFree(t, "an event of the refused network alone", tt.network(l, refused))
			}
			wantFree(t, "an event without a network", tt.both(l, ""))
			wantFree(t, "an event while the limit is off", tt.both(New(open(t), nil), nth(0)))
		})
	}
}
