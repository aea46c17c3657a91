package sip_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls/sip"
)

// accepts answers a REGISTER with 200, and waits until the server has recorded the registration.
// There must be only one gateway.
func (p *phone) accepts(s *sip.Server, m message) {
	p.t.Helper()
	p.reply(m, "200 OK", "Expires: 300\r\n")
	eventually(p.t, "the registration", func() bool { return s.Stats().Gateways == 1 })
}

// unregister makes a server unregister at its gateways. The returned function waits until the server
// has done this.
func (w *world) unregister(s *sip.Server) (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Unregister(w.t.Context())
	}()
	return func() { <-ended }
}

// readGateways makes a server register at the gateways where a registration is due.
func (w *world) readGateways(s *sip.Server) {
	w.t.Helper()
	if err := s.ReadGateways(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// TestLeaveGateway shows that a server that stops unregisters at a gateway with the gateway's
// password. After that, it does not register again.
func TestLeaveGateway(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"register": json.RawMessage("true")})
	w.readGateways(w.server)
	first := carrier.registers("300")
	carrier.accepts(w.server, first)

	wait := w.unregister(w.server)
	m := carrier.registers("0")
	if got, want := m.header("Contact")[0], first.header("Contact")[0]; got != want {
		t.Errorf("the server unregisters %s, want %s", got, want)
	}
	carrier.reply(m, "401 Unauthorized", "WWW-Authenticate: Digest realm=\"isp\", nonce=\"def\"\r\n")
	m = carrier.registers("0")
	if len(m.header("Authorization")) != 1 {
		t.Errorf("after a challenge, the gateway got\n%s\nwant one Authorization", m)
	}
	carrier.reply(m, "200 OK", "")
	wait()
	eventually(t, "the registration to end", func() bool { return w.server.Stats().Gateways == 0 })

	w.server.RenewRegistrations()
	w.readGateways(w.server)
	if m := carrier.next(silence); m != "" {
		t.Errorf("after the server unregistered, the gateway got\n%s\nwant nothing", m)
	}
}

// node starts another node, which serves only SIP.
func (w *world) node(name string) *sip.Server {
	w.t.Helper()
	udp, tcp := listen(w.t)
	loopback := netip.MustParseAddr("127.0.0.1")
	s := sip.New(sip.Config{
		UDP:        udp,
		TCP:        tcp,
		Fabric:     w.fabric,
		Sessions:   w.shared,
		Node:       name,
		AddressFor: func(netip.Addr) netip.Addr { return loopback },
		Log:        slog.New(slog.NewTextHandler(&w.log, nil)),
		MayReach:   func(_ string, at netip.AddrPort) bool { return at.Addr() == loopback },
	})
	s.Carry(w.calls)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-ended })
	return s
}

// A reachable is the socket of a gateway that several nodes reach. It writes to the last sender.
type reachable struct {
	*net.UDPConn
	last *net.UDPAddr
}

// Read implements net.Conn.
func (r *reachable) Read(b []byte) (n int, err error) {
	n, r.last, err = r.ReadFromUDP(b)
	return n, err
}

// Write implements net.Conn.
func (r *reachable) Write(b []byte) (int, error) { return r.WriteToUDP(b, r.last) }

// TestHandOver shows that another node registers at a gateway as soon as a node that stops has
// unregistered. A node that does not register at the gateway does not unregister, either.
func TestHandOver(t *testing.T) {
	w := newWorld(t)
	w.unregister(w.server)() // it would register without regard to other nodes
	socket := must[*net.UDPConn](t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	t.Cleanup(func() { _ = socket.Close() })
	carrier, _ := w.newCarrier(map[string]json.RawMessage{
		"uri":      quoted("trunk@" + socket.LocalAddr().String()),
		"register": json.RawMessage("true"),
	})
	carrier.conn = &reachable{UDPConn: socket}
	one := w.node("one")
	w.readGateways(one)
	carrier.accepts(one, carrier.registers("300"))
	two, three := w.node("two"), w.node("three")
	w.readGateways(two)
	w.unregister(two)()

	wait := w.unregister(one)
	carrier.reply(carrier.registers("0"), "200 OK", "")
	wait()
	w.readGateways(three)
	carrier.accepts(three, carrier.registers("300"))
}

// TestChangedRegistration shows that a gateway that was changed gets the same Contact again.
// Otherwise, it would send each call to both contacts. If the username changes or registration is
// switched off, the former registration ends.
func TestChangedRegistration(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(map[string]json.RawMessage{"register": json.RawMessage("true")})
	w.readGateways(w.server)
	first := carrier.registers("300")
	carrier.accepts(w.server, first)

	w.changeGateway(id, map[string]json.RawMessage{"name": quoted("Renamed")})
	w.readGateways(w.server)
	second := carrier.registers("300")
	if got, want := second.header("Contact")[0], first.header("Contact")[0]; got != want {
		t.Errorf("after a change, the server registers %s, want %s", got, want)
	}
	carrier.accepts(w.server, second)

	w.changeGateway(id, map[string]json.RawMessage{"username": quoted("trunk-2")})
	w.readGateways(w.server)
	for range 2 {
		m := carrier.expect("REGISTER")
		to, expires := m.header("To")[0], m.header("Expires")[0]
		isEnd := strings.Contains(to, "trunk-1") && expires == "0"
		isNew := strings.Contains(to, "trunk-2") && expires == "300"
		if !isEnd && !isNew {
			t.Errorf("the gateway got\n%s\nwant the end of trunk-1 and the registration of trunk-2", m)
		}
		carrier.reply(m, "200 OK", "Expires: "+expires+"\r\n")
	}
	eventually(t, "the registration", func() bool { return w.server.Stats().Gateways == 1 })

	w.changeGateway(id, map[string]json.RawMessage{"register": json.RawMessage("false")})
	w.readGateways(w.server)
	carrier.registers("0")
}
