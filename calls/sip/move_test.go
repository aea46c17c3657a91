package sip_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// addRoom creates the conference room /public/lobby with the given settings.
func (w *world) addRoom(settings map[string]json.RawMessage) {
	w.t.Helper()
	kind := w.fabric.Resources.Kinds().ByPath("conference_rooms")
	members := map[string]json.RawMessage{"name": quoted("lobby")}
	maps.Copy(members, settings)
	must[fabric.Resource](w.t)(w.fabric.Resources.Create(w.t.Context(), w.project, kind, members))
}

// TestMovePhones moves a call to bob, from a phone or a gateway, into a room, where carol hears the
// caller. After the call has moved out, its two parties hear each other as before.
func TestMovePhones(t *testing.T) {
	for _, from := range []string{"phone", "gateway"} {
		t.Run(from, func(t *testing.T) {
			w := newWorld(t)
			w.addRoom(nil)
			w.subscriber("carol")
			carol := w.newPhone("carol")
			c := w.conversationFrom(t, from)
			call := w.lastCall().ID
			if err := w.calls.Move(t.Context(), w.project, call, "/public/lobby"); err != nil {
				t.Fatalf("moving into the room: %v", err)
			}

			_, joined := carol.dial("lobby")
			if joined.kind() != "200" {
				t.Fatalf("calling the room returned\n%s\nwant 200", joined)
			}
			if !carol.hearsVoice(c.alice, c.alice.mediaOf(c.answered), "mulaw") {
				t.Error("carol does not hear the caller in the room")
			}
			if !c.bob.hearsVoice(carol, carol.mediaOf(joined), "mulaw") {
				t.Error("bob does not hear carol in the room")
			}

			if err := w.calls.Move(t.Context(), w.project, call, ""); err != nil {
				t.Fatalf("moving out of the room: %v", err)
			}
			hear(t, c.alice, c.alice.mediaOf(c.answered), c.bob, "only for bob")
			hear(t, c.bob, c.bob.mediaOf(c.invite), c.alice, "only for the caller")
			c.alice.hangsUp(c.answered)
			c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
			carol.hangsUp(joined)
			w.isOver()
		})
	}
}

// conversationFrom makes a phone or a gateway call bob, whose phone answers.
func (w *world) conversationFrom(t *testing.T, from string) (c conversation) {
	t.Helper()
	if from == "phone" {
		return converse(t, w)
	}

	c.alice, _ = w.newCarrier(map[string]json.RawMessage{"ip_auth": json.RawMessage(`["127.0.0.0/8"]`)})
	w.assign("+49305551234", "bob")
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.bob = w.registered("bob")
	c.alice.callID = "inbound"
	c.alice.send(c.alice.write(c.alice.invitation("+49305551234"), ""))
	c.alice.expect("100")
	c.alice.expect("180")
	c.invite = c.bob.expect("INVITE")
	c.bob.takes(c.invite)
	c.answered = c.alice.expect("200")
	return c
}
