package sip_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// newCarrier returns a phone that acts as a gateway, and the gateway's id. more changes the
// gateway's fields.
func (w *world) newCarrier(more map[string]json.RawMessage) (*phone, string) {
	w.t.Helper()
	p := w.newPhone("carrier")
	fields := map[string]json.RawMessage{
		"name": quoted("Carrier"), "uri": quoted("trunk@" + p.conn.LocalAddr().String()),
		"username": quoted("trunk-1"), "password": quoted("secret-trunk"), "caller_id": quoted("+4930999"),
		"prefixes": json.RawMessage(`["+49","+1"]`), "encryption": quoted("optional"),
		"ciphers": json.RawMessage(`["AES_CM_128_HMAC_SHA1_80"]`), "codecs": json.RawMessage(`["PCMU"]`),
	}
	maps.Copy(fields, more)
	kind := w.fabric.Resources.Kinds().ByType("sip_gateway")
	return p, must[fabric.Resource](w.t)(w.fabric.Resources.Create(w.t.Context(), w.project, kind, fields)).ID
}

// permit sets the project's rules for calls to phone numbers.
func (w *world) permit(rule fabric.OutboundCalls, prefixes fabric.Prefixes) {
	w.t.Helper()
	must[fabric.Project](w.t)(w.fabric.Projects.Update(w.t.Context(), w.project,
		fabric.ProjectChange{OutboundCalls: &rule, OutboundPrefixes: &prefixes}))
}

// assign routes calls to a phone number to a subscriber.
func (w *world) assign(number, subscriber string) {
	w.t.Helper()
	n := must[fabric.PhoneNumber](w.t)(w.fabric.PhoneNumbers.Create(w.t.Context(), w.project, number))
	must[fabric.Address](w.t)(
		w.fabric.Routes.AssignPhone(w.t.Context(), w.project, w.subscribers[subscriber], n.ID, "calling"))
}

// lastCall returns the newest record of a call.
func (w *world) lastCall() calls.Record {
	w.t.Helper()
	p := must[page.Page[calls.Record]](w.t)(
		w.records.List(w.t.Context(), w.project, calls.Filter{}, page.Query{Size: 1}))
	if len(p.Items) == 0 {
		w.t.Fatal("there is no record of a call")
	}
	return p.Items[0]
}

// reply answers a request. The response also contains the given headers.
func (p *phone) reply(m message, status, headers string) {
	p.t.Helper()
	p.send(fmt.Sprintf("SIP/2.0 %s\r\nVia: %s\r\nFrom: %s\r\nTo: %s;tag=c\r\nCall-ID: %s\r\nCSeq: %s\r\n%s"+
		"Content-Length: 0\r\n\r\n", status, m.header("Via")[0], m.header("From")[0], m.header("To")[0],
		m.header("Call-ID")[0], m.header("CSeq")[0], headers))
}

// challenge answers a request with a challenge, and returns the first request after the ACK.
func (p *phone) challenge(m message, header string) message {
	p.t.Helper()
	p.reply(m, "407 Proxy Authentication Required", header)
	p.expect("ACK")
	return p.expect("INVITE")
}

// TestCallThroughGateway calls a phone number from a phone. The gateway requires its password.
func TestCallThroughGateway(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	alice := w.newPhone("alice")
	_, ringing := alice.dial("+49%2030-123456")
	if ringing.kind() != "180" {
		t.Fatalf("calling a number returned\n%s\nwant 180", ringing)
	}

	invite := carrier.expect("INVITE")
	if !strings.HasPrefix(string(invite), "INVITE sip:+4930123456@127.0.0.1:") {
		t.Errorf("the gateway was invited to\n%s\nwant +4930123456", invite)
	}
	if from := invite.header("From")[0]; !strings.HasPrefix(from, "<sip:+4930999@127.0.0.1>") {
		t.Errorf("the caller is %s, want only the caller id of the gateway", from)
	}
	const challenge = "Proxy-Authenticate: Digest realm=\"isp\", "
	invite = carrier.challenge(invite, challenge+"nonce=\"abc\", algorithm=MD5, qop=\"auth\"\r\n"+
		challenge+"nonce=\"def\", algorithm=SHA-256, qop=\"auth,auth-int\", opaque=\"o\"\r\n")
	carrier.checkAuthorization(invite)
	carrier.respond(invite, "200 OK", carrier.offer("sendrecv"))
	carrier.expect("ACK")

	answered := alice.expect("200")
	ack := alice.inDialog("ACK", answered)
	ack.seq = alice.seq
	alice.send(alice.write(ack, ""))
	hear(t, alice, alice.mediaOf(answered), carrier, "hello carrier")
	hear(t, carrier, carrier.mediaOf(invite), alice, "hello alice")

	alice.send(alice.write(alice.inDialog("BYE", answered), ""))
	alice.expect("200")
	carrier.respond(carrier.expect("BYE"), "200 OK", "")
	w.isOver()
	if r := w.lastCall(); r.Gateway != id || r.To.Address != "+4930123456" || r.Answered.IsZero() || r.Refusal != "" {
		t.Errorf("the record is %+v, want an answered call through %s to +4930123456", r, id)
	}
}

