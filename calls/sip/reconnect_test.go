package sip_test

import (
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// TestReconnectedPhone shows that a phone that reconnects during a call gets the requests of the call
// over its new connection, even if the server does not know yet that the former connection is dead.
func TestReconnectedPhone(t *testing.T) {
	for name, reconnect := range map[string]func(c conversation, former net.Conn){
		"after its former connection ended": func(c conversation, former net.Conn) {
			streams := func() int { return c.bob.server.Stats().Streams }
			eventually(c.bob.t, "the new connection", func() bool { return streams() == 2 })
			_ = former.Close()
			eventually(c.bob.t, "the former connection to end", func() bool { return streams() == 1 })
			c.bob.register()
		},
		"with the same contact": func(c conversation, former net.Conn) {
			r := c.bob.registration(600)
			at := func(text string) string {
				return strings.ReplaceAll(text, c.bob.conn.LocalAddr().String(), former.LocalAddr().String())
			}
			c.bob.send(at(c.bob.write(r, "")))
			c.bob.send(at(c.bob.write(r, c.bob.authorize(c.bob.expect("401"), r.method, r.uri, 1))))
			c.bob.expect("200")
		},
		"without registering again": func(c conversation, _ net.Conn) {
			c.bob.send(c.bob.write(c.bobRequests("OPTIONS"), ""))
			c.bob.expect("200")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := converseOver(t, w.newPhone("alice"), w.newPhone("bob").overTCP())
			former := c.bob.conn
			c.bob.overTCP()
			reconnect(c, former)

			c.alice.send(c.alice.write(c.alice.inDialog("BYE", c.answered), ""))
			c.alice.expect("200")
			c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
			w.isOver()
		})
	}
}

// TestReconnectedDuringCheck shows that a call continues if a phone does not get an OPTIONS because it
// reconnects.
func TestReconnectedDuringCheck(t *testing.T) {
	w := newWorld(t)
	c := converseOver(t, w.newPhone("alice"), w.newPhone("bob").overTCP())
	now := time.Now()
	w.server.CheckDialogs(now)
	w.server.CheckDialogs(now.Add(time.Minute))
	c.alice.respond(c.alice.expect("OPTIONS"), "200 OK", "")
	former := c.bob.conn
	c.bob.overTCP()
	streams := func() int { return w.server.Stats().Streams }
	eventually(t, "the new connection", func() bool { return streams() == 2 })
	_ = former.Close()
	eventually(t, "the former connection to end", func() bool { return streams() == 1 })
	c.bob.register()
	eventually(t, "alice's response", func() bool { return w.server.Unanswered() == 1 })
	w.server.TimeOutRequests()

	w.server.CheckDialogs(now.Add(2 * time.Minute))
	c.bob.respond(c.bob.expect("OPTIONS"), "200 OK", "")
	c.alice.respond(c.alice.expect("OPTIONS"), "200 OK", "")
	w.running(counts{calls: 1, legs: 2})
}

