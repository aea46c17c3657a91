package sip_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// newSIPAddress creates the SIP address sip:help@support.localhost, which leads to bob. more
// contains further fields of the address.
func (w *world) newSIPAddress(more map[string]json.RawMessage) fabric.SIPAddress {
	w.t.Helper()
	fields := map[string]json.RawMessage{
		"name":                        quoted("support"),
		"calling_handler_resource_id": quoted(w.subscribers["bob"]),
	}
	maps.Copy(fields, more)
	return must[fabric.SIPAddress](w.t)(w.fabric.SIP.CreateAddress(w.t.Context(), w.project, fields))
}

// overTCP makes the phone use a TCP connection.
func (p *phone) overTCP() *phone {
	p.t.Helper()
	p.conn = must[net.Conn](p.t)(net.Dial("tcp", p.udp.String()))
	p.t.Cleanup(func() { _ = p.conn.Close() })
	p.callID = "from " + p.conn.LocalAddr().String()
	return p
}

// toSupport returns an INVITE to the SIP address.
func (p *phone) toSupport() request {
	r := p.invitation("help")
	r.uri = "sip:help@support.localhost"
	return r
}

// TestGuessingSIPAddress shows that the password of a SIP address is not checked after too many
// wrong passwords, with the same username or with other usernames.
func TestGuessingSIPAddress(t *testing.T) {
	w := newWorld(t)
	w.newSIPAddress(map[string]json.RawMessage{"password": quoted("open sesame")})
	guess := func(user, password string, wait time.Duration) message {
		p := w.newPhone(user)
		p.password = password
		p.callID = user + password
		r := p.toSupport()
		p.send(p.write(r, ""))
		challenge := p.next(deadline)
		if challenge.kind() != "401" {
			return challenge
		}
		p.send(p.acknowledge(r, challenge))
		p.send(p.write(r, p.authorize(challenge, "INVITE", r.uri, 1)))
		return p.next(wait)
	}

	for i := range 4 {
		if m := guess("mallory", fmt.Sprint("wrong ", i), deadline); m.kind() != "401" {
			t.Fatalf("a wrong password returned\n%s\nwant 401", m)
		}
	}
	guess("mallory", "wrong again", silence)
	w.logs("too many wrong passwords for a SIP address")
	for _, user := range []string{"mallory", "trent"} {
		if m := guess(user, "open sesame", silence); m.kind() == "100" {
			t.Errorf("after too many guesses, the right password from %s was accepted", user)
		}
	}
}

// TestOpenSIPAddressProvesNothing shows that a call to a SIP address without a password does not
// make the connection of the call count as authenticated. After too many wrong passwords from the network,
// requests on the connection get no answer.
func TestOpenSIPAddressProvesNothing(t *testing.T) {
	w := newWorld(t)
	bob := w.newPhone("bob")
	bob.register()
	w.newSIPAddress(nil)
	p := w.newPhone("mallory").overTCP()
	r := p.toSupport()
	p.send(p.write(r, ""))
	p.expect("100")
	p.expect("180")
	bob.respond(bob.expect("INVITE"), "486 Busy Here", "")
	bob.expect("ACK")
	p.send(p.acknowledge(r, p.expect("486")))

	for i := range 7 {
		guesser := w.newPhone(fmt.Sprint("nobody", i))
		guesser.askSilently()
	}
	w.logs("too many wrong SIP credentials")
	p.callID = "guess"
	p.send(p.write(p.registration(600), ""))
	if m := p.next(silence); m != "" {
		t.Errorf("a caller without a password got\n%s\nwant no answer on a network with too many guesses", m)
	}
}

// TestManyOutsideCalls shows that callers of a SIP address cannot begin calls faster than phones
// can. The server has to remember each request.
func TestManyOutsideCalls(t *testing.T) {
	w := newWorld(t)
	const limit = 10
	w.server.LimitCalls(w.newSIPAddress(nil).ID, limit)
	p := w.newPhone("mallory").overTCP()
	var flood strings.Builder
	for i := range limit + 1 {
		p.callID = fmt.Sprint("flood ", i)
		flood.WriteString(p.write(p.toSupport(), ""))
	}
	p.send(flood.String())
	eventually(t, "a call to be refused", func() bool { return w.server.Stats().Limited == 1 })
	if n := w.server.Stats().Inbound; n > limit {
		t.Errorf("%d calls began, want at most %d", n, limit)
	}
}

// TestClaimedNetworks shows that a gateway's calls reach its own project, even if gateways of
// a different project claim to be in the same network.
func TestClaimedNetworks(t *testing.T) {
	w := newWorld(t)
	victim := w.project
	w.project = must[fabric.Project](t)(w.fabric.Projects.Create(t.Context(), "two")).ID
	claimed := map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)}
	w.newCarrier(claimed)
	w.project = victim
	carrier, id := w.newCarrier(claimed)
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}

	carrier.send(carrier.write(carrier.invitation("+49305551234"), ""))
	carrier.expect("100")
	carrier.expect("180")
	bob.expect("INVITE")
	r := w.lastCall()
	if r.Guest == "" {
		t.Errorf("the record does not name the caller, want the gateway %s", id)
	}
	if r.To.Address != "/private/bob" {
		t.Errorf("the call leads to %s, want /private/bob", r.To.Address)
	}
}

