package sip_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
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
