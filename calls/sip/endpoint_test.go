package sip_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
)

// endpoint creates a SIP endpoint, and returns it with a phone that has its password. more is the
// JSON of additional members, each after a comma.
func (w *world) endpoint(name, more string) (fabric.Resource, *phone) {
	w.t.Helper()
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(`{"username": "`+name+`"`+more+`}`), &members); err != nil {
		w.t.Fatal(err)
	}
	r := w.create(fabric.EndpointKind, members)
	p := w.newPhone(name)
	p.password = w.newPassword(r)
	return r, p
}

// newPassword makes a new password for a SIP endpoint.
func (w *world) newPassword(endpoint fabric.Resource) string {
	w.t.Helper()
	account := must[fabric.SIPAccount](w.t)(
		w.fabric.Endpoints.NewPassword(w.t.Context(), w.project, endpoint.ID))
	return account.Password
}

// TestEndpoint shows that a phone registers as a SIP endpoint, calls a subscriber, and rings for
// calls to the endpoint's address.
func TestEndpoint(t *testing.T) {
	w := newWorld(t)
	r, desk := w.endpoint("desk-12", `, "caller_id": "Front desk"`)
	for _, desk.algorithm = range []string{"MD5", "SHA-256"} {
		desk.callID = "registration by " + desk.algorithm
		desk.register()
	}

	bob := w.newPhone("bob")
	bob.register()
	if _, m := desk.dial("bob"); m.kind() != "180" {
		t.Fatalf("calling bob from a SIP endpoint returned\n%s\nwant 180", m)
	}

	invite := bob.expect("INVITE")
	if from := invite.header("From")[0]; !strings.Contains(from, `"Front desk" <sip:desk-12@`) {
		t.Errorf("bob's phone shows the caller %s, want the endpoint's caller id", from)
	}

	bob.respond(invite, "200 OK", bob.offer("sendrecv"))
	bob.expect("ACK")
	answered := desk.expect("200")
	hear(t, desk, desk.mediaOf(answered), bob, "hello bob")
	w.recordHas(func(want *calls.Record) {
		want.From.Address = "/private/desk-12"
		want.Guest = r.ID
	})

	desk.send(desk.write(desk.inDialog("BYE", answered), ""))
	desk.expect("200")
	bob.respond(bob.expect("BYE"), "200 OK", "")
	w.isOver()

	if _, m := bob.dial("desk-12"); m.kind() != "180" {
		t.Fatalf("calling the SIP endpoint returned\n%s\nwant 180", m)
	}
	invite = desk.expect("INVITE")
	desk.respond(invite, "200 OK", desk.offer("sendrecv"))
	desk.expect("ACK")
	hear(t, bob, bob.mediaOf(bob.expect("200")), desk, "hello desk")
	desk.send(desk.write(desk.inAnsweredDialog("BYE", invite), ""))
}

// TestEndpointPassword shows that only the newest password of a SIP endpoint is valid. Phones that
// registered with an older password no longer ring. After the endpoint is deleted, no password is
// valid.
func TestEndpointPassword(t *testing.T) {
	w := newWorld(t)
	refused := func(what string, p *phone) {
		t.Helper()
		if _, m := p.ask(p.registration(600)); m.kind() != "401" {
			t.Errorf("registering with %s returned\n%s\nwant 401", what, m)
		}
	}
	w.create(fabric.EndpointKind, map[string]json.RawMessage{"username": quoted("bare")})
	bare := w.newPhone("bare")
	bare.password = ""
	refused("the empty password of a new endpoint", bare)

	r, desk := w.endpoint("desk", "")
	desk.register()
	second := w.newPassword(r)
	if second == desk.password {
		t.Fatal("the new password is the old one")
	}

	refused("the old password", desk)
	if _, m := w.newPhone("alice").dial("desk"); m.kind() != "480" {
		t.Errorf("calling an endpoint whose phone knows only the old password returned\n%s\nwant 480", m)
	}

	desk.password = second
	desk.register()
	callerID := map[string]json.RawMessage{"caller_id": quoted("Desk")}
	must[fabric.Resource](t)(
		w.fabric.Resources.Update(t.Context(), w.project, w.endpointKind(), r.ID, callerID))
	desk.register() // an update keeps the password

	if err := w.fabric.Resources.Delete(t.Context(), w.project, w.endpointKind(), r.ID); err != nil {
		t.Fatal(err)
	}
	refused("the password of a deleted endpoint", desk)
}

