package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const (
	messages      = "/api/fabric/messages"
	conversations = "/api/fabric/conversations"
)

// nobodyThere is the error for an address to which the sender cannot write.
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
	return person{auth: bearer(sat.Token), id: sat.SubscriberID, address: w.address(sat.Token).ID}
}

// send sends a message and returns the response.
func (w *world) send(p person, to, text string) reply {
	w.t.Helper()
	return w.call(p.auth, "POST", messages, `{"conversation_id":"`+to+`","text":"`+text+`"}`)
}

// mustSend sends a message and returns it. The test ends unless the message is accepted.
func (w *world) mustSend(p person, to, text string) message {
	w.t.Helper()
	r := w.send(p, to, text)
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

// TestMessages shows that two subscribers can write to each other with both generations of SDKs,
// and can page through their messages.
func TestMessages(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	w.mustSend(ada, bob.address, "one")
	two := w.mustSend(bob, ada.address, "two")
	want := two
	want.ConversationID = ada.address
	want.UserID = bob.id
	want.From = bob.address
	want.Found = bob.address
	if two != want {
		t.Errorf("bob sent %+v, want %+v", two, want)
	}

	// The other generation of SDKs joins a conversation, and sends to its group.
	joined := as[message](t, w.call(ada.auth, "POST", conversations+"/join",
		`{"from_fabric_address_id":"`+ada.address+`","fabric_address_ids":["`+bob.address+`","`+ada.address+`"]}`))
	if want := ada.id + "_" + bob.address; joined.GroupID != want {
		t.Errorf("join returns the group %s, want %s", joined.GroupID, want)
	}
	if joined.ConversationID != bob.address {
		t.Errorf("join returns the conversation %s, want %s", joined.ConversationID, bob.address)
	}
	three := as[message](t, w.call(ada.auth, "POST", messages,
		`{"group_id":"`+joined.GroupID+`","from_fabric_address_id":"`+ada.address+`","text":"three"}`))
	if three.GroupID != joined.GroupID {
		t.Errorf("the third message is in the group %s, want %s", three.GroupID, joined.GroupID)
	}
	if three.ID <= two.ID {
		t.Errorf("the third message has the id %s, want one after %s", three.ID, two.ID)
	}

	texts := []string{"three", "two", "one"}
	for _, path := range []string{messagesOf(joined.GroupID), messagesOf(strings.ToUpper(bob.address)), messages} {
		if got := w.reads(ada, path); !slices.Equal(got, texts) {
			t.Errorf("ada reads %q at %s, want %q", got, path, texts)
		}
	}

	var paged []string
	for next := messagesOf(ada.address) + "?page_size=2"; next != ""; {
		page := as[listed[message]](t, w.call(bob.auth, "GET", next, ""))
		for _, m := range page.Data {
			if m.ConversationID != ada.address {
				t.Errorf("bob reads a message of the conversation %s, want %s", m.ConversationID, ada.address)
			}
			if want := bob.id + "_" + ada.address; m.GroupID != want {
				t.Errorf("bob reads a message of the group %s, want %s", m.GroupID, want)
			}
			paged = append(paged, m.Text)
		}
		next = page.Links["next"]
	}
	if !slices.Equal(paged, texts) {
		t.Errorf("bob pages through %q, want %q", paged, texts)
	}
}

// TestMessageRefusals shows which messages are not accepted, and that nobody but the members of a
// conversation can read it.
func TestMessageRefusals(t *testing.T) {
	w := newWorld(t)
	ada, bob, eve := w.person("ada"), w.person("bob"), w.person("eve")
	secret := w.mustSend(ada, bob.address, "secret")
	foreign := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"mallory"}`))
	mallory := person{
		auth:    bearer(foreign.Token),
		id:      foreign.SubscriberID,
		address: w.address(foreign.Token).ID,
	}
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "script")
	found := as[listed[address]](t, w.call(ada.auth, "GET", addresses+"?name=script", "")).Data
	if len(found) != 1 || found[0].ResourceID != script {
		t.Fatalf("the addresses named script are %+v, want one, of the resource %s", found, script)
	}

	const badID, badText = "conversation_id:invalid_parameter", "text:invalid_parameter"
	tooLong, longKey := strings.Repeat("é", 4001), strings.Repeat("k", 65)
	for _, tt := range []struct{ to, members, want string }{
		{bob.address, `"text":7`, badText},
		{bob.address, `"text":" "`, "text:missing_required_parameter"},
		{bob.address, `"text":"` + tooLong + `"`, badText},
		{bob.address, `"text":"a\u0000b"`, badText},
		{bob.address, `"text":"a","key":"` + longKey + `"`, "key:invalid_parameter"},
		{ada.address, `"text":"me"`, badID},
		{found[0].ID, `"text":"script"`, badID},
		{
			bob.address,
			`"text":"a","from_fabric_address_id":"` + bob.address + `"`,
			"from_fabric_address_id:invalid_parameter",
		},
	} {
		body := `{"conversation_id":"` + tt.to + `",` + tt.members + `}`
		if got := w.call(ada.auth, "POST", messages, body).faults(t); got != tt.want {
			t.Errorf("POST %.100s = %s, want %s", body, got, tt.want)
		}
	}
	const missing = "conversation_id:missing_required_parameter text:missing_required_parameter"
	if got := w.call(ada.auth, "POST", messages, `{}`).faults(t); got != missing {
		t.Errorf("POST {} = %s, want %s", got, missing)
	}

	for _, id := range []string{
		uuid.NewString(), mallory.address, "x", bob.id, eve.id + "_" + bob.address, "_" + bob.address,
	} {
		if got := w.send(ada, id, "a").faults(t); got != nobodyThere {
			t.Errorf("sending to %s = %s, want %s", id, got, nobodyThere)
		}
		r := w.call(ada.auth, "GET", messagesOf(id), "")
		r.wantStatus(t, "reading "+id, http.StatusNotFound)
	}

	long := strings.Repeat("é", 4000)
	if got := w.mustSend(ada, bob.address, long); got.Text != long {
		t.Errorf("a text of 4,000 characters becomes %q", got.Text)
	}

	for name, other := range map[string]person{"eve": eve, "mallory": mallory} {
		for _, path := range []string{
			messages,
			conversations,
			messagesOf(bob.address),
			messagesOf(ada.address),
			messagesOf(ada.id + "_" + bob.address),
			messages + "?page_token=PA" + secret.ID,
			messagesOf(bob.address) + "?page_token=PA" + secret.ID,
		} {
			r := w.call(other.auth, "GET", path, "")
			r.wantNoText(t, name+" reading "+path, "secret")
			if r.status == http.StatusNotFound {
				continue
			}
			if seen := as[listed[message]](t, r).Data; len(seen) > 0 {
				t.Errorf("%s reads %+v at %s, want nothing", name, seen, path)
			}
		}
	}
}

// TestRepeatedMessage shows that a repeated request with the same key sends its message only once.
func TestRepeatedMessage(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	body := `{"conversation_id":"` + bob.address + `","text":"once","key":"k1"}`
	first := as[message](t, w.call(ada.auth, "POST", messages, body))
	if first.Key != "k1" {
		t.Errorf("the message has the key %q, want k1", first.Key)
	}
	if second := as[message](t, w.call(ada.auth, "POST", messages, body)); second != first {
		t.Errorf("the repeated request returned %+v, want %+v", second, first)
	}

	w.call(bob.auth, "POST", messages, `{"conversation_id":"`+ada.address+`","text":"mine","key":"k1"}`)
	got := as[listed[message]](t, w.call(bob.auth, "GET", messages, "")).Data
	if len(got) != 2 {
		t.Fatalf("bob reads %+v, want two messages", got)
	}
	if got[0].Text != "mine" {
		t.Errorf("bob's newest message is %q, want mine", got[0].Text)
	}
	if got[1].Key != "" {
		t.Errorf("bob reads the key %q of ada's message, want none", got[1].Key)
	}
}

// TestGuestMessages shows that a guest writes only to the addresses of its token, and that the
// subscriber can answer. Another guest sees none of these messages.
func TestGuestMessages(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.person("ada"), w.person("bob")
	token := w.guest(ada.address)
	guest := person{auth: bearer(token.Token)}
	asked := w.mustSend(guest, ada.address, "hello?")
	if got := w.send(guest, bob.address, "a").faults(t); got != nobodyThere {
		t.Errorf("sending to another address as a guest = %s, want %s", got, nobodyThere)
	}

	got := as[listed[message]](t, w.call(ada.auth, "GET", messages, "")).Data
	if len(got) != 1 {
		t.Fatalf("ada reads %+v, want one message", got)
	}
	if got[0].UserName != "Guest" {
		t.Errorf("the sender is named %q, want Guest", got[0].UserName)
	}
	if got[0].Found != "" {
		t.Errorf("the sender is at the address %s, want none", got[0].Found)
	}
	if got[0].ConversationID != asked.UserID {
		t.Fatalf("the conversation is %s, want the guest %s", got[0].ConversationID, asked.UserID)
	}
	w.mustSend(ada, got[0].ConversationID, "hello!")

	refreshed := person{auth: bearer(w.refresh(token.RefreshToken).Token)}
	texts := []string{"hello!", "hello?"}
	if got := w.reads(refreshed, messagesOf(ada.address)); !slices.Equal(got, texts) {
		t.Errorf("with a refreshed token, the guest reads %q, want %q", got, texts)
	}

	other := person{auth: bearer(w.guest(ada.address).Token)}
	for _, path := range []string{messagesOf(ada.address), messages, conversations} {
		if got := w.reads(other, path); len(got) > 0 {
			t.Errorf("another guest reads %q at %s, want nothing", got, path)
		}
	}

	if got := w.send(bob, asked.UserID, "a").faults(t); got != nobodyThere {
		t.Errorf("sending to the guest as somebody else = %s, want %s", got, nobodyThere)
	}
}
