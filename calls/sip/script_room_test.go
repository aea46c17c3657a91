package sip_test

import (
	"encoding/json"
	"testing"
)

// TestScriptConnectsRoom makes alice a member of bob's room. The script ends, and the room continues
// when she leaves.
func TestScriptConnectsRoom(t *testing.T) {
	w, h := newScripted(t, nil, `{"verbs": [{"verb": "play", "url": "/tone.wav"}, {"verb": "connect",
		"to": "/public/lobby"}]}`)
	w.addRoom(nil)
	alice, bob := w.newPhone("alice"), w.newPhone("bob")
	there := bob.dialed("lobby")
	m := alice.answeredBy("menu")
	alice.hearsTone(m)
	if !bob.hearsVoice(alice, alice.mediaOf(m), "mulaw") {
		t.Error("bob does not hear alice in the room")
	}
	if !alice.hearsVoice(bob, bob.mediaOf(there), "mulaw") {
		t.Error("alice does not hear bob in the room")
	}
	if r := w.lastCall(); r.RoomSession == "" || r.To.Address != "/public/menu" || r.Joined.IsZero() {
		t.Errorf("the record is %+v, want a call to the script that has moved into a room", r)
	}

	alice.hangsUp(m)
	eventually(t, "alice to leave", func() bool { return w.calls.Stats().Calls == 1 })
	if s := w.calls.Stats(); s.Rooms != 1 || s.Legs != 1 || len(h.asked) != 1 {
		t.Errorf("there are %d rooms and %d legs, and %d requests, want 1 of each", s.Rooms, s.Legs, len(h.asked))
	}
}

// TestScriptMayNotJoin asks the webhook again after a room has refused alice. She then hears the
// script as before.
func TestScriptMayNotJoin(t *testing.T) {
	for name, tt := range map[string]struct {
		settings      map[string]json.RawMessage
		cause, reason string
	}{
		"full": {map[string]json.RawMessage{"max_members": json.RawMessage("1")}, "USER_BUSY", "room_full"},
		"not open": {map[string]json.RawMessage{"join_until": quoted("2026-01-01T00:00:00Z")}, "SERVICE_UNAVAILABLE",
			"room_not_open"},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newScripted(t, nil, connecting("/public/lobby"),
				`{"verbs": [{"verb": "play", "url": "/tone.wav"}]}`)
			w.addRoom(tt.settings)
			w.newPhone("bob").dial("lobby")
			alice := w.newPhone("alice")
			m := alice.answeredBy("menu")
			<-h.asked
			if q := <-h.asked; q.Last == nil || q.Last.Error != tt.cause || q.Last.Reason != tt.reason {
				t.Errorf("the request to the webhook has the result %+v, want %s and %q", q.Last, tt.cause, tt.reason)
			}
			alice.hearsTone(m)
			alice.respond(alice.expect("BYE"), "200 OK", "")
		})
	}
}
