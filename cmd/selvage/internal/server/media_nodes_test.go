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
	messages := []struct {
		node      string
		addresses string
		age       time.Duration
	}{
		{node: "b", addresses: `["192.0.2.1:8444","[2001:db8::1]:8444"]`, age: mediaFor / 2},
		{node: "c", addresses: `["192.0.2.2:8444"]`, age: mediaFor / 2},
		{node: "d", addresses: `["192.0.2.3:8444"]`, age: mediaFor + time.Second},
		{node: "e", addresses: `null`},
		{node: "b", addresses: `["192.0.2.9:8444"]`},
	}
	for _, message := range messages {
		received := time.Now().Add(-message.age)
		if err := m.note(message.node, json.RawMessage(message.addresses), received); err != nil {
			t.Fatal(err)
		}
	}

	if err := m.note("f", json.RawMessage(`["192.0.2.4"]`), time.Now()); err == nil {
		t.Error("an address without a port was accepted")
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
		t.Errorf("%d nodes are known, want 3, because d was forgotten and f was refused", n)
	}
}

// TestNamedMedia shows that a node can read addresses in the JSON form in which nodes send their own.
func TestNamedMedia(t *testing.T) {
	own := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:8444")}
	text, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	m := newMediaNodes(bus.New(bus.Config{Node: "a"}), own)
	if err := m.note("b", text, time.Now()); err != nil {
		t.Fatalf("note(%s) = %v, want nil", text, err)
	}
	if got := m.addresses(); !slices.Equal(got, own) {
		t.Errorf("the addresses are %v, want %v", got, own)
	}
}
