package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/page"
)

// addPeople adds subscribers with addresses to the project p, and returns them as parties.
func addPeople(t *testing.T, s *Store, names ...string) (people []chat.Party) {
	t.Helper()
	now := time.Now()
	for _, name := range names {
		sub := fabric.Subscriber{
			ID:        newID(),
			ProjectID: "p",
			Email:     name + "@example.com",
			Created:   now,
			Updated:   now,
		}
		address := fabric.Address{
			ID:          newID(),
			ProjectID:   "p",
			ResourceID:  sub.ID,
			Type:        fabric.TypeSubscriber,
			Context:     fabric.Private,
			Name:        name,
			DisplayName: name,
			Created:     now,
		}
		if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
			t.Fatal(err)
		}

		people = append(people, chat.Party{
			MemberID:     sub.ID,
			SubscriberID: sub.ID,
			AddressID:    address.ID,
			Name:         name,
		})
	}
	return people
}

// between returns the conversation of two parties, with the same key as in package chat.
func between(a, b chat.Party) chat.Conversation {
	key := min(a.MemberID, b.MemberID) + "+" + max(a.MemberID, b.MemberID)
	return chat.Conversation{ID: newID(), ProjectID: "p", Key: key}
}

// newMessage returns a message that has not been added yet.
func newMessage(from, to chat.Party, text string) chat.Message {
	return chat.Message{ProjectID: "p", From: from, To: to, Text: text, Created: time.Now().UTC()}
}