// checkAuthorization fails the test unless a request proves the password of the gateway by SHA-256.
func (p *phone) checkAuthorization(m message) {
	p.t.Helper()
	all := m.header("Proxy-Authorization")
	if len(all) != 1 {
		p.t.Fatalf("the gateway got\n%s\nwant one Proxy-Authorization", m)
	}

	value := func(name string) string {
		_, rest, _ := strings.Cut(all[0], name+"=")
		v, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		v, _, _ = strings.Cut(v, ",")
		return v
	}

	h := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	want := h(h("trunk-1:isp:secret-trunk") + ":def:00000001:" + value("cnonce") + ":auth:" + h("INVITE:"+value("uri")))
	if got := value("response"); got != want || value("opaque") != "o" || value("cnonce") == "" {
		p.t.Errorf("the credentials are %s, want the response %s", all[0], want)
	}
}

// TestGatewayRefuses shows that the server sends the gateway's credentials only once in response to
// challenges, and that the caller learns that the gateway refused the call.
func TestGatewayRefuses(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	alice := w.newPhone("alice")
	r, _ := alice.dial("+4930123456")
	const again = "Proxy-Authenticate: Digest realm=\"isp\", nonce=\"abc\", algorithm=MD5\r\n"
	invite := carrier.challenge(carrier.expect("INVITE"), again)
	carrier.reply(invite, "407 No", again)
	carrier.expect("ACK")
	alice.send(alice.acknowledge(r, alice.expect("480")))
	w.isOver()
}

// TestTollFraud shows which calls to phone numbers are refused, and that the gateway receives none
// of them.
func TestTollFraud(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(nil)
	for i, tt := range []struct {
		name             string
		rule             fabric.OutboundCalls
		prefixes         fabric.Prefixes
		number           string
		status, refusals string
	}{
		{"off by default", "", "", "+4930123456", "403", fabric.ReasonOff},
		{"off with prefixes", fabric.OutboundOff, "+49", "+4930123456", "403", fabric.ReasonOff},
		{"no prefix", fabric.OutboundOn, "", "+4930123456", "403", fabric.ReasonPrefix},
		{"a different prefix", fabric.OutboundOn, "+43", "+4930123456", "403", fabric.ReasonPrefix},
		{"premium rate", fabric.OutboundOn, "+49", "+49900123456", "403", fabric.ReasonExpensive},
		{"satellite", fabric.OutboundOn, "+8", "+881612345678", "403", fabric.ReasonExpensive},
		{"Caribbean", fabric.OutboundOn, "+1 +49", "+18765550100", "403", fabric.ReasonExpensive},
		{"premium rate with 00", fabric.OutboundOn, "+49", "0049900123456", "403", fabric.ReasonExpensive},
		{"hidden by separators", fabric.OutboundOn, "+49", "+49-9.0(0)123456", "403", fabric.ReasonExpensive},
		{"no gateway", fabric.OutboundOn, "+44", "+442079460000", "403", fabric.ReasonNoGateway},
		{"national", fabric.OutboundOn, "+49", "030123456", "404", ""},
		{"emergency", fabric.OutboundOn, "+49", "112", "404", ""},
		{"too long", fabric.OutboundOn, "+49", "+4930123456789012", "404", ""},
		{"a different domain", fabric.OutboundOn, "+49", "+4930123456;user=phone", "404", ""},
	} {
		if tt.rule != "" {
			w.permit(tt.rule, tt.prefixes)
		}
		caller := fmt.Sprintf("caller-%d", i) // the number of refused calls of a caller is limited
		w.subscriber(caller)
		phone := w.newPhone(caller)
		r, m := phone.dial(tt.number)
		if m.kind() != tt.status {
			t.Errorf("%s: calling %s returned %s, want %s", tt.name, tt.number, m.kind(), tt.status)
		}

		phone.send(phone.acknowledge(r, m))
		w.isOver()
		if r := w.lastCall(); r.Refusal != tt.refusals || r.Gateway != "" {
			t.Errorf("%s: the call to %s was refused for %q, want %q", tt.name, tt.number, r.Refusal, tt.refusals)
		}
	}

	if m := carrier.next(silence); m != "" {
		t.Errorf("the gateway %s got\n%s\nwant nothing", id, m)
	}

	// Numbers in an expensive range may be called if the project's rules name the range.
	w.permit(fabric.OutboundOn, "+49 +49900")
	w.newPhone("alice").dial("+49900123456")
	carrier.expect("INVITE")
}

