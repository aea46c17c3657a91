package sip_test

import (
	"encoding/json"
	"testing"
)

// TestScriptConnectsRoom makes alice a member of bob's room. The script ends, and the room continues
// when she leaves.
func TestScriptConnectsRoom(t *testing.T) {
	w, h := newScripted(t, nil,
		`{"verbs": [{"verb": "play", "url": "/tone.wav"}, {"verb": "connect", "to": "/public/lobby"}]}`)
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

	// The media moves before the record is written.
	eventually(t, "the record to name a room session", func() bool { return w.lastCall().RoomSession != "" })
	r := w.lastCall()
	if r.To.Address != "/public/menu" {
		t.Errorf("the record has the destination %s, want the script, /public/menu", r.To.Address)
	}
	if r.Joined.IsZero() {
		t.Error("the record has no time at which the call moved into the room")
	}

	alice.hangsUp(m)
	eventually(t, "alice to leave", func() bool { return w.calls.Stats().Calls == 1 })
	w.running(counts{rooms: 1, calls: 1, legs: 1})
	if len(h.asked) != 1 {
		t.Errorf("the webhook got %d requests, want 1", len(h.asked))
	}
}

// TestScriptMayNotJoin asks the webhook again after a room has refused alice. She then hears the
// script as before.
func TestScriptMayNotJoin(t *testing.T) {
	for name, tt := range map[string]struct {
		settings map[string]json.RawMessage
		want     result
	}{
		"full": {
			settings: map[string]json.RawMessage{"max_members": json.RawMessage("1")},
			want:     result{Verb: "connect", Error: "USER_BUSY", Reason: "room_full"},
		},
		"not open": {
			settings: map[string]json.RawMessage{"join_until": quoted("2026-01-01T00:00:00Z")},
			want:     result{Verb: "connect", Error: "SERVICE_UNAVAILABLE", Reason: "room_not_open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newScripted(t, nil, connecting("/public/lobby"),
				`{"verbs": [{"verb": "play", "url": "/tone.wav"}]}`)
			w.addRoom(tt.settings)
			w.newPhone("bob").dial("lobby")
			alice := w.newPhone("alice")
			m := alice.answeredBy("menu")

			<-h.asked
			h.wasTold(t, tt.want)
			alice.hearsTone(m)
			alice.respond(alice.expect("BYE"), "200 OK", "")
		})
	}
}
