package sip_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// inCall dials the echo, acknowledges the 200, and returns it.
func (p *phone) inCall() message {
	p.t.Helper()
	_, m := p.dial("echo")
	if m.kind() != "200" {
		p.t.Fatalf("calling echo returned\n%s\nwant 200", m)
	}
	p.acks(m, p.seq)
	return m
}

// isHungUp waits for the BYE that ends a call once its credentials are no longer valid.
func (p *phone) isHungUp() {
	p.t.Helper()
	bye := p.expect("BYE")
	p.hasReason(bye, "TOKEN_REVOKED")
	p.respond(bye, "200 OK", "")
}

// watched makes the node check running calls until the test ends.
func (w *world) watched() *world {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.calls.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-ended })
	return w
}

// TestEndedEndpoint shows that changing the password of a SIP endpoint ends a call that the
// endpoint's phone began. Deleting the endpoint ends a call that the phone answered.
func TestEndedEndpoint(t *testing.T) {
	w := newWorld(t).watched()
	r, desk := w.endpoint("desk", "")
	desk.inCall()
	w.newPassword(r)
	desk.isHungUp()
	w.isOver()

	r, hall := w.endpoint("hall", "")
	hall.register()
	alice := w.newPhone("alice")
	alice.dial("hall")
	hall.respond(hall.expect("INVITE"), "200 OK", hall.offer("sendrecv"))
	hall.expect("ACK")
	alice.acks(alice.expect("200"), alice.seq)
	if err := w.fabric.Resources.Delete(t.Context(), w.project, w.endpointKind(), r.ID); err != nil {
		t.Fatal(err)
	}
	hall.isHungUp()
	alice.respond(alice.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestEndedCredentialsInCall shows that changing the password of a subscriber's SIP credentials, or
// deleting the credentials, also ends calls. Other changes to these credentials, and changes to
// other credentials, do not end calls. A phone with the new password may call.
func TestEndedCredentialsInCall(t *testing.T) {
	w := newWorld(t).watched()
	subscriber, credential := w.subscriber("carol")
	change := func(id string, values map[string]json.RawMessage) {
		t.Helper()
		must[fabric.SIPCredential](t)(w.fabric.SIP.UpdateCredential(t.Context(), w.project, subscriber, id, values))
	}
	other := must[fabric.SIPCredential](t)(w.fabric.SIP.CreateCredential(t.Context(), w.project, subscriber,
		map[string]json.RawMessage{"username": quoted("carol-2"), "password": quoted("secret-carol-2")}))
	carol, bob := w.newPhone("carol"), w.newPhone("bob")
	m := carol.inCall()
	bob.inCall()
	change(credential, map[string]json.RawMessage{"caller_id": quoted("Carol")})
	change(other.ID, map[string]json.RawMessage{"password": quoted("another")})
	hear(t, carol, carol.mediaOf(m), carol, "still here")

	change(credential, map[string]json.RawMessage{"password": quoted("another")})
	carol.isHungUp()
	carol.password = "another"
	carol.inCall()
	if err := w.fabric.SIP.DeleteCredential(t.Context(), w.project, subscriber, credential); err != nil {
		t.Fatal(err)
	}
	carol.isHungUp()
	eventually(t, "all calls except bob's to end", func() bool { return w.calls.Stats().Calls == 1 })
}

// TestEndedRegistration shows that a registration is no longer listed after its password has
// changed.
func TestEndedRegistration(t *testing.T) {
	w := newWorld(t)
	subscriber, credential := w.subscriber("carol")
	w.newPhone("carol").register()
	must[fabric.SIPCredential](t)(w.fabric.SIP.UpdateCredential(t.Context(), w.project, subscriber, credential,
		map[string]json.RawMessage{"password": quoted("another")}))
	again := w.newPhone("carol")
	again.password = "another"
	again.callID = "again"
	if contacts := again.register().header("Contact"); len(contacts) != 1 {
		t.Errorf("after the password was changed, the contacts are %q, want only the new one", contacts)
	}
}

// TestDeletedGateway shows that deleting a gateway ends the calls from the gateway and the calls to
// it.
func TestDeletedGateway(t *testing.T) {
	for name, begin := range map[string]func(w *world, carrier *phone) (peer *phone){
		"from the gateway": func(w *world, carrier *phone) *phone {
			bob := w.newPhone("bob")
			bob.register()
			w.assign("+49305551234", "bob")
			carrier.user = "+4917612345"
			carrier.send(carrier.write(carrier.invitation("49305551234"), ""))
			carrier.expect("100")
			carrier.expect("180")
			bob.respond(bob.expect("INVITE"), "200 OK", bob.offer("sendrecv"))
			bob.expect("ACK")
			carrier.acks(carrier.expect("200"), carrier.seq)
			return bob
		},
		"to the gateway": func(w *world, carrier *phone) *phone {
			alice := w.newPhone("alice")
			alice.dial("+4930123456")
			carrier.respond(carrier.expect("INVITE"), "200 OK", carrier.offer("sendrecv"))
			carrier.expect("ACK")
			alice.acks(alice.expect("200"), alice.seq)
			return alice
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).watched()
			carrier, id := w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
			w.permit(fabric.OutboundOn, "+49")
			if err := w.server.ReadGateways(t.Context()); err != nil {
				t.Fatal(err)
			}
			peer := begin(w, carrier)

			kind := w.fabric.Resources.Kinds().ByType(fabric.GatewayKind)
			if err := w.fabric.Resources.Delete(t.Context(), w.project, kind, id); err != nil {
				t.Fatal(err)
			}
			carrier.isHungUp()
			peer.respond(peer.expect("BYE"), "200 OK", "")
			w.isOver()
		})
	}
}

// TestUpdateOfEndedCall shows that an update gets 481 if the call has ended and the phone does not
// know it yet.
func TestUpdateOfEndedCall(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.unacknowledged()
	p.send(p.write(p.inDialog("UPDATE", m).with(sdpType, p.offer("sendonly")), ""))
	p.expect("481")
}

// TestManyRequestsInCall shows that the server remembers only a limited number of requests in a
// call. The phone can still hang up.
func TestManyRequestsInCall(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.inCall()
	w.server.LimitRequestsInCalls()
	before, refused := w.server.Transactions(), 0
	for range 200 {
		p.send(p.write(p.inDialog("OPTIONS", m), ""))
		if p.next(deadline).kind() == "500" {
			refused++
		}
	}
	remembered := w.server.Transactions() - before
	if remembered > 200-refused {
		t.Errorf("the server remembers %d requests and has refused %d, want at most 200 in total", remembered, refused)
	}
	if refused == 0 {
		t.Error("no request was refused")
	}
	p.hangsUp(m)
	w.isOver()
}

// TestBYEWhenFull shows that a phone can end its call even if the server has no room to remember the BYE.
func TestBYEWhenFull(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice")
	m := p.inCall()
	w.server.FillTransactions()
	p.hangsUp(m)
	w.isOver()
}
