package relay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
)

// messages returns the messages that the server has sent so far, each with its conversation.
func (c *client) messages() (all []string) {
	c.t.Helper()
	c.call("signalwire.ping", `{}`)
	for _, f := range c.requested {
		var e struct {
			Type   string        `json:"event_type"`
			Params chat.Document `json:"params"`
		}
		if f.Method == "signalwire.event" && json.Unmarshal(f.Params, &e) == nil && e.Type == "conversation.message" {
			all = append(all, e.Params.Text+" in "+e.Params.ConversationID)
		}
	}
	return all
}

// TestDeliver shows which sockets receive a message. Each socket of the members receives it once,
// and so do the sockets of a room's guests. Sockets whose token was revoked or now allows other
// addresses do not receive it.
func TestDeliver(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	ada, bob, room := uuidOf("5"), uuidOf("6"), uuidOf("a")
	guestTo := func(family, address string) func(*fabric.Token) {
		return func(t *fabric.Token) {
			t.Kind = fabric.Guest
			t.SubscriberID = ""
			t.ClientID = ""
			t.ID = uuidOf("8")
			t.FamilyID = family
			t.AddressIDs = []string{address}
		}
	}
	first, _ := n.connect(n.seal(nil))
	second, _ := n.connect(n.seal(nil))
	other, _ := n.connect(n.seal(func(t *fabric.Token) { t.ID, t.SubscriberID = uuidOf("9"), uuidOf("4") }))
	guest, _ := n.connect(n.seal(guestTo(uuidOf("b"), room)))

	write := func(text string, isRoom bool) {
		m := chat.Message{
			ID:      uuidOf("1"),
			Text:    text,
			Room:    isRoom,
			Created: time.Now(),
			From:    chat.Party{MemberID: bob, AddressID: uuidOf("d")},
			To:      chat.Party{MemberID: ada, AddressID: uuidOf("e")},
		}
		keys := []string{ada, bob, ada}
		if isRoom {
			m.To = chat.Party{AddressID: room}
			keys = []string{ada, room}
		}
		n.relay.Deliver(chat.Notice{Message: m, Keys: keys})
	}

	want := func(c *client, name string, texts ...string) {
		t.Helper()
		if got := c.messages(); !slices.Equal(got, texts) {
			t.Errorf("%s gets %q, want %q", name, got, texts)
		}
	}

	private, public := "one in "+uuidOf("d"), "two in "+room
	write("one", false)
	write("two", true)
	want(first, "a socket", private, public)
	want(second, "the other socket", private, public)
	want(other, "somebody else")
	want(guest, "the guest", public)

	elsewhere := n.seal(guestTo(uuidOf("b"), uuidOf("c")))
	if r := guest.call("signalwire.reauthenticate", authentication(elsewhere)+"}"); r.Error != nil {
		t.Fatalf("reauthenticating: %+v", r.Error)
	}
	write("three", true)
	want(guest, "a guest who may no longer reach the room", public)
	want(first, "a socket", private, public, "three in "+room)

	if err := n.fabric.Tokens.Revoke(t.Context(), n.token(nil)); err != nil {
		t.Fatal(err)
	}
	write("four", true)
	for i, c := range []*client{first, second} {
		c.closed()
		for _, f := range c.requested {
			if strings.Contains(string(f.Params), "four") {
				t.Errorf("socket %d gets a message after its token was revoked", i)
			}
		}
	}
}
