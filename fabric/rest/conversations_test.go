package rest_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestConversations shows that a conversation is listed under the peer's address.
func TestConversations(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	w.mustSend(ada, bob.address, "one")

	type conversation struct {
		ID        string
		AddressID string `json:"address_id"`
		GroupID   string `json:"group_id"`
		From      string `json:"from_fabric_address_id"`
		Name      string
	}
	got := as[listed[conversation]](t, w.call(bob.auth, "GET", conversations, "")).Data
	if len(got) != 1 {
		t.Fatalf("bob's conversations are %+v, want only the one with ada", got)
	}
	if got[0].Name == "" {
		t.Error("the conversation has no name")
	}
	want := conversation{
		ID:        ada.address,
		AddressID: ada.address,
		GroupID:   bob.id + "_" + ada.address,
		From:      bob.address,
		Name:      got[0].Name,
	}
	if got[0] != want {
		t.Errorf("bob's conversation is %+v, want %+v", got[0], want)
	}
}

// room creates a conference room and returns its address.
func (w *world) room(t *testing.T, name string) string {
	t.Helper()
	w.call(w.basic(), "POST", resources+"/conference_rooms", `{"name":"`+name+`"}`)
	found, err := w.fabric.Addresses.FindAt(t.Context(), w.project.ID, "/public/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return found.ID
}

// TestRoomMessages shows that members read all messages in a room, and that others read none. A
// guest reads only messages that came after its token.
func TestRoomMessages(t *testing.T) {
	w := newWorld(t)
	room := w.room(t, "hall")
	ada, bob, eve := w.person("ada"), w.person("bob"), w.person("eve")
	w.mustSend(ada, room, "hello")
	w.pass(time.Minute)
	guest := person{auth: bearer(w.guest(room).Token)}
	r := w.call(bob.auth, "POST", conversations+"/join", `{"conversation_id":"`+room+`"}`)
	r.wantStatus(t, "joining", http.StatusOK)
	w.mustSend(guest, room, "from a guest")

	for _, tt := range []struct {
		name   string
		reader person
		want   []string
	}{
		{"ada", ada, []string{"from a guest", "hello"}},
		{"bob", bob, []string{"from a guest", "hello"}},
		{"eve", eve, nil},
		{"the guest", guest, []string{"from a guest"}},
	} {
		if got := w.reads(tt.reader, messagesOf(room)); !slices.Equal(got, tt.want) {
			t.Errorf("%s reads %q, want %q", tt.name, got, tt.want)
		}
	}

	three := `{"fabric_address_ids":["` + room + `","` + uuid.NewString() + `"]}`
	got := w.call(ada.auth, "POST", conversations+"/join", three).faults(t)
	if got != "fabric_address_ids:invalid_parameter" {
		t.Errorf("joining a conversation with three addresses: got %s, want fabric_address_ids:invalid_parameter", got)
	}
}

// TestGuestOfSubscriber shows that a guest with a token from a subscriber reads only the messages since
// the guest's first token, not those since the subscriber signed in. A refreshed token changes nothing.
func TestGuestOfSubscriber(t *testing.T) {
	w := newWorld(t)
	room := w.room(t, "hall")
	ada := w.person("ada")
	w.pass(time.Minute)
	w.mustSend(ada, room, "before the guest")
	w.pass(time.Minute)
	r := w.call(ada.auth, "POST", guests, allowing(room))
	r.wantStatus(t, "requesting a guest token with a SAT", http.StatusCreated)
	first := as[tokens](t, r)
	w.pass(time.Minute)
	w.mustSend(ada, room, "after the guest")
	w.pass(time.Minute)

	second := w.refresh(first.RefreshToken)
	want := []string{"after the guest"}
	for name, token := range map[string]string{"the first": first.Token, "a refreshed": second.Token} {
		if got := w.reads(person{auth: bearer(token)}, messagesOf(room)); !slices.Equal(got, want) {
			t.Errorf("with %s token, the guest reads %q, want %q", name, got, want)
		}
	}
}

// TestDeletedPeer shows that the messages of a deleted or disabled subscriber can still be read. A
// deleted subscriber cannot be answered.
func TestDeletedPeer(t *testing.T) {
	w := newWorld(t)
	ada, bob, eve := w.person("ada"), w.person("bob"), w.person("eve")
	for _, other := range []person{bob, eve} {
		w.mustSend(other, ada.address, "remember me")
	}

	w.call(w.basic(), "DELETE", subscribers+"/"+bob.id, "")
	w.setDisabled(eve.id, true)
	for _, other := range []person{bob, eve} {
		got := as[listed[message]](t, w.call(ada.auth, "GET", messagesOf(other.address), "")).Data
		if len(got) != 1 {
			t.Fatalf("ada reads %+v, want one message", got)
		}
		if got[0].Text != "remember me" {
			t.Errorf("ada reads %q, want the message as it was sent", got[0].Text)
		}
		if got[0].From != other.address {
			t.Errorf("the sender is %s, want %s", got[0].From, other.address)
		}
		if got[0].Found != "" {
			t.Errorf("the sender is found at %s, want nowhere", got[0].Found)
		}
	}

	if got := w.send(ada, bob.address, "a").faults(t); got != nobodyThere {
		t.Errorf("answering somebody who was deleted = %s, want %s", got, nobodyThere)
	}
}
