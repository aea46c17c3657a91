package sip_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

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
		t.Errorf("the gateway got\n%s\nwant an INVITE to +4930123456", invite)
	}
	if from := invite.header("From")[0]; !strings.HasPrefix(from, "<sip:+4930999@127.0.0.1>") {
		t.Errorf("the caller is %s, want only the caller id of the gateway", from)
	}
	const challenge = "Proxy-Authenticate: Digest realm=\"isp\", "
	invite = carrier.challenge(invite, challenge+"nonce=\"abc\", algorithm=MD5, qop=\"auth\"\r\n"+
		challenge+"nonce=\"def\", algorithm=SHA-256, qop=\"auth,auth-int\", opaque=\"o\"\r\n")
	carrier.checkAuthorization(invite)
	carrier.respond(invite, "200 OK", carrier.offer("sendrecv"))
	carrier.checkAuthorization(carrier.expect("ACK")) // the ACK repeats the credentials

	answered := alice.expect("200")
	alice.acks(answered, alice.seq)
	hear(t, alice, alice.mediaOf(answered), carrier, "hello carrier")
	hear(t, carrier, carrier.mediaOf(invite), alice, "hello alice")

	alice.send(alice.write(alice.inDialog("BYE", answered), ""))
	alice.expect("200")
	carrier.respond(carrier.expect("BYE"), "200 OK", "")
	w.isOver()
	r := w.recordHas(func(want *calls.Record) {
		want.Gateway = id
		want.To.Address = "+4930123456"
		want.Refusal = ""
	})
	if r.Answered.IsZero() {
		t.Error("the record has no time of answer, want an answered call")
	}
}

// TestGatewayRefuses shows that the server sends the gateway's credentials only once in response to
// challenges, and that the caller learns that the gateway refused the call. The reason is logged.
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
	w.logs("method=INVITE status=407")
	w.isOver()

	r, _ = alice.dial("+4930123456")
	carrier.reply(carrier.expect("INVITE"), "500 Server Internal Error", "")
	carrier.expect("ACK")
	alice.send(alice.acknowledge(r, alice.expect("480")))
	w.logs("method=INVITE status=500")
	w.isOver()
}

// TestUnknownNumber shows that the caller learns that a gateway does not know the number.
func TestUnknownNumber(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	for _, status := range []string{"404 Not Found", "604 Does Not Exist Anywhere"} {
		alice := w.newPhone("alice")
		r, _ := alice.dial("+4930123456")
		carrier.reply(carrier.expect("INVITE"), status, "")
		carrier.expect("ACK")
		alice.send(alice.acknowledge(r, alice.expect("404")))
		w.isOver()
		w.recordHas(func(r *calls.Record) { r.Cause = calls.UnallocatedNumber })
	}
}

// TestCancelAfterChallenge shows that a CANCEL waits for a response to the INVITE with credentials.
// A gateway that has only responded to the INVITE without credentials would not recognize the
// CANCEL.
func TestCancelAfterChallenge(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	alice := w.newPhone("alice")
	r, m := alice.dial("+4930123456")
	if m.kind() != "180" {
		t.Fatalf("calling a number returned\n%s\nwant 180", m)
	}
	invite := carrier.expect("INVITE")
	carrier.reply(invite, "100 Trying", "")
	invite = carrier.challenge(invite, "Proxy-Authenticate: Digest realm=\"isp\", nonce=\"abc\", algorithm=MD5\r\n")
	alice.send(alice.write(alice.cancellation(r, m), ""))
	alice.expect("200")
	alice.send(alice.acknowledge(r, alice.expect("487")))
	w.isOver()
	if m := carrier.next(silence); m != "" {
		t.Errorf("before its response to the INVITE, the gateway got\n%s\nwant nothing", m)
	}
	carrier.reply(invite, "100 Trying", "")
	carrier.respond(carrier.expect("CANCEL"), "200 OK", "")
}