// TestGatewayAddress calls the address of a gateway, which leads to the user in the gateway's URI.
func TestGatewayAddress(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	alice := w.newPhone("alice")
	r, m := alice.dial("carrier")
	if m.kind() != "403" {
		t.Errorf("calling a gateway without permission returned %s, want 403", m.kind())
	}
	alice.send(alice.acknowledge(r, m))
	w.permit(fabric.OutboundOn, "")
	alice.dial("carrier")
	if invite := carrier.expect("INVITE"); !strings.HasPrefix(string(invite), "INVITE sip:trunk@127.0.0.1:") {
		t.Errorf("the gateway was invited to\n%s\nwant trunk", invite)
	}
}

// TestGatewayMedia shows that media from another address is accepted only if the gateway's
// description names this address.
func TestGatewayMedia(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	alice := w.newPhone("alice")
	alice.dial("+4930123456")
	invite := carrier.expect("INVITE")

	elsewhere := must[*net.UDPConn](t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}))
	t.Cleanup(func() { _ = elsewhere.Close() })
	carrier.rtp = elsewhere
	offer := strings.Replace(carrier.offer("sendrecv"), "c=IN IP4 127.0.0.1", "c=IN IP4 127.0.0.2", 1)
	carrier.respond(invite, "200 OK", offer)
	carrier.expect("ACK")
	answered := alice.expect("200")
	hear(t, carrier, carrier.mediaOf(invite), alice, "from elsewhere")
	hear(t, alice, alice.mediaOf(answered), carrier, "to elsewhere")
}

// TestCallFromGateway calls a subscriber by a phone number immediately after the gateway was
// created. Changes to the gateway also apply immediately.
func TestCallFromGateway(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49 30 5551234", "bob")

	carrier.user = "+4917612345"
	r := carrier.invitation("49305551234")
	carrier.send(carrier.write(r, ""))
	carrier.expect("100")
	carrier.expect("180")
	invite := bob.expect("INVITE")
	if from := invite.header("From")[0]; !strings.Contains(from, "+4917612345") {
		t.Errorf("bob's phone shows the caller %s, want +4917612345", from)
	}

	bob.respond(invite, "200 OK", bob.offer("sendrecv"))
	bob.expect("ACK")
	answered := carrier.expect("200")
	hear(t, carrier, carrier.mediaOf(answered), bob, "hello bob")
	hear(t, bob, bob.mediaOf(invite), carrier, "hello outside")
	carrier.send(carrier.write(carrier.inDialog("BYE", answered), ""))
	carrier.expect("200")
	bob.respond(bob.expect("BYE"), "200 OK", "")
	w.isOver()
	record := w.lastCall()
	if record.From.Address != "+4917612345" || record.To.Address != "/private/bob" || record.From.SubscriberID != "" {
		t.Errorf("the record has the parties %+v and %+v, want +4917612345 and bob", record.From, record.To)
	}

	// Calls to a number without a route, and to an unknown number, are refused like calls from an
	// unknown phone.
	must[fabric.PhoneNumber](t)(w.fabric.PhoneNumbers.Create(t.Context(), w.project, "+49305555678"))
	for _, user := range []string{"+49305555678", "+49305559999", "bob", "+4930123456"} {
		carrier.callID = "to " + user
		carrier.send(carrier.write(carrier.invitation(user), ""))
		if m := carrier.next(deadline); m.kind() != "401" {
			t.Errorf("a gateway's call to %s returned %s, want 401", user, m.kind())
		}
	}

	// Calls from a gateway that requires encrypted media, and calls from another network, are
	// refused in the same way.
	stranger := w.newPhone("carrier")
	for _, change := range []map[string]json.RawMessage{
		{"encryption": quoted("required")},
		{"encryption": quoted("optional"), "ip_auth": json.RawMessage(`["192.0.2.1"]`)},
	} {
		must[fabric.Resource](t)(w.fabric.Resources.Update(t.Context(), w.project,
			w.fabric.Resources.Kinds().ByType("sip_gateway"), w.gatewayID(), change))
		stranger.callID = "as " + string(change["encryption"])
		stranger.send(stranger.write(stranger.invitation("+49305551234"), ""))
		stranger.expect("401")
	}
}

