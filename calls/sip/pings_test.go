package sip_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/selvage/selvage/calls/sip"
)

// TestPingsAfterRestart shows that a server that has restarted pings the phones that registered over UDP
// before, because their NATs would otherwise drop their mappings before they register again.
func TestPingsAfterRestart(t *testing.T) {
	w := newWorld(t)
	bob := w.registered("bob")
	if err := w.server.SavePings(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = w.server.Close() // returns no error
	at := &net.TCPAddr{IP: w.udp.IP, Port: w.udp.Port}
	restarted := sip.New(sip.Config{
		UDP:        must[*net.UDPConn](t)(net.ListenUDP("udp", w.udp)),
		TCP:        must[*net.TCPListener](t)(net.ListenTCP("tcp", at)),
		Fabric:     w.fabric,
		Sessions:   w.shared,
		Node:       "other",
		Alone:      true,
		AddressFor: func(netip.Addr) netip.Addr { return netip.MustParseAddr("127.0.0.1") },
	})
	restarted.Carry(w.calls)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); restarted.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })

	got := make([]byte, 8)
	_ = bob.conn.SetReadDeadline(time.Now().Add(deadline))
	n, err := bob.conn.Read(got)
	if err != nil {
		t.Fatal(err)
	}
	if ping := "\r\n\r\n"; string(got[:n]) != ping {
		t.Errorf("the phone got %q, want %q", got[:n], ping)
	}
}
