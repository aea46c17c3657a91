package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
)

const (
	messages      = "/api/fabric/messages"
	conversations = "/api/fabric/conversations"
)

// nobodyThere is the error for an address to which nobody can write.
const nobodyThere = "conversation_id:does_not_exist"

type message struct {
	ID, Text, Key  string
	ConversationID string `json:"conversation_id"`
	GroupID        string `json:"group_id"`
	From           string `json:"from_fabric_address_id"`
	Found          string `json:"from_address_id"`
	UserID         string `json:"user_id"`
	UserName       string `json:"user_name"`
	Time           int64  `json:"ts"`
}

// A person has a token and, unless it is a guest, an address.
type person struct {
	auth    authorization
	id      string
	address string
}

func (w *world) person(name string) person {
	w.t.Helper()
	sat := w.tokens(`{"reference":"` + name + `"}`)
	return person{bearer(sat.Token), sat.SubscriberID, w.address(sat.Token).ID}
}

// sends sends a message and returns it.
func (w *world) sends(p person, to, text string) message {
	w.t.Helper()
	r := w.call(p.auth, "POST", messages, `{"conversation_id":"`+to+`","text":"`+text+`"}`)
	if r.status != http.StatusCreated {
		w.t.Fatalf("sending to %s = %d %s, want 201", to, r.status, r.text)
	}
	return as[message](w.t, r)
}

// reads returns the texts of a list of messages, newest first.
func (w *world) reads(p person, path string) (texts []string) {
	w.t.Helper()
	for _, m := range as[listed[message]](w.t, w.call(p.auth, "GET", path, "")).Data {
		texts = append(texts, m.Text)
	}
	return texts
}

func messagesOf(conversation string) string { return conversations + "/" + conversation + "/messages" }

// room creates a conference room and returns its address.
func (w *world) room(t *testing.T, name string) string {
	t.Helper()
	w.call(w.basic(), "POST", resources+"/conference_rooms", `{"name":"`+name+`"}`)
	return must[fabric.Address](t)(w.fabric.Addresses.FindAt(t.Context(), w.project.ID, "/public/"+name)).ID
}

// TestMessages shows that two subscribers can write to each other with both generations of SDKs,
// and can page through their messages.
func TestMessages(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	w.sends(ada, bob.address, "one")
	two := w.sends(bob, ada.address, "two")
	if two.ConversationID != ada.address || two.UserID != bob.id || two.From != bob.address ||
		two.Found != bob.address {
		t.Errorf("bob sent %+v, want it from bob to ada", two)
	}

	joined := as[message](t, w.call(ada.auth, "POST", conversations+"/join",
		`{"from_fabric_address_id":"`+ada.address+`","fabric_address_ids":["`+bob.address+`","`+ada.address+`"]}`))
	if joined.GroupID != ada.id+"_"+bob.address || joined.ConversationID != bob.address {
		t.Errorf("join returns %+v, want ada's conversation with bob", joined)
	}
	r := w.call(ada.auth, "POST", messages, `{"group_id":"`+joined.GroupID+`","from_fabric_address_id":"`+
		ada.address+`","text":"three"}`)
	if three := as[message](t, r); three.GroupID != joined.GroupID || three.ID <= two.ID {
		t.Errorf("ada sent %+v, want it in the group %s, with a later id", three, joined.GroupID)
	}

	for _, path := range []string{messagesOf(joined.GroupID), messagesOf(strings.ToUpper(bob.address)), messages} {
		if got := w.reads(ada, path); !slices.Equal(got, []string{"three", "two", "one"}) {
			t.Errorf("ada reads %q at %s, want three, two, one", got, path)
		}
	}

	var texts []string
	for next := messagesOf(ada.address) + "?page_size=2"; next != ""; {
		p := as[listed[message]](t, w.call(bob.auth, "GET", next, ""))
		for _, m := range p.Data {
			if m.ConversationID != ada.address || m.GroupID != bob.id+"_"+ada.address {
				t.Errorf("bob reads %+v, want it in his conversation with ada", m)
			}
			texts = append(texts, m.Text)
		}
		next = p.Links["next"]
	}

	if !slices.Equal(texts, []string{"three", "two", "one"}) {
		t.Errorf("bob pages through %q, want three, two, one", texts)
	}

	all := as[listed[struct {
		ID        string
		AddressID string `json:"address_id"`
		GroupID   string `json:"group_id"`
		From      string `json:"from_fabric_address_id"`
		Name      string
	}]](t, w.call(bob.auth, "GET", conversations, "")).Data
	if len(all) != 1 || all[0].ID != ada.address || all[0].AddressID != ada.address || all[0].From != bob.address ||
		all[0].GroupID != bob.id+"_"+ada.address || all[0].Name == "" {
		t.Errorf("bob's conversations are %+v, want only the one with ada", all)
	}
}

