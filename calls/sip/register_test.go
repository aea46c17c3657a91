package sip_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/revocation"
)

func TestRegister(t *testing.T) {
	w := newWorld(t)
	for _, algorithm := range []string{"SHA-256", "MD5"} {
		p := w.newPhone("alice")
		p.algorithm = algorithm
		p.callID = "registration by " + algorithm
		contacts := strings.Join(p.register().header("Contact"), "\n")
		if want := p.conn.LocalAddr().String() + ";transport=udp>;expires=600"; !strings.Contains(contacts, want) {
			t.Errorf("registering by %s returned the contacts %s, want %s", algorithm, contacts, want)
		}
	}

	p := w.newPhone("alice")
	p.send(p.write(p.registration(600), ""))
	challenges := p.expect("401").header("WWW-Authenticate")
	if len(challenges) != 2 {
		t.Fatalf("the challenges are %q, want 2", challenges)
	}
	for i, algorithm := range []string{"SHA-256", "MD5"} {
		if !strings.Contains(challenges[i], algorithm) {
			t.Errorf("challenge %d is %q, want %s", i+1, challenges[i], algorithm)
		}
	}
}

func TestRegisterByTCP(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	conn, err := net.Dial("tcp", w.udp.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p.conn = conn
	p.send("\r\n\r\n") // a ping before the first message
	p.register()
}

func TestUnregister(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("bob")
	p.register()
	_, m := p.ask(p.registration(0))
	if m.kind() != "200" {
		t.Errorf("unregistering returned\n%s\nwant 200", m)
	}
	if contacts := m.header("Contact"); len(contacts) != 0 {
		t.Errorf("after unregistering, the contacts are %q, want none", contacts)
	}

	p.register()
	r := p.registration(0)
	p.send(p.write(r, ""))
	challenge := p.expect("401")
	text := p.write(r, p.authorize(challenge, r.method, r.uri, 1))
	contact := message(text).header("Contact")[0]
	p.send(strings.Replace(text, "Contact: "+contact, "Contact: *", 1))
	if m := p.expect("200"); len(m.header("Contact")) != 0 {
		t.Errorf("unregistering all contacts returned\n%s\nwant 200 without a contact", m)
	}

	_, m = w.newPhone("alice").dial("bob")
	if m.kind() != "480" {
		t.Errorf("calling a phone that is no longer registered returned\n%s\nwant 480", m)
	}
}

func TestWrongCredentials(t *testing.T) {
	w := newWorld(t)
	refused := func(what string, p *phone) {
		t.Helper()
		if _, m := p.ask(p.registration(600)); m.kind() != "401" {
			t.Errorf("registering with %s returned\n%s\nwant 401", what, m)
		}
	}
	p := w.newPhone("alice")
	p.password = "wrong"
	refused("a wrong password", p)
	refused("an unknown username", w.newPhone("nobody"))

	p = w.newPhone("alice")
	r := p.registration(600)
	madeUp := message(`nonce="` + strings.Repeat("A", 43) + `"`)
	p.send(p.write(r, p.authorize(madeUp, r.method, r.uri, 1)))
	if m := p.next(deadline); m.kind() != "401" {
		t.Errorf("registering with a made-up nonce returned\n%s\nwant 401", m)
	}
	malformed := request{method: "REGISTER", uri: "sip:selvage.test", to: r.to, from: "x"}
	p.send(p.write(malformed, "Authorization: Digest username=\"alice\r\n"))
	if m := p.next(deadline); m.kind() != "401" {
		t.Errorf("registering with malformed credentials returned\n%s\nwant 401", m)
	}
}

// TestReplay shows that an attacker who intercepts an authenticated request cannot send it again
// with a different branch.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	sent, m := p.ask(p.registration(600))
	if m.kind() != "200" {
		t.Fatalf("registering: %s", m)
	}

	p.send(strings.Replace(sent, "branch=z9hG4bK", "branch=z9hG4bKreplay", 1))
	m = p.next(deadline)
	if m.kind() != "401" {
		t.Errorf("a replayed request returned\n%s\nwant 401", m)
	}
	if !strings.Contains(string(m), "stale=true") {
		t.Errorf("a replayed request returned\n%s\nwant a new nonce with stale=true", m)
	}

	thief := w.newPhone("alice")
	sent, _ = p.ask(p.registration(600))
	thief.conn = thief.from("127.0.0.2")
	thief.send(strings.Replace(sent, "branch=z9hG4bK", "branch=z9hG4bKthief", 1))
	if m := thief.next(deadline); m.kind() != "401" {
		t.Errorf("a request replayed from a different address returned\n%s\nwant 401", m)
	}
}