// TestChallengedBYE shows that the server answers a gateway's challenge to a BYE. Otherwise, the
// gateway would continue the call.
func TestChallengedBYE(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	alice := w.newPhone("alice")
	alice.dial("+4930123456")
	carrier.respond(carrier.expect("INVITE"), "200 OK", carrier.offer("sendrecv"))
	carrier.expect("ACK")
	answered := alice.expect("200")
	alice.acks(answered, alice.seq)
	alice.send(alice.write(alice.inDialog("BYE", answered), ""))
	alice.expect("200")

	const challenge = "WWW-Authenticate: Digest realm=\"isp\", nonce=\"abc\", algorithm=MD5\r\n"
	carrier.reply(carrier.expect("BYE"), "401 Unauthorized", challenge)
	again := carrier.expect("BYE")
	if credentials := again.header("Authorization"); len(credentials) != 1 {
		t.Errorf("after a challenge, the gateway got\n%s\nwant one Authorization", again)
	}
	carrier.reply(again, "401 Unauthorized", challenge)
	if m := carrier.next(silence); m != "" {
		t.Errorf("after a second challenge, the gateway got\n%s\nwant nothing", m)
	}
	w.logs("method=BYE status=401")
}

// TestProbingGateway shows that an OPTIONS from a gateway gets an answer, whether the gateway is
// known by its network or by the server's registration. An OPTIONS from a stranger gets none.
func TestProbingGateway(t *testing.T) {
	for name, fields := range map[string]map[string]json.RawMessage{
		"network":      {"ip_auth": json.RawMessage(`["127.0.0.1"]`)},
		"registration": {"register": json.RawMessage("true")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			carrier, _ := w.newCarrier(fields)
			if err := w.server.ReadGateways(t.Context()); err != nil {
				t.Fatal(err)
			}
			if name == "registration" {
				carrier.reply(carrier.expect("REGISTER"), "200 OK", "")
				eventually(t, "the registration", func() bool { return w.server.Stats().Gateways == 1 })
			}

			ping := request{method: "OPTIONS", uri: "sip:selvage.test", to: "<sip:selvage.test>", from: "ping"}
			carrier.send(carrier.write(ping, ""))
			carrier.expect("200")
			stranger := w.newPhone("stranger")
			stranger.conn = stranger.from("127.0.0.9")
			stranger.send(stranger.write(ping, ""))
			if m := stranger.next(silence); m != "" {
				t.Errorf("an OPTIONS from a stranger returned\n%s\nwant no answer", m)
			}
		})
	}
}