// TestReconnectedGateway shows that a gateway that has closed its connection gets the BYE of a call
// over another connection. Otherwise, the gateway would continue the call.
func TestReconnectedGateway(t *testing.T) {
	w := newWorld(t)
	w.permit(fabric.OutboundOn, "+49")
	carrier := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = carrier.Close() })
	w.newCarrier(map[string]json.RawMessage{
		"transport": quoted("tcp"),
		"uri":       quoted("trunk@" + carrier.Addr().String()),
	})
	alice, trunk := w.newPhone("alice"), w.newPhone("carrier")
	if _, m := alice.dial("+4930123456"); m.kind() != "180" {
		t.Fatalf("calling a number returned\n%s\nwant 180", m)
	}

	trunk.conn = must[net.Conn](t)(carrier.Accept())
	trunk.respond(trunk.expect("INVITE"), "200 OK", trunk.offer("sendrecv"))
	trunk.expect("ACK")
	answered := alice.expect("200")
	alice.acks(answered, alice.seq)

	_ = trunk.conn.Close()
	eventually(t, "the connection to end", func() bool { return w.server.Stats().Streams == 0 })
	alice.send(alice.write(alice.inDialog("BYE", answered), ""))
	alice.expect("200")
	trunk.conn = must[net.Conn](t)(carrier.Accept())
	t.Cleanup(func() { _ = trunk.conn.Close() })
	trunk.respond(trunk.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestDeadConnection shows that the server connects to a gateway again if a call gets no answer over its
// connection.
func TestDeadConnection(t *testing.T) {
	w := newWorld(t)
	w.permit(fabric.OutboundOn, "+49")
	carrier := must[*net.TCPListener](t)(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	t.Cleanup(func() { _ = carrier.Close() })
	_ = carrier.SetDeadline(time.Now().Add(deadline))
	w.newCarrier(map[string]json.RawMessage{
		"transport": quoted("tcp"),
		"uri":       quoted("trunk@" + carrier.Addr().String()),
	})
	alice, trunk := w.newPhone("alice"), w.newPhone("carrier")
	r, _ := alice.dial("+4930123456")
	trunk.conn = must[net.Conn](t)(carrier.Accept())
	t.Cleanup(func() { _ = trunk.conn.Close() })
	trunk.expect("INVITE")
	w.server.TimeOutRequests()
	alice.send(alice.acknowledge(r, alice.expect("480")))
	w.isOver()

	alice.dial("+4930123456")
	again := w.newPhone("carrier")
	again.conn = must[net.Conn](t)(carrier.Accept())
	t.Cleanup(func() { _ = again.conn.Close() })
	again.expect("INVITE")
}

// TestDeadPhone shows that the server closes the connection of a phone that does not answer a call. The next
// call does not wait for the phone.
func TestDeadPhone(t *testing.T) {
	w := newWorld(t)
	bob, alice := w.newPhone("bob").overTCP(), w.newPhone("alice")
	bob.register()
	r := alice.calling("bob")
	bob.expect("INVITE")
	w.server.TimeOutRequests()
	alice.send(alice.acknowledge(r, alice.expect("480")))
	eventually(t, "the connection to end", func() bool { return w.server.Stats().Streams == 0 })
	if m := alice.dialed("bob"); m.kind() != "480" {
		t.Errorf("calling bob again returned\n%s\nwant 480", m)
	}
}

// TestLiveConnection shows that the server keeps the connection of a phone or gateway that does not answer a
// call, but sends a ping meanwhile.
func TestLiveConnection(t *testing.T) {
	for name, call := range map[string]func(w *world, alice *phone) (request, *phone){
		"phone": func(w *world, alice *phone) (request, *phone) {
			bob := w.newPhone("bob").overTCP()
			bob.register()
			return alice.calling("bob"), bob
		},
		"gateway": func(w *world, alice *phone) (request, *phone) {
			w.permit(fabric.OutboundOn, "+49")
			carrier := must[net.Listener](w.t)(net.Listen("tcp", "127.0.0.1:0"))
			w.t.Cleanup(func() { _ = carrier.Close() })
			w.newCarrier(map[string]json.RawMessage{
				"transport": quoted("tcp"),
				"uri":       quoted("trunk@" + carrier.Addr().String()),
			})

			r, _ := alice.dial("+4930123456")
			trunk := w.newPhone("carrier")
			trunk.conn = must[net.Conn](w.t)(carrier.Accept())
			w.t.Cleanup(func() { _ = trunk.conn.Close() })
			return r, trunk
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			alice := w.newPhone("alice")
			r, called := call(w, alice)
			ping := func() {
				t.Helper()
				called.send("\r\n\r\n")
				must[int](t)(io.ReadFull(called.conn, make([]byte, len("\r\n"))))
			}

			called.expect("INVITE")
			ping()
			w.server.TimeOutRequests()
			alice.send(alice.acknowledge(r, alice.expect("480")))
			w.isOver()
			ping()
		})
	}
}

// TestReconnectedCaller shows that a gateway that reconnects during a call may keep its connection,
// even if strangers have as many connections as they may. A caller of a SIP address whose network is
// permitted may do so, too.
func TestReconnectedCaller(t *testing.T) {
	for name, prepare := range map[string]func(w *world) (*phone, request){
		"a gateway": func(w *world) (*phone, request) {
			p, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.1"]`)})
			w.assign("+49305551234", "bob")
			w.readGateways(w.server)
			return p, p.invitation("+49305551234")
		},
		"a caller of a SIP address": func(w *world) (*phone, request) {
			w.newSIPAddress(map[string]json.RawMessage{
				"ip_auth_enabled": json.RawMessage(`true`),
				"ip_auth":         json.RawMessage(`["127.0.0.1"]`),
			})
			p := w.newPhone("stranger")
			return p, p.toSupport()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bob := w.newPhone("bob")
			bob.register()
			p, r := prepare(w)
			p.overTCP()
			p.send(p.write(r, ""))
			p.expect("100")
			p.expect("180")
			bob.respond(bob.expect("INVITE"), "200 OK", bob.offer("sendrecv"))
			bob.expect("ACK")
			answered := p.expect("200")
			p.acks(answered, p.seq)

			id := p.callID
			_ = p.conn.Close()
			eventually(t, "the connection to end", func() bool { return w.server.Stats().Streams == 0 })
			w.server.FillGuests(netip.MustParseAddr("127.0.0.1"))
			p.overTCP()
			p.callID = id
			p.send(p.write(p.inDialog("OPTIONS", answered), ""))
			p.expect("200")
			if left := time.Until(w.streams.deadline()); left < 10*time.Minute {
				t.Errorf("the new connection may be silent for %s, want at least 10m", left)
			}
		})
	}
}