// TestMessageRefusals shows which messages are not accepted, and that a conversation is invisible
// to everybody else.
func TestMessageRefusals(t *testing.T) {
	w := newWorld(t)
	ada, bob, eve := w.person("ada"), w.person("bob"), w.person("eve")
	secret := w.sends(ada, bob.address, "secret")
	foreign := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"mallory"}`))
	mallory := person{bearer(foreign.Token), foreign.SubscriberID, w.address(foreign.Token).ID}
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "script")
	at := as[listed[address]](t, w.call(ada.auth, "GET", "/api/fabric/addresses?name=script", "")).Data
	if len(at) != 1 || at[0].ResourceID != script {
		t.Fatalf("the script is at %+v, want one address", at)
	}

	to := func(id, more string) string { return `{"conversation_id":"` + id + `"` + more + `}` }
	for body, want := range map[string]string{
		`{}`:                           "conversation_id:missing_required_parameter text:missing_required_parameter",
		to(bob.address, `,"text":7`):   "text:invalid_parameter",
		to(bob.address, `,"text":" "`): "text:missing_required_parameter",
		to(bob.address, `,"text":"`+strings.Repeat("é", 4001)+`"`):         "text:invalid_parameter",
		to(bob.address, `,"text":"a\u0000b"`):                              "text:invalid_parameter",
		to(bob.address, `,"text":"a","key":"`+strings.Repeat("k", 65)+`"`): "key:invalid_parameter",
		to(ada.address, `,"text":"me"`):                                    "conversation_id:invalid_parameter",
		to(at[0].ID, `,"text":"script"`):                                   "conversation_id:invalid_parameter",
		to(bob.address, `,"text":"a","from_fabric_address_id":"`+
			bob.address+`"`): "from_fabric_address_id:invalid_parameter",
	} {
		if got := w.call(ada.auth, "POST", messages, body).faults(t); got != want {
			t.Errorf("POST %.100s = %s, want %s", body, got, want)
		}
	}

	for _, id := range []string{uuid.NewString(), mallory.address, "x", bob.id, eve.id + "_" + bob.address,
		"_" + bob.address} {
		if got := w.call(ada.auth, "POST", messages, to(id, `,"text":"a"`)).faults(t); got != nobodyThere {
			t.Errorf("sending to %s = %s, want %s", id, got, nobodyThere)
		}
		if r := w.call(ada.auth, "GET", messagesOf(id), ""); r.status != http.StatusNotFound {
			t.Errorf("reading %s = %d %s, want 404", id, r.status, r.text)
		}
	}

	long := strings.Repeat("é", 4000)
	if got := w.sends(ada, bob.address, long); got.Text != long {
		t.Error("a text of 4,000 characters is changed")
	}

	for name, other := range map[string]person{"eve": eve, "mallory": mallory} {
		for _, path := range []string{messages, conversations, messagesOf(bob.address), messagesOf(ada.address),
			messagesOf(ada.id + "_" + bob.address), messages + "?page_token=PA" + secret.ID,
			messagesOf(bob.address) + "?page_token=PA" + secret.ID} {
			if r := w.call(other.auth, "GET", path, ""); strings.Contains(r.text, "secret") ||
				r.status != http.StatusNotFound && len(as[listed[message]](t, r).Data) > 0 {
				t.Errorf("%s reads %s at %s", name, r.text, path)
			}
		}
	}
}

// TestRepeatedMessage shows that a repeated request with the same key sends its message only once.
func TestRepeatedMessage(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	body := `{"conversation_id":"` + bob.address + `","text":"once","key":"k1"}`
	first, second := w.call(ada.auth, "POST", messages, body), w.call(ada.auth, "POST", messages, body)
	if a, b := as[message](t, first), as[message](t, second); a != b || a.Key != "k1" {
		t.Errorf("the same request returned %+v and %+v, want one message with the key", a, b)
	}
	w.call(bob.auth, "POST", messages, `{"conversation_id":"`+ada.address+`","text":"mine","key":"k1"}`)
	all := as[listed[message]](t, w.call(bob.auth, "GET", messages, "")).Data
	if len(all) != 2 || all[0].Text != "mine" || all[1].Key != "" {
		t.Errorf("bob reads %+v, want both messages and only his key", all)
	}
}