// TestEndpointHandler shows that the call handler of a SIP endpoint determines what its phones can
// call.
func TestEndpointHandler(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	_, inside := w.endpoint("inside", `, "call_handler": "block-pstn"`)
	for _, number := range []string{"+4930123456", "%2B4930123456"} {
		if _, m := inside.dial(number); m.kind() != "403" {
			t.Errorf("dialing %s from an endpoint that may not call numbers returned\n%s\nwant 403", number, m)
		}
	}
	_, outside := w.endpoint("outside", `, "call_handler": "passthrough"`)
	outside.dial("+4930123456")
	carrier.expect("INVITE")

	bob := w.newPhone("bob")
	bob.register()
	toBob := `, "call_handler": "resource", "calling_handler_resource_id": "` + w.subscribers["bob"] + `"`
	_, hotline := w.endpoint("hotline", toBob)
	if _, m := hotline.dial("alice"); m.kind() != "180" {
		t.Errorf("calling from an endpoint whose calls go to bob returned\n%s\nwant 180", m)
	}
	bob.expect("INVITE")
}

// TestEndpointWithoutHandler shows that a phone whose calls all go to one resource can call nobody
// while no resource is set, or while the resource is a subscriber that is disabled or deleted. It
// cannot transfer the call of somebody who called it, either.
func TestEndpointWithoutHandler(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(nil)
	w.permit(fabric.OutboundOn, "+49")
	refused := func(when string, p *phone) {
		t.Helper()
		for _, dialed := range []string{"alice", "+4930123456"} {
			if _, m := p.dial(dialed); m.kind() != "404" {
				t.Errorf("dialing %s %s returned\n%s\nwant 404", dialed, when, m)
			}
		}
	}
	_, unset := w.endpoint("unset", `, "call_handler": "resource"`)
	refused("while no resource is set", unset)

	bob := w.subscribers["bob"]
	_, hotline := w.endpoint("hotline", `, "call_handler": "resource", "calling_handler_resource_id": "`+bob+`"`)
	hotline.register()
	disabled := true
	must[fabric.Subscriber](t)(
		w.fabric.Subscribers.Update(t.Context(), w.project, bob, fabric.SubscriberInput{Disabled: &disabled}))
	refused("while the resource is a disabled subscriber", hotline)

	alice := w.newPhone("alice")
	alice.calling("hotline")
	invite := hotline.expect("INVITE")
	hotline.takes(invite)
	alice.expect("200")
	m := hotline.refers(hotline.inAnsweredDialog("REFER", invite), "<sip:+4930123456@selvage.test>")
	if m.kind() != "403" {
		t.Errorf("a transfer while the resource is a disabled subscriber returned\n%s\nwant 403", m)
	}

	if err := w.fabric.Subscribers.Delete(t.Context(), w.project, bob); err != nil {
		t.Fatal(err)
	}
	refused("while the resource is a deleted subscriber", hotline)
	if m := carrier.next(silence); m.kind() == "INVITE" {
		t.Errorf("the gateway got\n%s\nwant nothing", m)
	}
}

// TestForeignEndpoint shows that a phone cannot call anyone outside its endpoint's project, and
// that other projects cannot use the endpoint.
func TestForeignEndpoint(t *testing.T) {
	w := newWorld(t)
	w.newPhone("bob").register()
	own := w.project
	w.project = must[fabric.Project](t)(w.fabric.Projects.Create(t.Context(), "two")).ID
	r, desk := w.endpoint("desk", "")
	if _, m := desk.dial("bob"); m.kind() != "404" {
		t.Errorf("calling a subscriber of a different project returned\n%s\nwant 404", m)
	}
	if _, err := w.fabric.Endpoints.NewPassword(t.Context(), own, r.ID); err == nil {
		t.Error("a project made a password for an endpoint of a different project, want an error")
	}
	phones, err := w.server.Phones(t.Context(), own, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(phones) != 0 {
		t.Errorf("a project sees the phones %v of a different project's endpoint, want none", phones)
	}
}

// endpointKind returns the kind of SIP endpoints.
func (w *world) endpointKind() *kinds.Kind {
	return w.fabric.Resources.Kinds().ByType(fabric.EndpointKind)
}
