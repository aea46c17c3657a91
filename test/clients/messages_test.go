package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// A chatMessage is a message in the form that an SDK passes to an app.
type chatMessage struct {
	Text           string
	ConversationID string `json:"conversation_id"`
	UserName       string `json:"user_name"`
}

// TestMessages shows that each version of the stock SDK that has conversations can exchange
// messages with our SDK. Both SDKs can read the history after the server has been killed and
// started again.
func TestMessages(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	for _, version := range []string{"3.27.0", "3.28.0", "3.29.0"} {
		t.Run(version, func(t *testing.T) {
			p := s.NewProject(t)
			ada, bob := p.NewSubscriber(t), p.NewSubscriber(t)
			adaAddress, bobAddress := p.Address(t, ada.ID), p.Address(t, bob.ID)
			stock := inChromium(t, s, version)
			stock.open(visitor{p, ada}.token(t))
			stock.do("hear()", nil)
			ours := stock.openOurs(s.Issuer(), visitor{p, bob}.token(t))
			send := func(text string) {
				t.Helper()
				call := "client.conversation.sendMessage({ addressId: %q, text: %q })"
				stock.do(fmt.Sprintf(call, bobAddress, text), nil)
			}

			send("hello")
			ours.wantHeard("hello")
			ours.do(fmt.Sprintf("ours.messages.send(%q, 'good day')", adaAddress), nil)
			stock.wantHeard("hello", "good day")
			for i := range 15 {
				send(fmt.Sprint("m", i))
			}

			s.Kill()
			s.Restart(t)
			if version != "3.27.0" { // 3.27.0 has no client.chat
				wantHistory(stock, bobAddress,
					fmt.Sprintf("history(client.chat.getMessages({ addressId: %q, pageSize: 5 }))", bobAddress))
				stock.do(fmt.Sprintf("client.chat.join({ addressId: %q })", bobAddress), nil)
			}

			byAddress := "history(client.conversation.getConversationMessages({ addressId: %q, pageSize: 5 }))"
			wantHistory(stock, bobAddress, fmt.Sprintf(byAddress, bobAddress))
			wantHistory(stock, bobAddress, "history(client.conversation.getMessages({ pageSize: 5 }))")
			var ids []string
			stock.do("client.conversation.getConversations().then((page) => page.data.map((c) => c.id))", &ids)
			if !slices.Equal(ids, []string{bobAddress}) {
				t.Errorf("the conversations are %q, want only %q", ids, bobAddress)
			}
			wantHistory(ours, adaAddress, fmt.Sprintf("ours.messages.list(%q, 5).all()", adaAddress))

			send("back")
			ours.wantHeard("back") // our SDK must have connected again
		})
	}
}

// TestMissedMessages shows that our SDK gets the messages that it missed while it was disconnected,
// even if reading them fails once.
func TestMissedMessages(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	ada, bob := p.NewSubscriber(t), p.NewSubscriber(t)
	token, address := visitor{p, ada}.token(t), p.Address(t, bob.ID)
	send := func(text string) {
		t.Helper()
		s.Post(t, "/api/fabric/messages", harness.Bearer(token),
			harness.JSON(map[string]any{"conversation_id": address, "text": text})).Want(t, 201)
	}

	ours := inChromium(t, s, "3.29.0").openOurs(s.Issuer(), visitor{p, bob}.token(t))
	send("one")
	ours.wantHeard("one")
	ours.do("lose()", nil)
	send("two")
	ours.do("found()", nil)
	ours.wantHeard("one", "two")
	send("three")
	ours.wantHeard("one", "two", "three")
}

// wantHistory checks that a promise resolves to the 17 messages of TestMessages, newest first.
func wantHistory(s sdk, conversation, promise string) {
	s.Helper()
	var messages []chatMessage
	s.do(promise, &messages)
	if len(messages) != 17 {
		s.Fatalf("%s returned %d messages, want 17: %+v", promise, len(messages), messages)
	}

	texts := []string{messages[0].Text, messages[15].Text, messages[16].Text}
	if want := []string{"m14", "good day", "hello"}; !slices.Equal(texts, want) {
		s.Errorf("%s: the newest and the two oldest messages are %q, want %q", promise, texts, want)
	}
	if got := messages[0].ConversationID; got != conversation {
		s.Errorf("%s: the newest message has the conversation %q, want %q", promise, got, conversation)
	}
	if messages[16].UserName == "" {
		s.Errorf("%s: the oldest message has no user name", promise)
	}
}

// openOurs makes the page load our SDK from the server and open it with a token. It returns this
// SDK.
func (s sdk) openOurs(issuer, token string) sdk {
	s.Helper()
	s.do(fmt.Sprintf("openOurs(%q, %q)", strings.TrimSuffix(issuer, "/"), token), nil)
	ours := s
	ours.version = "ours"
	return ours
}

// wantHeard waits until the newest messages that the SDK's listener received have the given texts.
func (s sdk) wantHeard(texts ...string) {
	s.Helper()
	list := "heard"
	if s.version == "ours" {
		list = "oursHeard"
	}
	s.awaitFalse(fmt.Sprintf("!%s.join('|').endsWith(%q)", list, strings.Join(texts, "|")))
}
