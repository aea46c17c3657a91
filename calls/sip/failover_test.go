package sip_test

import (
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// at returns the address of the phone's socket.
func (p *phone) at() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// carriers returns two phones, one at each address of a gateway. SRV records name the addresses.
// more contains further fields of the gateway.
func (w *world) carriers(more map[string]json.RawMessage) (first, second *phone) {
	w.t.Helper()
	first = w.newPhone("carrier")
	second = w.newPhone("carrier")
	w.names.serve(w.t, first.at(), second.at())
	more["uri"] = quoted("trunk@isp.example")
	w.newCarrier(more)
	w.permit(fabric.OutboundOn, "+49")
	return first, second
}

// TestFailover shows that a call goes to the next address of a gateway if an address does not
// answer, or answers with 503. If no address takes the call, the caller learns this. The next call
// tries a silent address last.
func TestFailover(t *testing.T) {
	for name, fails := range map[string]func(w *world, p *phone, invite message){
		"503": func(_ *world, p *phone, invite message) {
			p.reply(invite, "503 Service Unavailable", "")
			p.expect("ACK")
		},
		"silence": func(w *world, _ *phone, _ message) { w.server.TimeOutRequests() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, second := w.carriers(map[string]json.RawMessage{})
			alice := w.newPhone("alice")
			alice.dial("+4930123456")
			one := first.expect("INVITE")
			fails(w, first, one)
			two := second.expect("INVITE")
			if got, want := two.header("Call-ID")[0], one.header("Call-ID")[0]; got != want {
				t.Errorf("the second address got the Call-ID %s, want %s", got, want)
			}
			two = second.challenge(two, "Proxy-Authenticate: Digest realm=\"isp\", nonce=\"abc\", algorithm=MD5\r\n")
			second.respond(two, "200 OK", second.offer("sendrecv"))
			second.expect("ACK")
			answered := alice.expect("200")
			alice.acks(answered, alice.seq)
			alice.hangsUp(answered)
			second.respond(second.expect("BYE"), "200 OK", "")
			w.isOver()

			r, _ := alice.dial("+4930123456")
			order := []*phone{first, second}
			if name == "silence" {
				order = []*phone{second, first}
			}
			for _, p := range order {
				fails(w, p, p.expect("INVITE"))
			}
			alice.send(alice.acknowledge(r, alice.expect("480")))
			w.isOver()
		})
	}
}

// TestSlowAddress shows that a call goes to the next address of a gateway if an address does not respond
// soon. If it responds later, it must not take the call, too. The next call tries it again.
func TestSlowAddress(t *testing.T) {
	for name, responds := range map[string]func(p *phone, invite message){
		"ringing": func(p *phone, invite message) {
			p.reply(invite, "180 Ringing", "")
			p.reply(p.expect("CANCEL"), "200 OK", "")
			p.reply(invite, "487 Request Terminated", "")
			p.expect("ACK")
		},
		"answer": func(p *phone, invite message) {
			p.respond(invite, "200 OK", p.offer("sendrecv"))
			p.expect("ACK")
			p.respond(p.expect("BYE"), "200 OK", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, second := w.carriers(map[string]json.RawMessage{})
			alice := w.newPhone("alice")
			alice.dial("+4930123456")
			one := first.expect("INVITE")
			w.server.SlowRequests()
			two := second.expect("INVITE")
			responds(first, one)

			second.respond(two, "200 OK", second.offer("sendrecv"))
			second.expect("ACK")
			answered := alice.expect("200")
			alice.acks(answered, alice.seq)
			alice.hangsUp(answered)
			second.respond(second.expect("BYE"), "200 OK", "")
			w.isOver()
			alice.dial("+4930123456")
			first.expect("INVITE")
		})
	}
}

// TestSlowGateway shows that a gateway that has no other address may respond later.
func TestSlowGateway(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"uri": quoted("trunk@isp.example")})
	w.names.serve(t, carrier.at())
	w.permit(fabric.OutboundOn, "+49")
	alice := w.newPhone("alice")
	alice.dial("+4930123456")
	invite := carrier.expect("INVITE")
	w.server.SlowRequests()
	carrier.respond(invite, "200 OK", carrier.offer("sendrecv"))
	carrier.expect("ACK") // no other INVITE was sent before
	alice.expect("200")
}