// from returns a connection to the server from the address ip.
func (p *phone) from(ip string) net.Conn {
	p.t.Helper()
	conn := must[*net.UDPConn](p.t)(net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)}, p.udp))
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestGuessing shows that requests with a username get no answer after too many wrong passwords, even
// with the right password. Other usernames on the same network still get answers.
func TestGuessing(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	p.password = "wrong"
	for range 4 {
		if _, m := p.ask(p.registration(600)); m.kind() != "401" {
			t.Fatalf("a wrong password returned\n%s\nwant 401", m)
		}
	}

	if _, m := p.askSilently(); m != "" {
		t.Errorf("a fifth guess returned\n%s\nwant no answer", m)
	}
	if _, m := w.newPhone("alice").askSilently(); m != "" {
		t.Errorf("the right password after too many wrong ones returned\n%s\nwant no answer", m)
	}
	w.newPhone("bob").register()
	eventually(t, "the blocked messages to be counted", func() bool { return w.server.Stats().Blocked > 0 })
}

// TestGuessNotCounted shows that wrong credentials block their sender for a moment if they cannot be
// counted. The whole network is blocked, so that the sender cannot guess with other usernames.
// Otherwise, the limits would not apply while the database is slow.
func TestGuessNotCounted(t *testing.T) {
	w := newWorld(t)
	from := netip.MustParseAddr("192.0.2.1")
	user, network := w.server.DenyOnce(t.Context(), "alice", from)
	if user || network {
		t.Errorf("after counted wrong credentials, the username is blocked: %t, the network: %t, want neither",
			user, network)
	}

	late, cancel := context.WithCancel(t.Context())
	cancel()
	user, network = w.server.DenyOnce(late, "bob", from)
	if !user || !network {
		t.Errorf("after uncounted wrong credentials, the username is blocked: %t, the network: %t, want both",
			user, network)
	}
	w.logs("counting wrong SIP credentials")
}

// TestGuessingNeighbor shows that wrong passwords from an address do not affect calls and
// registered phones at this address. The passwords of other phones there are no longer checked.
func TestGuessingNeighbor(t *testing.T) {
	w := newWorld(t)
	desk, bob := w.newPhone("alice"), w.newPhone("bob")
	desk.register()
	bob.conn = must[net.Conn](t)(net.Dial("tcp", w.udp.String()))
	bob.register()
	caller := w.newPhone("alice")
	_, answered := caller.dial("echo")
	if answered.kind() != "200" {
		t.Fatalf("calling the echo returned\n%s\nwant 200", answered)
	}

	for i := range 6 {
		guesser := w.newPhone(fmt.Sprint("nobody", i))
		if _, m := guesser.ask(guesser.registration(600)); m.kind() != "401" {
			t.Fatalf("a wrong password returned\n%s\nwant 401", m)
		}
	}

	if _, m := w.newPhone("nobody7").askSilently(); m != "" {
		t.Errorf("a seventh guess returned\n%s\nwant no answer", m)
	}
	w.logs("too many wrong SIP credentials")
	stranger := w.newPhone("bob")
	stranger.send(stranger.write(stranger.registration(600), ""))
	if m := stranger.next(silence); m != "" {
		t.Errorf("a phone that is not registered got\n%s\nwant no answer", m)
	}

	desk.register()
	bob.register()
	caller.send(caller.write(caller.inDialog("BYE", answered), ""))
	caller.expect("200")
}

// TestMalformedUsername shows that a username with malformed text counts as a wrong username.
func TestMalformedUsername(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("al\xffice")
	r := p.registration(600)
	plain := func(text string) string { return strings.ReplaceAll(text, "al\xffice", "alice") }
	p.send(plain(p.write(r, "")))
	answer := strings.ReplaceAll(p.authorize(p.expect("401"), r.method, r.uri, 1), `al\xffice`, "al\xffice")
	p.send(strings.Replace(plain(p.write(r, "")), "Contact:", answer+"Contact:", 1))
	p.expect("401")
	if n := w.server.Stats().Denied; n != 1 {
		t.Errorf("%d requests were denied, want 1", n)
	}
}