// TestTollFraud shows which calls to phone numbers are refused, and that the gateway receives none
// of them.
func TestTollFraud(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(nil)
	for i, tt := range []struct {
		name     string
		rule     fabric.OutboundCalls
		prefixes fabric.Prefixes
		number   string
		status   string
		refusal  string
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
		{"with a parameter", fabric.OutboundOn, "+49", "+4930123456;user=phone", "404", ""},
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
		last := w.lastCall()
		if last.Refusal != tt.refusal {
			t.Errorf("%s: the call to %s was refused for %q, want %q", tt.name, tt.number, last.Refusal, tt.refusal)
		}
		if last.Gateway != "" {
			t.Errorf("%s: the refused call used the gateway %s, want none", tt.name, last.Gateway)
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
		t.Errorf("the gateway got\n%s\nwant an INVITE to trunk", invite)
	}
}

// TestGatewayMedia shows that media from a different address is accepted if the gateway's
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

// TestCallFromGateway calls a subscriber by a phone number immediately after the gateway has been
// created. Changes to the gateway also apply immediately.
func TestCallFromGateway(t *testing.T) {
	w := newWorld(t)
	carrier, id := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49 30 5551234", "bob")

	carrier.user = "+4917612345"
	r := carrier.invitation("49305551234")
	carrier.send(carrier.write(r, ""))
	carrier.expect("100")
	carrier.expect("180")
	invite := bob.expect("INVITE")
	if from := invite.header("From")[0]; !strings.Contains(from, "<sip:+4917612345@") {
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
	w.recordHas(func(want *calls.Record) {
		want.From.Address = "+4917612345"
		want.From.SubscriberID = ""
		want.To.Address = "/private/bob"
	})

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
		{"encryption": quoted("required"), "transport": quoted("tls")},
		{"encryption": quoted("optional"), "ip_auth": json.RawMessage(`["192.0.2.1"]`)},
	} {
		w.changeGateway(id, change)
		stranger.callID = "as " + string(change["encryption"])
		stranger.send(stranger.write(stranger.invitation("+49305551234"), ""))
		stranger.expect("401")
	}
}

// TestNumbersInURIs shows that a gateway may name phone numbers in tel URIs, including local numbers with
// their prefix. It may also escape the plus sign.
func TestNumbersInURIs(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49 30 5551234", "bob")

	for name, uris := range map[string]struct{ from, to string }{
		"tel":     {from: "tel:+49-176-12345", to: "tel:+49305551234"},
		"local":   {from: "tel:12345;phone-context=+49176", to: "tel:5551234;phone-context=+4930"},
		"escaped": {from: "sip:%2B4917612345@isp.example", to: "sip:%2B49305551234@selvage.test"},
	} {
		carrier.callID = name
		r := carrier.invitation("49305551234")
		r.uri, r.to = uris.to, "<"+uris.to+">"
		carrier.send(strings.Replace(carrier.write(r, ""), "sip:carrier@selvage.test", uris.from, 1))
		carrier.expect("100")
		carrier.expect("180")
		invite := bob.expect("INVITE")
		if from := invite.header("From")[0]; !strings.Contains(from, "+4917612345") {
			t.Errorf("%s: bob's phone shows the caller %s, want +4917612345", name, from)
		}
		bob.respond(invite, "486 Busy Here", "")
		bob.expect("ACK")
		m := carrier.expect("486")
		carrier.send(carrier.acknowledge(r, m))
	}
}

// TestRegistersAtGateway shows that the server registers with the gateway's password, and accepts
// calls that the gateway sends to the registered contact.
func TestRegistersAtGateway(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{
		"register": json.RawMessage("true"),
		"username": quoted("trunk-1@isp.example"),
	})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}

	m := carrier.expect("REGISTER")
	if to := m.header("To")[0]; to != "<sip:trunk-1%40isp.example@127.0.0.1>" {
		t.Errorf("the server registers %s, want the escaped user trunk-1@isp.example", to)
	}
	carrier.reply(m, "401 Unauthorized", "WWW-Authenticate: Digest realm=\"isp\", nonce=\"def\"\r\n")
	m = carrier.expect("REGISTER")
	auth := strings.Join(m.header("Authorization"), "")
	if !strings.Contains(auth, `username="trunk-1@isp.example"`) {
		t.Errorf("the second REGISTER has the credentials %q, want those of trunk-1@isp.example", auth)
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

// TestSIPAddress calls a subscriber by a SIP address, which may require a password or permit only
// some networks.
func TestSIPAddress(t *testing.T) {
	w := newWorld(t)
	bob := w.newPhone("bob")
	bob.register()
	address := w.newSIPAddress(nil)
	change := func(name, value string) {
		t.Helper()
		fields := map[string]json.RawMessage{name: json.RawMessage(value)}
		must[fabric.SIPAddress](t)(w.fabric.SIP.UpdateAddress(t.Context(), w.project, address.ID, fields))
	}

	call := func(overTCP bool) (*phone, request) {
		p := w.newPhone("stranger")
		p.callID = "from " + p.conn.LocalAddr().String()
		if overTCP {
			p.overTCP()
		}
		r := p.toSupport()
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
	callWith := func(password string) *phone {
		p, r := call(false)
		challenge := p.expect("401")
		p.send(p.acknowledge(r, challenge))
		p.password = password
		p.send(p.write(r, p.authorize(challenge, "INVITE", r.uri, 1)))
		return p
	}
	callWith("wrong").expect("401")
	p = callWith("open sesame")
	p.expect("100")
	p.expect("180")

	for _, host := range []string{"example.com", "localhost", "nobody.localhost"} {
		p := w.newPhone("stranger")
		r := p.invitation("help")
		r.uri = "sip:help@" + host
		p.send(p.write(r, ""))
		p.expect("401")
	}
}
