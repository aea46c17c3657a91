package limit

import (
	"net/netip"
	"testing"
)

// TestConnections shows that the limits hold for each network and in total, and that removed
// connections make room for others.
func TestConnections(t *testing.T) {
	c := Connections{Most: 3, PerNetwork: 2}
	near, nearer := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.200")
	far, farther := netip.MustParseAddr("2001:db8:1:2::1"), netip.MustParseAddr("2001:db8:2::1")
	for i, step := range []struct {
		from netip.Addr
		want bool
	}{
		{from: near, want: true},
		{from: nearer, want: true},
		{from: near, want: false},
		{from: far, want: true},
		{from: farther, want: false},
	} {
		if got := c.Add(step.from); got != step.want {
			t.Errorf("connection %d from %v was accepted: %v, want %v", i, step.from, got, step.want)
		}
	}

	c.Remove(near)
	if !c.Add(farther) {
		t.Error("a connection was refused after another had ended")
	}
	for _, a := range []netip.Addr{nearer, far, farther} {
		c.Remove(a)
	}
	if n := c.Networks(); n != 0 {
		t.Errorf("%d networks have connections, want none", n)
	}
}
