package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// A said is a message in the form that an SDK passes to an app.
type said struct {
	Text           string
	ConversationID string `json:"conversation_id"`
	UserName       string `json:"user_name"`
}

// TestMessages shows that each version of the stock SDK with a chat can write to the other versions
// and to our SDK. It receives their messages, and reads the history after a restart of the server.
func TestMessages(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	for _, version := range []string{"3.27.0", "3.28.0", "3.29.0"} {
		t.Run(version, func(t *testing.T) {
			p := s.NewProject(t)
			ada, bob := p.NewSubscriber(t), p.NewSubscriber(t)
			a, b := p.Address(t, ada.ID), p.Address(t, bob.ID)
			stock := inChromium(t, s, version)
			stock.open(visitor{p, ada}.token(t))
			stock.do("hear()", nil)
			ours := stock.beside(s.Issuer(), visitor{p, bob}.token(t))

			stock.do(fmt.Sprintf("client.conversation.sendMessage({ addressId: %q, text: 'hello' })", b), nil)
			ours.wantHeard("hello")
			ours.do(fmt.Sprintf("ours.messages.send(%q, 'good day')", a), nil)
			stock.wantHeard("hello", "good day")
			for i := range 15 {
				stock.do(fmt.Sprintf("client.conversation.sendMessage({ addressId: %q, text: 'm%d' })", b, i), nil)
			}

			s.Kill()
			s.Restart(t)
			var all []said
			if version != "3.27.0" { // this version has no chat
				stock.do(fmt.Sprintf("history(client.chat.getMessages({ addressId: %q, pageSize: 5 }))", b), &all)
				wantHistory(t, all, b, "client.chat")
				stock.do(fmt.Sprintf("client.chat.join({ addressId: %q })", b), nil)
			}

			stock.do(fmt.Sprintf("history(client.conversation.getConversationMessages({ addressId: %q, pageSize: 5 }))",
				b), &all)
			wantHistory(t, all, b, "client.conversation")
			stock.do("history(client.conversation.getMessages({ pageSize: 5 }))", &all)
			wantHistory(t, all, b, "all messages")
			var names []string
			stock.do("client.conversation.getConversations().then((page) => page.data.map((c) => c.id))", &names)
			if !slices.Equal(names, []string{b}) {
				t.Errorf("the conversations are %q, want %s", names, b)
			}
			ours.do(fmt.Sprintf("ours.messages.list(%q, 5).all()", a), &all)
			wantHistory(t, all, a, "our SDK")

			stock.do(fmt.Sprintf("client.conversation.sendMessage({ addressId: %q, text: 'back' })", b), nil)
			ours.wantHeard("back") // our SDK has connected again
		})
	}
}

// wantHistory checks that a list has the 17 messages of TestMessages, newest first.
func wantHistory(t *testing.T, all []said, conversation, what string) {
	t.Helper()
	if len(all) != 17 || all[0].Text != "m14" || all[15].Text != "good day" || all[16].Text != "hello" ||
		all[0].ConversationID != conversation || all[16].UserName == "" {
		t.Errorf("%s has the messages %+v, want 17", what, all)
	}
}

// beside returns our SDK, which the same page loads from the server, with a token.
func (s sdk) beside(issuer, token string) sdk {
	s.Helper()
	s.do(fmt.Sprintf("openOurs(%q, %q)", strings.TrimSuffix(issuer, "/"), token), nil)
	ours := s
	ours.version = "ours"
	return ours
}

// wantHeard waits until the last messages that the SDK's listener received are texts.
func (s sdk) wantHeard(texts ...string) {
	s.Helper()
	list := "heard"
	if s.version == "ours" {
		list = "oursHeard"
	}
	s.await(fmt.Sprintf("!%s.join('|').endsWith(%q)", list, strings.Join(texts, "|")))
}
