package sip_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// TestWithheldNumber shows that a caller who withholds the number appears as anonymous, on the phone and
// in the record.
func TestWithheldNumber(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	bob := w.newPhone("bob")
	bob.register()
	w.assign("+49 30 5551234", "bob")
	carrier.user = "+4917612345"

	for privacy, want := range map[string]string{
		"none":          "+4917612345",
		"session":       "+4917612345",
		"id":            "anonymous",
		"user;critical": "anonymous",
		"Header; ID":    "anonymous",
	} {
		carrier.callID = privacy
		r := carrier.invitation("49305551234")
		r.headers += "Privacy: " + privacy + "\r\n"
		carrier.send(carrier.write(r, ""))
		carrier.expect("100")
		carrier.expect("180")

		invite := bob.expect("INVITE")
		if from := invite.header("From")[0]; !strings.Contains(from, "<sip:"+want+"@") {
			t.Errorf("with Privacy: %s, bob's phone shows the caller %s, want %s", privacy, from, want)
		}
		if strings.Contains(string(invite), carrier.user) != (want == carrier.user) {
			t.Errorf("with Privacy: %s, bob's phone got\n%s\nwant the caller %s", privacy, invite, want)
		}

		bob.respond(invite, "486 Busy Here", "")
		bob.expect("ACK")
		carrier.send(carrier.acknowledge(r, carrier.expect("486")))
		w.isOver()
		w.recordHas(func(r *calls.Record) { r.From.Address = want })
	}
}

// TestHiddenSubscriber shows that a subscriber whose phone asks to hide the caller appears as anonymous to
// other subscribers. A gateway gets the number of the project, and must not pass it on. The record names
// the subscriber to the project.
func TestHiddenSubscriber(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{})
	w.permit(fabric.OutboundOn, "+49")
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	bob.register()
	for _, to := range []string{"bob", "+4930123456"} {
		alice.callID = "hidden from " + to
		r := alice.invitation(to)
		r.headers += "Privacy: id\r\n"
		alice.ask(r)
		alice.expect("180")

		callee := bob
		if to != "bob" {
			callee = carrier
		}
		invite := callee.expect("INVITE")
		if from := invite.header("From")[0]; !strings.HasPrefix(from, `"Anonymous" <sip:anonymous@`) {
			t.Errorf("%s got the caller %s, want Anonymous", to, from)
		}
		if strings.Contains(string(invite), "alice") {
			t.Errorf("%s got\n%s\nwant no mention of alice", to, invite)
		}
		if callee == carrier {
			invite = carrier.challenge(invite, "Proxy-Authenticate: Digest realm=\"isp\", nonce=\"abc\"\r\n")
			want := []string{"id", "<sip:+4930999@127.0.0.1>"}
			got := slices.Concat(invite.header("Privacy"), invite.header("P-Asserted-Identity"))
			if !slices.Equal(got, want) {
				t.Errorf("the gateway got the headers %q, want %q", got, want)
			}
		}

		callee.respond(invite, "486 Busy Here", "")
		callee.expect("ACK")
		alice.send(alice.acknowledge(r, alice.expect("486")))
		w.isOver()
		w.recordHas(func(r *calls.Record) {
			r.From = calls.Party{Name: "Anonymous", Address: "anonymous", SubscriberID: w.subscribers["alice"]}
		})
	}
}

// TestWithheldName is like TestWithheldNumber, for a stranger who calls a SIP address.
func TestWithheldName(t *testing.T) {
	w := newWorld(t)
	bob := w.newPhone("bob")
	bob.register()
	w.newSIPAddress(nil)
	stranger := w.newPhone("stranger")
	stranger.overTCP()
	r := stranger.toSupport()
	r.headers += "Privacy: id\r\n"
	stranger.send(stranger.write(r, ""))
	stranger.expect("100")
	stranger.expect("180")
	if invite := bob.expect("INVITE"); strings.Contains(string(invite), "stranger") {
		t.Errorf("bob's phone got\n%s\nwant an anonymous caller", invite)
	}
}