// TestSilentAddress shows that an address of a gateway that does not answer is tried after the
// others until it answers again. This applies even if the caller gave up before the server noticed
// the silence.
func TestSilentAddress(t *testing.T) {
	w := newWorld(t)
	first, second := w.carriers(map[string]json.RawMessage{})
	alice := w.newPhone("alice")
	r, m := alice.dial("+4930123456")
	first.expect("INVITE")
	alice.send(alice.write(alice.cancellation(r, m), ""))
	alice.expect("200")
	alice.send(alice.acknowledge(r, alice.expect("487")))
	w.isOver()
	w.server.TimeOutRequests()
	w.logs("a SIP gateway does not answer")

	ends := func(p *phone) {
		t.Helper()
		p.reply(p.expect("INVITE"), "486 Busy Here", "")
		p.expect("ACK")
		alice.send(alice.acknowledge(r, alice.expect("486")))
		w.isOver()
	}
	r, _ = alice.dial("+4930123456")
	second.reply(second.expect("INVITE"), "503 Service Unavailable", "")
	second.expect("ACK")
	ends(first)
	r, _ = alice.dial("+4930123456")
	ends(first)
}

// TestSilentRegistrar shows that a call goes first to the address of a gateway that has answered a
// REGISTER.
func TestSilentRegistrar(t *testing.T) {
	w := newWorld(t)
	first, second := w.carriers(map[string]json.RawMessage{"register": json.RawMessage("true")})
	w.readGateways(w.server)
	first.expect("REGISTER")
	w.server.TimeOutRequests()
	second.accepts(w.server, second.expect("REGISTER"))
	w.newPhone("alice").dial("+4930123456")
	second.expect("INVITE")
}

// TestMediaAfterFailover shows that a gateway is heard if it takes a call at another address, even
// if it describes its media with an address that cannot be used. Each INVITE names the address at
// which its recipient can reach the server.
func TestMediaAfterFailover(t *testing.T) {
	w := newWorld(t)
	first, remote, second := w.newPhone("carrier"), w.newPhone("carrier"), w.newPhone("carrier")
	remote.conn = remote.from("127.0.3.2")
	second.conn = second.from("127.0.0.2")
	second.rtp = must[*net.UDPConn](t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}))
	t.Cleanup(func() { _ = second.rtp.Close() })
	w.names.serve(t, first.at(), remote.at(), second.at())
	w.newCarrier(map[string]json.RawMessage{"uri": quoted("trunk@isp.example")})
	w.permit(fabric.OutboundOn, "+49")

	alice := w.newPhone("alice")
	alice.dial("+4930123456")
	refuses := func(p *phone, reachable netip.Addr) {
		t.Helper()
		invite := p.expect("INVITE")
		if described := "c=IN IP4 " + reachable.String() + "\r\n"; !strings.Contains(invite.body(), described) {
			t.Errorf("the gateway got the description\n%s\nwant the address %s", invite.body(), reachable)
		}
		p.reply(invite, "503 Service Unavailable", "")
		p.expect("ACK")
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	refuses(first, loopback)
	refuses(remote, remoteNetwork.Addr())
	invite := second.expect("INVITE")
	if !strings.Contains(invite.body(), "c=IN IP4 127.0.0.1\r\n") {
		t.Errorf("the third address got the description\n%s\nwant the address %s", invite.body(), loopback)
	}
	described := strings.Replace(second.offer("sendrecv"), "c=IN IP4 127.0.0.1", "c=IN IP6 2001:db8::1", 1)
	second.respond(invite, "200 OK", described)
	second.expect("ACK")
	answered := alice.expect("200")
	alice.acks(answered, alice.seq)
	hear(t, alice, alice.mediaOf(answered), second, "hello carrier")
	hear(t, second, second.mediaOf(invite), alice, "hello alice")
}

// TestOtherFamily shows that no INVITE is sent over UDP to an IPv6 address of a gateway if the server
// listens only on IPv4.
func TestOtherFamily(t *testing.T) {
	w := newWorld(t)
	carrier := w.newPhone("carrier")
	w.names.serve(t, netip.AddrPortFrom(netip.IPv6Loopback(), 5060), carrier.at())
	w.newCarrier(map[string]json.RawMessage{"uri": quoted("trunk@isp.example")})
	w.permit(fabric.OutboundOn, "+49")
	w.newPhone("alice").dial("+4930123456")
	carrier.expect("INVITE")
	if n := w.server.Stats().Outbound; n != 1 {
		t.Errorf("the server has sent %d INVITEs, want 1", n)
	}
}