// TestGuestMessages shows that a guest writes only to the addresses of its token, and that the
// subscriber can answer. Another guest sees none of these messages.
func TestGuestMessages(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	token := w.guest(ada.address)
	guest := person{auth: bearer(token.Token)}
	asked := w.sends(guest, ada.address, "hello?")

	if got := w.call(guest.auth, "POST", messages, `{"conversation_id":"`+bob.address+`","text":"a"}`).faults(t); got !=
		nobodyThere {
		t.Errorf("a guest that writes to another address = %s, want %s", got, nobodyThere)
	}
	got := as[listed[message]](t, w.call(ada.auth, "GET", messages, "")).Data
	if len(got) != 1 || got[0].UserName != "Guest" || got[0].Found != "" || got[0].ConversationID != asked.UserID {
		t.Fatalf("ada reads %+v, want one message from a guest", got)
	}
	w.sends(ada, got[0].ConversationID, "hello!")

	fresh := as[tokens](t, w.call(w.basic(), "POST", "/api/fabric/subscribers/tokens/refresh",
		`{"refresh_token":"`+token.RefreshToken+`"}`))
	again := person{auth: bearer(fresh.Token)}
	if got := w.reads(again, messagesOf(ada.address)); !slices.Equal(got, []string{"hello!", "hello?"}) {
		t.Errorf("with a refreshed token, the guest reads %q, want both messages", got)
	}

	other := person{auth: bearer(w.guest(ada.address).Token)}
	for _, path := range []string{messagesOf(ada.address), messages, conversations} {
		if got := w.reads(other, path); len(got) > 0 {
			t.Errorf("another guest reads %q at %s", got, path)
		}
	}

	if got := w.call(bob.auth, "POST", messages, `{"conversation_id":"`+asked.UserID+`","text":"a"}`).faults(t); got !=
		nobodyThere {
		t.Errorf("somebody else who writes to the guest = %s, want %s", got, nobodyThere)
	}
}

// TestRoomMessages shows that members read all messages in a room, and that others read none. A
// guest reads only messages that came after its token.
func TestRoomMessages(t *testing.T) {
	w := newWorld(t)
	room := w.room(t, "hall")
	ada, bob, eve := w.person("ada"), w.person("bob"), w.person("eve")
	w.sends(ada, room, "hello")
	w.pass(time.Minute)
	guest := person{auth: bearer(w.guest(room).Token)}
	r := w.call(bob.auth, "POST", conversations+"/join", `{"conversation_id":"`+room+`"}`)
	if r.status != http.StatusOK {
		t.Fatalf("joining = %d %s, want 200", r.status, r.text)
	}
	w.sends(guest, room, "from a guest")

	for name, tt := range map[string]struct {
		who  person
		want []string
	}{
		"ada":       {ada, []string{"from a guest", "hello"}},
		"bob":       {bob, []string{"from a guest", "hello"}},
		"eve":       {eve, nil},
		"the guest": {guest, []string{"from a guest"}},
	} {
		if got := w.reads(tt.who, messagesOf(room)); !slices.Equal(got, tt.want) {
			t.Errorf("%s reads %q, want %q", name, got, tt.want)
		}
	}

	if r := w.call(ada.auth, "POST", conversations+"/join", `{"fabric_address_ids":["`+room+`","`+
		uuid.NewString()+`"]}`); r.faults(t) != "fabric_address_ids:invalid_parameter" {
		t.Errorf("joining three = %d %s, want fabric_address_ids:invalid_parameter", r.status, r.text)
	}
}

// TestDeletedPeer shows that the messages of a deleted or disabled subscriber can be read, but not
// answered.
func TestDeletedPeer(t *testing.T) {
	w := newWorld(t)
	ada, bob, eve := w.person("ada"), w.person("bob"), w.person("eve")
	for _, other := range []person{bob, eve} {
		w.sends(other, ada.address, "remember me")
	}

	of := "/api/fabric/resources/subscribers/"
	w.call(w.basic(), "DELETE", of+bob.id, "")
	disabled := true
	if _, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, eve.id,
		fabric.SubscriberInput{Disabled: &disabled}); err != nil {
		t.Fatal(err)
	}

	for _, other := range []person{bob, eve} {
		got := as[listed[message]](t, w.call(ada.auth, "GET", messagesOf(other.address), "")).Data
		if len(got) != 1 || got[0].Text != "remember me" || got[0].From != other.address || got[0].Found != "" {
			t.Errorf("ada reads %+v, want a message whose sender is not found", got)
		}
	}

	if got := w.call(ada.auth, "POST", messages, `{"conversation_id":"`+bob.address+`","text":"a"}`).faults(t); got !=
		nobodyThere {
		t.Errorf("answering somebody who was deleted = %s, want %s", got, nobodyThere)
	}
}
