package server

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/bus"
)

// TestMediaNodes shows that mediaNodes returns the addresses that other nodes have sent within the
// last minute.
func TestMediaNodes(t *testing.T) {
	m := newMediaNodes(bus.New(bus.Config{Node: "a"}), nil)
	for _, named := range []struct {
		node, addresses string
		before          time.Duration
	}{
		{"b", `["192.0.2.1:8444","[2001:db8::1]:8444"]`, mediaFor / 2}, {"c", `["192.0.2.2:8444"]`, mediaFor / 2},
		{"d", `["192.0.2.3:8444"]`, mediaFor + time.Second}, {"e", `null`, 0}, {"b", `["192.0.2.9:8444"]`, 0},
	} {
		if err := m.note(named.node, json.RawMessage(named.addresses), time.Now().Add(-named.before)); err != nil {
			t.Fatal(err)
		}
	}

	if err := m.note("f", json.RawMessage(`["192.0.2.4"]`), time.Now()); err == nil {
		t.Error("an address without a port is accepted")
	}

	var got []string
	for _, a := range m.addresses() {
		got = append(got, a.String())
	}
	slices.Sort(got)
	if want := []string{"192.0.2.2:8444", "192.0.2.9:8444"}; !slices.Equal(got, want) {
		t.Errorf("the addresses are %v, want %v", got, want)
	}
	if n := len(m.known); n != 3 {
		t.Errorf("%d nodes are known, want three: the others are forgotten", n)
	}
}

// TestNamedMedia shows that a node sends its addresses in the form that other nodes can read.
func TestNamedMedia(t *testing.T) {
	own := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:8444")}
	text, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	m := newMediaNodes(bus.New(bus.Config{Node: "a"}), own)
	if err := m.note("b", text, time.Now()); err != nil || !slices.Equal(m.addresses(), own) {
		t.Errorf("note(%s) = %v, and the addresses are %v, want nil and the same addresses", text, err, m.addresses())
	}
}