// TestFailoverOfConnection shows that a call goes to the next address of a gateway if the first address
// refuses the connection.
func TestFailoverOfConnection(t *testing.T) {
	w := newWorld(t)
	carrier := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = carrier.Close() })
	closed := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	_ = closed.Close()
	at := func(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }
	w.names.serve(t, at(closed), at(carrier))
	w.newCarrier(map[string]json.RawMessage{"uri": quoted("trunk@isp.example"), "transport": quoted("tcp")})
	w.permit(fabric.OutboundOn, "+49")
	w.newPhone("alice").dial("+4930123456")
	trunk := w.newPhone("carrier")
	trunk.conn = must[net.Conn](t)(carrier.Accept())
	trunk.expect("INVITE")
}

// TestFailoverOfRegistration is like TestFailover, for the registration at the gateway. The server
// first tries to renew a registration at its address. If neither address renews the registration, the
// server remains registered at the same address.
func TestFailoverOfRegistration(t *testing.T) {
	w := newWorld(t)
	first, second := w.carriers(map[string]json.RawMessage{"register": json.RawMessage("true")})
	w.readGateways(w.server)
	first.reply(first.expect("REGISTER"), "503 Service Unavailable", "")
	second.accepts(w.server, second.expect("REGISTER"))

	w.server.RenewRegistrations()
	w.readGateways(w.server)
	second.expect("REGISTER")
	if m := first.next(silence); m != "" {
		t.Errorf("before its turn, the first address got\n%s\nwant nothing", m)
	}
	w.server.TimeOutRequests()
	first.reply(first.expect("REGISTER"), "503 Service Unavailable", "")
	eventually(t, "the failure to be noted", func() bool { return w.server.PendingRegistrations() == 0 })

	wait := w.unregister(w.server)
	second.reply(second.registers("0"), "200 OK", "")
	wait()
}

// TestRefusedRenewal shows that a registration moves to another address of the gateway if its address
// refuses to renew it.
func TestRefusedRenewal(t *testing.T) {
	w := newWorld(t)
	first, second := w.carriers(map[string]json.RawMessage{"register": json.RawMessage("true")})
	w.readGateways(w.server)
	first.reply(first.expect("REGISTER"), "503 Service Unavailable", "")
	second.accepts(w.server, second.expect("REGISTER"))

	w.server.RenewRegistrations()
	w.readGateways(w.server)
	second.reply(second.expect("REGISTER"), "403 Forbidden", "")
	eventually(t, "the refusal to be noted", func() bool { return w.server.PendingRegistrations() == 0 })
	w.server.RenewRegistrations()
	w.readGateways(w.server)
	if got := first.expect("REGISTER").header("CSeq")[0]; got != "4 REGISTER" { // if second were asked again, 5
		t.Errorf("after the refusal, the other address got the CSeq %s, want 4 REGISTER", got)
	}
}

// registersAlone returns a gateway with a registration at its only address, and the gateway's id.
func (w *world) registersAlone() (*phone, string) {
	w.t.Helper()
	p, id := w.newCarrier(map[string]json.RawMessage{
		"uri":      quoted("trunk@isp.example"),
		"register": json.RawMessage("true"),
	})
	w.names.serve(w.t, p.at())
	w.readGateways(w.server)
	p.accepts(w.server, p.expect("REGISTER"))
	return p, id
}

// TestRenewalAmongMany shows that a registration is renewed at its address even if the gateway now
// prefers more other addresses than the server tries.
func TestRenewalAmongMany(t *testing.T) {
	w := newWorld(t)
	registered, _ := w.registersAlone()
	hosts := []netip.AddrPort{}
	for range 4 {
		hosts = append(hosts, w.newPhone("carrier").at())
	}
	w.names.serve(t, append(hosts, registered.at())...)
	w.server.RenewRegistrations()
	w.readGateways(w.server)
	registered.expect("REGISTER")
}

// TestRegistrationOfRenamedGateway shows that the server remains registered at the same address if
// a gateway is renamed, even if the gateway now prefers another address.
func TestRegistrationOfRenamedGateway(t *testing.T) {
	w := newWorld(t)
	registered, id := w.registersAlone()
	w.names.serve(t, w.newPhone("carrier").at(), registered.at())
	w.changeGateway(id, map[string]json.RawMessage{"name": quoted("Renamed")})
	w.readGateways(w.server)
	registered.expect("REGISTER")
	if n := w.server.Stats().Gateways; n != 1 {
		t.Errorf("after the change, the server is registered at %d gateways, want 1", n)
	}
}
