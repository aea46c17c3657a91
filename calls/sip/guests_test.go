package sip

import (
	"net"
	"net/netip"
	"testing"
)

// TestGuests shows that clients that have not authenticated can keep only a limited number of
// connections. A connection that has ended or authenticated no longer counts.
func TestGuests(t *testing.T) {
	s := outsiders{New(Config{})}
	connect := func() flow {
		conn, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		stream := newStream(conn)
		stream.keep = func() { stream.kept.Store(true) }
		return flow{tcp: stream, remote: netip.MustParseAddrPort("192.0.2.1:5060")}
	}

	first := connect()
	for range 2 {
		if !s.keep(first) {
			t.Fatal("the first connection was not kept")
		}
	}
	for range maxGuestsEach - 1 {
		s.keep(connect())
	}
	if s.keep(connect()) {
		t.Errorf("%d connections were kept, want %d", maxGuestsEach+1, maxGuestsEach)
	}

	proven := connect()
	proven.tcp.keep()
	if !s.keep(proven) {
		t.Error("the connection of a phone that has authenticated was not kept")
	}

	s.forgetGuest(first)
	ended := connect()
	ended.tcp.close()
	s.keep(ended)
	registers := connect()
	if !s.keep(registers) {
		t.Error("connections that have ended still count")
	}
	s.prove(registers)
	if !s.keep(connect()) {
		t.Error("the connection of a phone that has registered still counts")
	}
}