// TestGatewayAboveItsLimits shows that the server does not remember calls above a gateway's limits.
// Otherwise, the gateway could use up the transactions of all phones.
func TestGatewayAboveItsLimits(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Limits.Gateway.Running = 1 })
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.1"]`)})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}
	carrier.send(carrier.write(carrier.invitation("+49305551234"), ""))
	carrier.expect("100")
	carrier.expect("180")
	bob.respond(bob.expect("INVITE"), "200 OK", bob.offer("sendrecv"))
	bob.expect("ACK")
	carrier.acks(carrier.expect("200"), carrier.seq)

	before := w.server.Transactions()
	for i := range 20 {
		carrier.callID = fmt.Sprint("another-", i)
		carrier.send(carrier.write(carrier.invitation("+49305551234"), ""))
		carrier.expect("503")
	}
	if after := w.server.Transactions(); after > before {
		t.Errorf("after calls above the limit, the server remembers %d requests, want at most %d", after, before)
	}
}

// TestGatewayNamesVictim shows that a gateway can direct only a few packets of a running call to an
// address that has sent no media.
func TestGatewayNamesVictim(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.1"]`)})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}
	victim := w.newPhone("victim")
	victim.rtp = must[*net.UDPConn](t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}))
	t.Cleanup(func() { _ = victim.rtp.Close() })
	toVictim := strings.Replace(victim.offer("recvonly"), "c=IN IP4 127.0.0.1", "c=IN IP4 127.0.0.2", 1)

	carrier.send(carrier.write(carrier.invitation("+49305551234"), ""))
	carrier.expect("100")
	carrier.expect("180")
	invite := bob.expect("INVITE")
	bob.respond(invite, "200 OK", bob.offer("sendrecv"))
	bob.expect("ACK")
	answered := carrier.expect("200")
	hear(t, carrier, carrier.mediaOf(answered), bob, "hello bob")
	change := carrier.inDialog("INVITE", answered).with(sdpType, toVictim)
	carrier.send(carrier.write(change, ""))
	carrier.expect("200")

	heard := countHeard(bob, bob.mediaOf(invite), victim.rtp)
	if heard == 0 || heard > 300 {
		t.Errorf("the victim got %d of 1500 packets, want 1 to 300", heard)
	}
}

// TestForgedCaller shows that a caller whose address is only the source of a UDP packet gets little
// media at this address until it sends media.
func TestForgedCaller(t *testing.T) {
	w := newWorld(t)
	bob := w.newPhone("bob")
	bob.register()
	w.newSIPAddress(map[string]json.RawMessage{
		"ip_auth_enabled": json.RawMessage(`true`),
		"ip_auth":         json.RawMessage(`["127.0.0.1"]`),
	})
	victim := w.newPhone("mallory")
	victim.send(victim.write(victim.toSupport(), ""))
	victim.expect("100")
	victim.expect("180")
	invite := bob.expect("INVITE")
	bob.respond(invite, "200 OK", bob.offer("sendrecv"))
	bob.expect("ACK")
	victim.expect("200")

	heard := countHeard(bob, bob.mediaOf(invite), victim.rtp)
	if heard == 0 || heard > 300 {
		t.Errorf("the victim got %d of 1500 packets, want 1 to 300", heard)
	}
}

// countHeard makes a phone send half a minute of media within seconds. It returns how many packets
// arrive at the listener.
func countHeard(speaker *phone, to *net.UDPAddr, listener *net.UDPConn) (heard int) {
	b := make([]byte, 2048)
	for seq := range uint16(1500) {
		speaker.say(to, seq, "noise")
		_ = listener.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := listener.Read(b); err == nil {
			heard++
		}
	}
	return heard
}

// TestFloodOfPings shows that pings over a connection count against the limit of their network. The
// server then closes the connection.
func TestFloodOfPings(t *testing.T) {
	w := newWorld(t)
	const limit = 10
	w.server.LimitMessages(netip.MustParseAddr("127.0.0.1"), limit)
	conn := w.newPhone("mallory").overTCP().conn
	_ = conn.SetDeadline(time.Now().Add(deadline))
	ping, pong := []byte("\r\n\r\n"), make([]byte, 2)
	for range limit {
		must[int](t)(conn.Write(ping))
		must[int](t)(io.ReadFull(conn, pong))
	}
	must[int](t)(conn.Write(ping))
	if _, err := io.ReadFull(conn, pong); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after %d pings, reading the next answer returned %v, want the end of the connection", limit, err)
	}
	if w.server.Stats().Limited == 0 {
		t.Error("the rejected ping was not counted")
	}
}

// TestConnectionsOfKnownNetwork shows that gateways, and callers from the networks of a SIP address, may
// keep more connections than strangers. Some telephone systems use one connection for each call. Callers
// from a large network count as strangers.
func TestConnectionsOfKnownNetwork(t *testing.T) {
	for networks, want := range map[string]string{
		`["127.0.0.0/8", "127.0.0.1"]`:  "100",
		`["127.0.0.0/24"]`:              "100",
		`["127.0.0.0/23", "127.0.1.1"]`: "503",
		`["127.0.0.0/8"]`:               "503",
	} {
		t.Run(networks, func(t *testing.T) {
			w := newWorld(t)
			w.newPhone("bob").register()
			w.newSIPAddress(map[string]json.RawMessage{
				"ip_auth_enabled": json.RawMessage(`true`),
				"ip_auth":         json.RawMessage(networks),
			})
			carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(networks)})
			w.assign("+49305551234", "bob")
			w.readGateways(w.server)
			w.server.FillGuests(netip.MustParseAddr("127.0.0.1"))

			p := w.newPhone("mallory").overTCP()
			p.send(p.write(p.toSupport(), ""))
			p.expect(want)
			carrier.overTCP()
			carrier.send(carrier.write(carrier.invitation("+49305551234"), ""))
			carrier.expect(want)
		})
	}
}