func addMessage(t *testing.T, s *Store, m chat.Message) chat.Message {
	t.Helper()
	conversation := between(m.From, m.To)
	if m.Room {
		conversation = chat.Conversation{ID: newID(), ProjectID: "p", Key: m.To.AddressID, Room: true}
	}
	added, err := s.AddMessage(t.Context(), conversation, m, false)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func listMessages(t *testing.T, s *Store, f chat.Filter, q page.Query) page.Page[chat.Message] {
	t.Helper()
	found, err := s.ListMessages(t.Context(), f, q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func textsOf(messages []chat.Message) (texts []string) {
	for _, m := range messages {
		texts = append(texts, m.Text)
	}
	return texts
}

func TestMessagesAtOnce(t *testing.T) { EachDatabase(t, testMessagesAtOnce) }

// testMessagesAtOnce shows that both members can write many messages at the same time.
func testMessagesAtOnce(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	people := addPeople(t, s, "ada", "bob")
	const writers, each = 8, 50
	var writing sync.WaitGroup
	for i := range writers {
		from, to := people[i%2], people[1-i%2]
		writing.Go(func() {
			for range each {
				_, err := s.AddMessage(t.Context(), between(from, to), newMessage(from, to, "now"), false)
				if err != nil {
					t.Errorf("writing a message: %v", err)
				}
			}
		})
	}
	writing.Wait()

	last := addMessage(t, s, newMessage(people[0], people[1], "last"))
	found := listMessages(t, s, chat.Filter{ConversationID: last.ConversationID}, page.Query{Size: 1000})
	if want := writers*each + 1; len(found.Items) != want {
		t.Errorf("%d messages are in the conversation, want %d", len(found.Items), want)
	}
}

func TestMessages(t *testing.T) { EachDatabase(t, testMessages) }

// testMessages shows that a conversation is created once, lists its messages, and is the same for
// both members.
func testMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	people := addPeople(t, s, "ada", "bob")
	ada, bob := people[0], people[1]
	hook := fabric.Webhook{
		ID:        newID(),
		ProjectID: "p",
		URL:       "https://example.com",
		Enabled:   true,
		Events:    []fabric.EventName{fabric.MessageUndelivered},
	}
	if err := s.CreateWebhook(ctx, hook, 10); err != nil {
		t.Fatal(err)
	}

	first := addMessage(t, s, newMessage(ada, bob, "one"))
	second, err := s.AddMessage(ctx, between(bob, ada), newMessage(bob, ada, "two"), true)
	if err != nil {
		t.Fatal(err)
	}
	if second.ConversationID != first.ConversationID {
		t.Fatalf("the second message is in %s, want %s", second.ConversationID, first.ConversationID)
	}
	if second.Previous != first.ID {
		t.Fatalf("the message before the second one is %q, want %s", second.Previous, first.ID)
	}
	if second.ID <= first.ID {
		t.Fatalf("the second message has the id %s, want one after %s", second.ID, first.ID)
	}
	third := addMessage(t, s, newMessage(ada, bob, "three"))

	inConversation := chat.Filter{ConversationID: first.ConversationID}
	newer := listMessages(t, s, inConversation, page.Query{Size: 2})
	if got := textsOf(newer.Items); !slices.Equal(got, []string{"three", "two"}) {
		t.Errorf("the first page has %q, want three and two", got)
	}
	if newer.Next != first.ID {
		t.Errorf("the second page begins with %q, want %s", newer.Next, first.ID)
	}

	older := listMessages(t, s, inConversation, page.Query{Size: 2, From: newer.Next})
	if got := textsOf(older.Items); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the second page has %q, want one", got)
	}
	if older.Next != "" {
		t.Errorf("a third page begins with %q, want none", older.Next)
	}
	if older.Prev != third.ID {
		t.Errorf("the page before the second one begins with %q, want %s", older.Prev, third.ID)
	}

	middle, err := s.MessagesBetween(ctx, first.ConversationID, first.ID, third.ID, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := textsOf(middle); !slices.Equal(got, []string{"two"}) {
		t.Errorf("between the first and the third message there are %q, want two", got)
	}

	wantConversation(t, s, ada, bob, third)
	wantConversation(t, s, bob, ada, third)

	sent, err := s.ListDeliveries(ctx, hook.ID, "", page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent.Items) != 1 {
		t.Fatalf("%d deliveries, want one about the message to somebody offline", len(sent.Items))
	}
	if got := sent.Items[0].Subject; got != second.ID {
		t.Errorf("the delivery is about %s, want the message %s", got, second.ID)
	}
}

// wantConversation fails the test unless the only conversation of a member is the one with peer,
// and its newest message is last.
func wantConversation(t *testing.T, s *Store, member, peer chat.Party, last chat.Message) {
	t.Helper()
	listed, err := s.ListConversations(t.Context(), "p", member.MemberID, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Items) != 1 {
		t.Fatalf("%s has %d conversations, want 1", member.Name, len(listed.Items))
	}
	conversation := listed.Items[0]
	if conversation.Peer != peer.AddressID {
		t.Errorf("the peer of %s is %s, want %s", member.Name, conversation.Peer, peer.AddressID)
	}
	if conversation.Name != peer.Name {
		t.Errorf("the name of the peer of %s is %q, want %q", member.Name, conversation.Name, peer.Name)
	}
	if conversation.LastID != last.ID {
		t.Errorf("the last message of %s is %s, want %s", member.Name, conversation.LastID, last.ID)
	}

	found, err := s.FindConversationOf(t.Context(), "p", member.MemberID, peer.AddressID)
	if err != nil {
		t.Fatal(err)
	}
	if found.ID != last.ConversationID {
		t.Errorf("FindConversationOf for %s = %s, want %s", member.Name, found.ID, last.ConversationID)
	}
}

// TestPruneMeanwhile shows that an old conversation is kept if a message is added to it while its
// deletion waits for the conversation's lock.
func TestPruneMeanwhile(t *testing.T) {
	s, _, _ := grantRows(t, Config{URL: preparedServer(t), Audit: auditKey(t), Patience: time.Minute})
	ctx, now := t.Context(), time.Now()
	people := addPeople(t, s, "ada", "bob")
	old := newMessage(people[0], people[1], "old")
	old.Created = now.AddDate(0, 0, -2)
	addMessage(t, s, old)

	pruned := make(chan error, 1)
	err := s.db.Change(ctx, func(d database.Tx) error {
		_, err := d.Exec(ctx, `UPDATE conversations SET last_at = $1`, micros(now))
		if err != nil {
			return err
		}
		go func() { pruned <- s.PruneMessages(ctx, now.AddDate(0, 0, -1)) }()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for waiting := 0; waiting == 0 && len(pruned) == 0; <-tick.C {
			err := s.read().Row(ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, <-pruned); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindConversation(ctx, "p", between(people[0], people[1]).Key); err != nil {
		t.Errorf("after the deletion of old conversations, FindConversation = %v", err)
	}
}

func TestMessageOrder(t *testing.T) { EachDatabase(t, testMessageOrder) }

// testMessageOrder shows that messages that nodes with different clocks send at the same time form
// one chain in the order of their ids. Of several messages with the same key, only one is added.
func testMessageOrder(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	people := addPeople(t, s, "ada", "bob")
	ada, bob := people[0], people[1]
	ahead := newMessage(ada, bob, "ahead")
	ahead.Created = ahead.Created.Add(time.Hour)
	addMessage(t, s, ahead)

	const different, same = 25, 25
	var messages []chat.Message
	for i := range different {
		messages = append(messages, newMessage(people[i%2], people[1-i%2], fmt.Sprint(i)))
	}
	for i := range same {
		m := newMessage(ada, bob, fmt.Sprint(different+i))
		m.Key = "same"
		messages = append(messages, m)
	}
	var sends []func()
	for _, m := range messages {
		sends = append(sends, func() {
			if _, err := s.AddMessage(t.Context(), between(m.From, m.To), m, false); err != nil {
				t.Error(err)
			}
		})
	}
	together(sends...)

	conversation, err := s.FindConversation(t.Context(), "p", between(ada, bob).Key)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := s.MessagesBetween(t.Context(), conversation.ID, "", "g", 100)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + different + 1; len(sent) != want {
		t.Fatalf("there are %q, want %d messages: the first one, those without a key and one with the key",
			textsOf(sent), want)
	}
	if sent[0].Text != "ahead" {
		t.Fatalf("the first message is %q, want %q", sent[0].Text, "ahead")
	}
	if newest := sent[len(sent)-1].ID; conversation.LastID != newest {
		t.Fatalf("the last message of the conversation is %s, want %s", conversation.LastID, newest)
	}
	for i, m := range sent[1:] {
		if m.Created.Before(sent[i].Created) {
			t.Errorf("message %d was sent at %v, earlier than the previous message", i, m.Created)
		}
	}
}