// TestTakenConnection shows that a connection does not get a phone's calls if it merely comes from
// the address of the phone's former connection.
func TestTakenConnection(t *testing.T) {
	w := newWorld(t)
	own := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 77)} // no other process uses ports of this address
	conn := must[net.Conn](t)((&net.Dialer{LocalAddr: own}).Dial("tcp", w.udp.String()))
	p := w.newPhone("bob")
	p.conn = conn
	p.register()
	former := conn.LocalAddr()
	_ = conn.(*net.TCPConn).SetLinger(0) // the address is free immediately
	_ = conn.Close()
	eventually(t, "the connection to end", func() bool { return w.server.Stats().Streams == 0 })

	thief := w.newPhone("bob")
	thief.conn = must[net.Conn](t)((&net.Dialer{LocalAddr: former}).Dial("tcp", w.udp.String()))
	eventually(t, "the other connection", func() bool { return w.server.Stats().Streams == 1 })
	alice := w.newPhone("alice")
	if m := alice.dialed("bob"); m.kind() != "480" {
		t.Errorf("calling a phone whose connection has ended returned\n%s\nwant 480", m)
	}
	if m := thief.next(silence); m != "" {
		t.Errorf("the other connection got\n%s\nwant nothing", m)
	}
}

// TestManyStrangers shows that connections without authentication are limited, and that registered
// phones do not count.
func TestManyStrangers(t *testing.T) {
	w := newWorld(t)
	connect := func() net.Conn {
		conn := must[net.Conn](t)(net.Dial("tcp", w.udp.String()))
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}

	for i := range 5 {
		p := w.newPhone("bob")
		p.conn = connect()
		p.callID = fmt.Sprint("phone ", i)
		p.register()
	}

	for range 100 {
		connect()
	}
	eventually(t, "36 connections to be refused", func() bool { return w.server.Stats().Limited == 36 })
	if n := w.server.Stats().Streams; n > 5+64 {
		t.Errorf("%d connections are open, want at most %d", n, 5+64)
	}
}

// TestSilentConnection shows that a connection may remain silent between two registrations once its
// phone has authenticated.
func TestSilentConnection(t *testing.T) {
	w := newWorld(t)
	w.newPhone("bob").overTCP().register()
	if left := time.Until(w.streams.deadline()); left < 10*time.Minute {
		t.Errorf("the connection of a registered phone may be silent for %s, want at least 10m", left)
	}
}

// TestAsymmetricPhone shows that a phone that sends from one port and listens on another gets responses
// and calls at the port in its Via header. Behind NAT, it gets them at the source port.
func TestAsymmetricPhone(t *testing.T) {
	for name, tt := range map[string]struct {
		own   string // the address in the Via header
		isNAT bool
	}{
		"at its port": {own: "127.0.0.1:"},
		"behind NAT":  {own: "192.0.2.1:", isNAT: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p, sender := w.newPhone("bob"), w.newPhone("bob")
			receiver := p
			if tt.isNAT {
				receiver = sender
			}
			r := p.registration(600)
			withoutRport := func(text string) string {
				return strings.NewReplacer("127.0.0.1:", tt.own, ";rport", "").Replace(text)
			}
			sender.send(withoutRport(p.write(r, "")))
			challenge := receiver.expect("401")
			sender.send(withoutRport(p.write(r, p.authorize(challenge, r.method, r.uri, 1))))
			receiver.expect("200")

			w.newPhone("alice").dial("bob")
			receiver.expect("INVITE")
		})
	}
}

