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

	bob.isPinged()
}

// TestPingedGateway shows that the server pings a gateway at which it has registered over UDP, because its
// own NAT might otherwise drop the mapping. The gateway could then not call.
func TestPingedGateway(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.registersAlone()
	w.server.Ping()
	carrier.isPinged()
}

// isPinged waits until the phone receives a ping.
func (p *phone) isPinged() {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(deadline))
	b := make([]byte, 8192)
	for got := ""; got != "\r\n\r\n"; {
		n, err := p.conn.Read(b)
		if err != nil {
			p.t.Fatalf("waiting for a ping: %v", err)
		}
		got = string(b[:n])
	}
}