// gatewayID returns the id of the only gateway.
func (w *world) gatewayID() string {
	w.t.Helper()
	all := must[[]fabric.Gateway](w.t)(w.fabric.Gateways.All(w.t.Context()))
	if len(all) != 1 {
		w.t.Fatalf("there are %d gateways, want 1", len(all))
	}
	return all[0].ID
}

// TestRegistersAtGateway shows that the server registers with the gateway's password, and accepts
// calls that the gateway sends to the registered contact.
func TestRegistersAtGateway(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"register": json.RawMessage("true")})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}

	m := carrier.expect("REGISTER")
	carrier.reply(m, "401 Unauthorized", "WWW-Authenticate: Digest realm=\"isp\", nonce=\"def\"\r\n")
	m = carrier.expect("REGISTER")
	if auth := strings.Join(m.header("Authorization"), ""); !strings.Contains(auth, `username="trunk-1"`) {
		t.Errorf("the second REGISTER has the credentials %q, want those of trunk-1", auth)
	}
	contact := m.header("Contact")[0]
	carrier.reply(m, "200 OK", "Contact: "+contact+";expires=300\r\n")
	eventually(t, "the registration", func() bool { return w.server.Stats().Gateways == 1 })

	user := strings.TrimPrefix(strings.Split(contact, "@")[0], "<sip:")
	r := carrier.invitation(user)
	r.to = "<sip:+49305551234@isp.example>"
	carrier.send(carrier.write(r, ""))
	carrier.expect("100")
	carrier.expect("180")
	bob.expect("INVITE")
}

// TestSIPAddress calls a subscriber by a SIP address, which may require a password or limit
// networks.
func TestSIPAddress(t *testing.T) {
	w := newWorld(t)
	bob := w.newPhone("bob")
	bob.register()
	a := must[fabric.SIPAddress](t)(w.fabric.SIP.CreateAddress(t.Context(), w.project, map[string]json.RawMessage{
		"name": quoted("support"), "calling_handler_resource_id": quoted(w.subscribers["bob"])}))
	change := func(name, value string) {
		t.Helper()
		must[fabric.SIPAddress](t)(w.fabric.SIP.UpdateAddress(t.Context(), w.project, a.ID,
			map[string]json.RawMessage{name: json.RawMessage(value)}))
	}

	call := func(overTCP bool) (*phone, request) {
		p := w.newPhone("stranger")
		if overTCP {
			p.conn = must[net.Conn](t)(net.Dial("tcp", w.udp.String()))
			t.Cleanup(func() { _ = p.conn.Close() })
		}
		p.callID = "from " + p.conn.LocalAddr().String()
		r := p.invitation("help")
		r.uri = "sip:help@support.localhost"
		p.send(p.write(r, ""))
		return p, r
	}

	rings := func(p *phone, r request) {
		t.Helper()
		p.expect("180")
		invite := bob.expect("INVITE")
		if from := invite.header("From")[0]; !strings.Contains(from, `"stranger@selvage.test"`) {
			t.Errorf("bob's phone shows %s, want stranger@selvage.test", from)
		}
		bob.respond(invite, "486 Busy Here", "")
		bob.expect("ACK")
		p.send(p.acknowledge(r, p.expect("486")))
		w.isOver()
	}

	p, r := call(true)
	p.expect("100")
	rings(p, r)
	p, _ = call(false) // the source address could be forged
	p.expect("401")

	change("encryption", `"required"`) // the call does not use TLS
	p, _ = call(true)
	p.expect("401")
	change("encryption", `"optional"`)

	change("ip_auth", `["192.0.2.1"]`)
	change("ip_auth_enabled", "true")
	p, _ = call(true)
	p.expect("401")
	change("ip_auth", `["127.0.0.1"]`)
	p, r = call(false)
	p.expect("100")
	rings(p, r)

	change("password", `"open sesame"`)
	for _, tt := range []struct {
		password string
		want     []string
	}{{"wrong", []string{"401"}}, {"open sesame", []string{"100", "180"}}} {
		p, r = call(false)
		challenge := p.expect("401")
		p.send(p.acknowledge(r, challenge))
		p.password = tt.password
		p.send(p.write(r, p.authorize(challenge, "INVITE", r.uri, 1)))
		for _, want := range tt.want {
			p.expect(want)
		}
	}

	for _, host := range []string{"example.com", "localhost", "nobody.localhost"} {
		p := w.newPhone("stranger")
		r := p.invitation("help")
		r.uri = "sip:help@" + host
		p.send(p.write(r, ""))
		p.expect("401")
	}
}