// TestClaimedPort shows that a request from a blocked network gets no answer if its Via header names
// the port of a registered phone. The phone itself still gets answers.
func TestClaimedPort(t *testing.T) {
	w := newWorld(t)
	bob, stranger := w.newPhone("bob"), w.newPhone("alice")
	bob.register()
	late, cancel := context.WithCancel(t.Context())
	cancel()
	w.server.DenyOnce(late, "alice", netip.MustParseAddr("127.0.0.1"))

	claim := strings.NewReplacer(stranger.conn.LocalAddr().String(), bob.conn.LocalAddr().String(), ";rport", "")
	stranger.send(claim.Replace(stranger.write(stranger.registration(600), "")))
	if m := bob.next(silence); m != "" {
		t.Errorf("a request that claims the port of a registered phone got\n%s\nwant no answer", m)
	}
	bob.register()
}

// TestMovedPhone shows that a phone counts as registered after a request that adds one contact and
// removes another.
func TestMovedPhone(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	r := p.registration(600)
	withFormer := func(text string) string {
		return strings.Replace(text, "Contact:", "Contact: <sip:alice@192.0.2.1>;expires=0\r\nContact:", 1)
	}
	p.send(withFormer(p.write(r, "")))
	p.send(withFormer(p.write(r, p.authorize(p.expect("401"), r.method, r.uri, 1))))
	p.expect("200")
	p.send(p.write(request{method: "OPTIONS", uri: r.uri, to: r.to, from: "ping"}, ""))
	p.expect("200")
}

// TestOtherRequests shows that a registered phone gets an answer to unsupported requests outside calls,
// because it would otherwise repeat them. Strangers get no answer.
func TestOtherRequests(t *testing.T) {
	w := newWorld(t)
	p, stranger := w.newPhone("alice"), w.newPhone("stranger")
	p.register()
	for method, want := range map[string]string{"SUBSCRIBE": "405", "MESSAGE": "405", "BYE": "481", "REFER": "481"} {
		r := request{method: method, uri: "sip:selvage.test", to: "<sip:alice@selvage.test>", from: "other"}
		p.send(p.write(r, ""))
		if m := p.next(deadline); m.kind() != want {
			t.Errorf("a %s from a registered phone returned\n%s\nwant %s", method, m, want)
		}
		stranger.send(stranger.write(r, ""))
	}
	if m := stranger.next(silence); m != "" {
		t.Errorf("a request from a stranger returned\n%s\nwant no answer", m)
	}
}

// TestRepeatDuringAuthentication shows that a phone gets no second challenge if it repeats a request
// while the server checks the request's credentials.
func TestRepeatDuringAuthentication(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	for i := range 20 {
		p.callID = fmt.Sprint("repeated ", i)
		r := p.registration(600)
		p.send(p.write(r, ""))
		sent := p.write(r, p.authorize(p.expect("401"), r.method, r.uri, 1))
		for range 5 {
			p.send(sent)
		}
		p.expect("200")
	}
	if m := p.next(silence); m != "" {
		t.Errorf("after the response to its request, the phone got\n%s\nwant nothing", m)
	}
}

// askSilently sends a registration like ask, but returns "" as the response if the server does not
// answer.
func (p *phone) askSilently() (string, message) {
	p.t.Helper()
	r := p.registration(600)
	p.send(p.write(r, ""))
	sent := p.write(r, p.authorize(p.expect("401"), r.method, r.uri, 1))
	p.send(sent)
	return sent, p.next(silence)
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	_, m := p.ask(p.registration(30))
	if m.kind() != "423" {
		t.Errorf("registering for 30 s returned\n%s\nwant 423", m)
	}
	if n := len(m.header("Min-Expires")); n != 1 {
		t.Errorf("the response has %d Min-Expires headers, want 1:\n%s", n, m)
	}

	_, m = p.ask(p.registration(86400))
	if m.kind() != "200" {
		t.Errorf("registering for a day returned\n%s\nwant 200", m)
	}
	if !strings.Contains(string(m), "expires=600") {
		t.Errorf("registering for a day returned\n%s\nwant expires=600", m)
	}
}

func TestManyContacts(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	var m message
	for range 12 {
		other := w.newPhone("alice")
		p.conn = other.conn
		p.callID = "registration from " + other.conn.LocalAddr().String()
		m = p.register()
	}
	if n := len(m.header("Contact")); n != 10 {
		t.Errorf("after 12 registrations, %d contacts are kept, want 10", n)
	}
}

// TestEndedCredentials shows that a phone no longer rings after its password is changed or its
// credentials are deleted. If the credentials require encryption, a phone without encryption cannot
// register.
func TestEndedCredentials(t *testing.T) {
	w := newWorld(t)
	subscriber, credential := w.subscriber("carol")
	p := w.newPhone("carol")
	rings := func() bool {
		t.Helper()
		// Each caller is new, because an earlier one may still receive its final response.
		_, m := w.newPhone("alice").dial("carol")
		return m.kind() == "180"
	}

	p.register()
	if !rings() {
		t.Error("a registered phone does not ring")
	}

	update := func(values map[string]json.RawMessage) {
		t.Helper()
		must[fabric.SIPCredential](t)(
			w.fabric.SIP.UpdateCredential(t.Context(), w.project, subscriber, credential, values))
	}

	update(map[string]json.RawMessage{"password": quoted("another")})
	if rings() {
		t.Error("a phone rings after its password was changed")
	}

	p = w.newPhone("carol")
	p.password = "another"
	p.callID = "again"
	p.register()
	if !rings() {
		t.Error("a phone with the new password does not ring")
	}

	update(map[string]json.RawMessage{"encryption": quoted("required")})
	p = w.newPhone("carol")
	p.password = "another"
	p.callID = "without encryption"
	if _, m := p.ask(p.registration(600)); m.kind() != "403" {
		t.Errorf("registering without encryption, which is required, returned\n%s\nwant 403", m)
	}

	if err := w.fabric.SIP.DeleteCredential(t.Context(), w.project, subscriber, credential); err != nil {
		t.Fatal(err)
	}
	if rings() {
		t.Error("a phone rings after its credentials were deleted")
	}
}

// TestDisabledSubscriber shows that a disabled subscriber's phone cannot register.
func TestDisabledSubscriber(t *testing.T) {
	w := newWorld(t)
	subscriber, _ := w.subscriber("dave")
	disabled := true
	must[fabric.Subscriber](t)(w.fabric.Subscribers.Update(t.Context(), w.project, subscriber,
		fabric.SubscriberInput{Disabled: &disabled}))
	p := w.newPhone("dave")
	if _, m := p.ask(p.registration(600)); m.kind() != "401" {
		t.Errorf("a disabled subscriber's phone got\n%s\nwant 401", m)
	}
}

// TestDamagedPassword shows that a phone whose password cannot be opened is not blocked, and does not
// affect phones with the same username in another project. The damage is logged once, and again if it
// occurs again after a long time.
func TestDamagedPassword(t *testing.T) {
	w := newWorld(t)
	subscriber, id := w.subscriber("carol")
	c := must[fabric.SIPCredential](t)(w.fabric.SIP.FindCredential(t.Context(), w.project, subscriber, id))
	old := c.Updated
	c.Secrets = "damaged"
	c.Updated = old.Add(time.Second)
	err := w.store.Fabric().SIP.UpdateSIPCredential(t.Context(), c, old, revocation.Revocation{})
	if err != nil {
		t.Fatal(err)
	}

	broken := w.newPhone("carol")
	for i := range 25 { // more than the limit of wrong passwords for a username
		broken.callID = fmt.Sprintf("broken-%d", i)
		if _, m := broken.ask(broken.registration(600)); m.kind() != "500" {
			t.Fatalf("a phone whose password is damaged got\n%s\nwant 500", m)
		}
	}

	w.project = must[fabric.Project](t)(w.fabric.Projects.Create(t.Context(), "two")).ID
	w.subscriber("carol")
	carol := w.newPhone("carol")
	carol.register()

	carol.password = "wrong"
	carol.callID = "guess"
	if _, m := carol.ask(carol.registration(600)); m.kind() != "401" {
		t.Errorf("a wrong password returned\n%s\nwant 401", m)
	}
	logged := func() int {
		w.log.mu.Lock()
		defer w.log.mu.Unlock()
		return strings.Count(w.log.text.String(), "opening the password of a phone")
	}
	if n := logged(); n != 1 {
		t.Errorf("the server has logged the damage %d times, want once", n)
	}
	w.server.SweepDamages(time.Now().Add(2 * time.Hour))
	broken.callID = "later"
	broken.ask(broken.registration(600))
	if n := logged(); n != 2 {
		t.Errorf("after a long time, the server has logged the damage %d times, want twice", n)
	}
}
