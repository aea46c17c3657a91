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
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/uuid7"
)

// addPeople adds subscribers with addresses to the project p, and returns them as parties.
func addPeople(t *testing.T, s *Store, names ...string) (all []chat.Party) {
	t.Helper()
	now := time.Now()
	for _, name := range names {
		sub := fabric.Subscriber{ID: newID(), ProjectID: "p", Email: name + "@example.com", Created: now, Updated: now}
		a := fabric.Address{ID: newID(), ProjectID: "p", ResourceID: sub.ID, Type: fabric.TypeSubscriber,
			Context: fabric.Private, Name: name, DisplayName: name, Created: now}
		if err := s.CreateSubscriber(t.Context(), sub, a); err != nil {
			t.Fatal(err)
		}
		all = append(all, chat.Party{MemberID: sub.ID, SubscriberID: sub.ID, AddressID: a.ID, Name: name})
	}
	return all
}

// between returns the conversation of two parties, with the same key as in package chat.
func between(a, b chat.Party) chat.Conversation {
	key := min(a.MemberID, b.MemberID) + "+" + max(a.MemberID, b.MemberID)
	return chat.Conversation{ID: newID(), ProjectID: "p", Key: key}
}

func written(from, to chat.Party, text string) chat.Message {
	return chat.Message{ProjectID: "p", From: from, To: to, Text: text, Created: time.Now().UTC()}
}

func addMessage(t *testing.T, s *Store, m chat.Message) chat.Message {
	t.Helper()
	k := between(m.From, m.To)
	if m.Room {
		k = chat.Conversation{ID: newID(), ProjectID: "p", Key: m.To.AddressID, Room: true}
	}
	m, err := s.AddMessage(t.Context(), k, m, false)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func textsOf(all []chat.Message) (texts []string) {
	for _, m := range all {
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
				if _, err := s.AddMessage(t.Context(), between(from, to), written(from, to, "now"), false); err != nil {
					t.Errorf("writing a message: %v", err)
				}
			}
		})
	}
	writing.Wait()

	first := addMessage(t, s, written(people[0], people[1], "last"))
	p, err := s.ListMessages(t.Context(), chat.Filter{ConversationID: first.ConversationID}, page.Query{Size: 1000})
	if err != nil || len(p.Items) != writers*each+1 {
		t.Errorf("%d messages are in the conversation (%v), want %d", len(p.Items), err, writers*each+1)
	}
}

func TestMessages(t *testing.T) { EachDatabase(t, testMessages) }

// testMessages shows that a conversation is created once, lists its messages, and is the same for
// both members.
func testMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, people := t.Context(), addPeople(t, s, "ada", "bob")
	ada, bob := people[0], people[1]
	hook := fabric.Webhook{ID: newID(), ProjectID: "p", URL: "https://example.com", Enabled: true,
		Events: []fabric.EventName{fabric.MessageUndelivered}}
	if err := s.CreateWebhook(ctx, hook, 10); err != nil {
		t.Fatal(err)
	}

	first := addMessage(t, s, written(ada, bob, "one"))
	second, err := s.AddMessage(ctx, between(bob, ada), written(bob, ada, "two"), true)
	if err != nil || second.ConversationID != first.ConversationID || second.Previous != first.ID ||
		second.ID <= first.ID {
		t.Fatalf("the second message is %+v, %v, want one after %+v", second, err, first)
	}
	third := addMessage(t, s, written(ada, bob, "three"))

	p, err := s.ListMessages(ctx, chat.Filter{ConversationID: first.ConversationID}, page.Query{Size: 2})
	if err != nil || !slices.Equal(textsOf(p.Items), []string{"three", "two"}) || p.Next != first.ID {
		t.Errorf("the first page is %q, %q, %v, want three and two, then one", textsOf(p.Items), p.Next, err)
	}

	p, err = s.ListMessages(ctx, chat.Filter{ConversationID: first.ConversationID}, page.Query{Size: 2, From: p.Next})
	if err != nil || !slices.Equal(textsOf(p.Items), []string{"one"}) || p.Next != "" || p.Prev != third.ID {
		t.Errorf("the second page is %q, %q, %q, %v, want one, after three", textsOf(p.Items), p.Next, p.Prev, err)
	}

	middle, err := s.MessagesBetween(ctx, first.ConversationID, first.ID, third.ID, 10)
	if err != nil || !slices.Equal(textsOf(middle), []string{"two"}) {
		t.Errorf("between the first and the third are %q, %v, want two", textsOf(middle), err)
	}

	for _, who := range []struct{ me, peer chat.Party }{{ada, bob}, {bob, ada}} {
		all, err := s.ListConversations(ctx, "p", who.me.MemberID, page.Query{Size: 10})
		if err != nil || len(all.Items) != 1 || all.Items[0].Peer != who.peer.AddressID ||
			all.Items[0].Name != who.peer.Name || all.Items[0].LastID != third.ID {
			t.Errorf("the conversations of %s are %+v, %v, want the one", who.me.Name, all.Items, err)
		}
		found, err := s.FindConversationOf(ctx, "p", who.me.MemberID, who.peer.AddressID)
		if err != nil || found.ID != first.ConversationID {
			t.Errorf("FindConversationOf for %s returns %+v, %v, want the one", who.me.Name, found, err)
		}
	}

	sent, err := s.ListDeliveries(ctx, hook.ID, "", page.Query{Size: 10})
	if err != nil || len(sent.Items) != 1 || sent.Items[0].Subject != second.ID {
		t.Errorf("the deliveries are %+v, %v, want one about the message to somebody offline", sent.Items, err)
	}
}

func TestMessageOrder(t *testing.T) { EachDatabase(t, testMessageOrder) }

// testMessageOrder shows that messages that nodes with different clocks send at the same time form
// one chain in the order of their ids. Of several requests with the same key, one wins.
func testMessageOrder(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	people := addPeople(t, s, "ada", "bob")
	ahead := written(people[0], people[1], "ahead")
	ahead.Created = ahead.Created.Add(time.Hour)
	addMessage(t, s, ahead)

	var sends []func()
	for i := range 50 {
		m := written(people[i%2], people[1-i%2], fmt.Sprint(i))
		if i >= 25 {
			m = written(people[0], people[1], fmt.Sprint(i))
			m.Key = "same"
		}
		sends = append(sends, func() {
			if _, err := s.AddMessage(t.Context(), between(m.From, m.To), m, false); err != nil {
				t.Error(err)
			}
		})
	}
	together(sends...)

	k, err := s.FindConversation(t.Context(), "p", between(people[0], people[1]).Key)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.MessagesBetween(t.Context(), k.ID, "", "g", 100)
	if err != nil || len(all) != 27 || all[0].Text != "ahead" || k.LastID != all[26].ID {
		t.Fatalf("there are %q, %v, want the first, 25 others and one with the key", textsOf(all), err)
	}
	for i, m := range all[1:] {
		if m.Created.Before(all[i].Created) {
			t.Errorf("message %d was sent at %v, before the one before it", i, m.Created)
		}
	}
}

func TestRoomMessages(t *testing.T) { EachDatabase(t, testRoomMessages) }

// testRoomMessages shows who is a member of a room, and that a member's list contains the messages
// of rooms and people in their order.
func testRoomMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, people := t.Context(), addPeople(t, s, "ada", "bob", "eve")
	ada, bob, eve := people[0], people[1], people[2]
	room := chat.Party{AddressID: newID()}
	guest := chat.Party{MemberID: newID(), AddressID: newID(), Name: "Guest"}
	inRoom := func(from chat.Party, text string) chat.Message {
		m := written(from, room, text)
		m.Room = true
		return addMessage(t, s, m)
	}

	first := inRoom(ada, "hello")
	inRoom(guest, "from a guest")
	k := chat.Conversation{ID: newID(), ProjectID: "p", Key: room.AddressID, Room: true}
	joined := chat.Member{ID: bob.MemberID, SubscriberID: bob.SubscriberID, AddressID: bob.AddressID,
		Peer: room.AddressID, Joined: time.Now()}
	for range 2 {
		if err := s.JoinRoom(ctx, k, joined); err != nil {
			t.Fatal(err)
		}
	}
	addMessage(t, s, written(eve, bob, "psst"))
	inRoom(ada, "bye")

	members, err := s.ListMembers(ctx, first.ConversationID)
	want := []string{ada.MemberID, bob.MemberID}
	slices.Sort(members)
	slices.Sort(want)
	if err != nil || !slices.Equal(members, want) {
		t.Errorf("the members are %q, %v, want %q", members, err, want)
	}

	if in, err := s.IsMember(ctx, first.ConversationID, eve.MemberID); in || err != nil {
		t.Errorf("IsMember of eve = %v, %v, want false", in, err)
	}
	for _, tt := range []struct {
		who  chat.Party
		want []string
	}{
		{bob, []string{"bye", "psst", "from a guest", "hello"}}, {eve, []string{"psst"}},
	} {
		p, err := s.ListMessagesOf(ctx, "p", tt.who.MemberID, page.Query{Size: 10})
		if err != nil || !slices.Equal(textsOf(p.Items), tt.want) {
			t.Errorf("all messages of %s are %q, %v, want %q", tt.who.Name, textsOf(p.Items), err, tt.want)
		}
	}

	since := chat.Filter{ConversationID: first.ConversationID, Since: time.Now().Add(time.Hour)}
	if p, err := s.ListMessages(ctx, since, page.Query{Size: 10, From: first.ID}); err != nil || len(p.Items) > 0 {
		t.Errorf("messages of the future: %q, %v, want none", textsOf(p.Items), err)
	}
}

func TestRoomLimits(t *testing.T) { EachDatabase(t, testRoomLimits) }

// testRoomLimits shows that the numbers of members of a room and of rooms of a subscriber are
// limited.
func testRoomLimits(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ada := addPeople(t, s, "ada")[0]
	join := func(room, member, subscriber string) error {
		return s.JoinRoom(t.Context(), chat.Conversation{ID: newID(), ProjectID: "p", Key: room, Room: true},
			chat.Member{ID: member, SubscriberID: subscriber, AddressID: member, Peer: room, Joined: time.Now()})
	}

	for i := range maxRooms + 1 {
		err := join(fmt.Sprint("room", i), ada.MemberID, ada.SubscriberID)
		if full := i == maxRooms; errors.Is(err, problem.Invalid) != full || err != nil && !full {
			t.Fatalf("joining room %d: %v, want Invalid for the last one only", i, err)
		}
	}

	filled(t, c, s, `INSERT INTO conversation_members (conversation_id, member_id, address_id, peer, joined)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < `+fmt.Sprint(maxRoomMembers-1)+`)
		SELECT (SELECT id FROM conversations WHERE pair = 'room0'), 'm' || i, '', '', 0 FROM n`)
	if err := join("room0", newID(), ""); !errors.Is(err, problem.Invalid) {
		t.Errorf("joining a full room: %v, want Invalid", err)
	}
}

func TestEraseMessages(t *testing.T) { EachDatabase(t, testEraseMessages) }

// testEraseMessages shows that an erased subscriber's messages are deleted, that the messages of
// others remain, and that a deleted subscriber can be erased later.
func testEraseMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, people := t.Context(), addPeople(t, s, "ada", "bob")
	ada, bob := people[0], people[1]
	m := addMessage(t, s, written(ada, bob, "from ada"))
	addMessage(t, s, written(bob, ada, "from bob"))
	erase := func(id string) (fabric.Erasure, error) {
		by := fabric.Eraser{Revocation: end(revocation.Subscriber, id),
			Names: func(fabric.Subscriber, []fabric.Address) []string { return nil }}
		return s.EraseSubscriber(ctx, "p", by, time.Now())
	}

	if err := s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, ada.SubscriberID)); err != nil {
		t.Fatal(err)
	}
	e, err := erase(ada.SubscriberID)
	if err != nil || e.Found || e.Deleted["messages"] != 1 || e.Anonymised["messages"] != 1 {
		t.Errorf("erasing ada returns %+v, %v, want one message deleted and one anonymized", e, err)
	}

	left, err := s.MessagesBetween(ctx, m.ConversationID, "", "g", 10)
	if err != nil || !slices.Equal(textsOf(left), []string{"from bob"}) {
		t.Errorf("bob keeps %q, %v, want his own message", textsOf(left), err)
	}

	k, err := s.FindConversationOf(ctx, "p", bob.MemberID, ada.AddressID)
	if err != nil || k.ID != m.ConversationID || k.Key != k.ID {
		t.Errorf("bob finds %+v, %v, want the conversation without its members' ids", k, err)
	}

	e, err = erase(bob.SubscriberID)
	if err != nil || !e.Found {
		t.Errorf("erasing bob returns %+v, %v, want it found", e, err)
	}
	if _, err := s.FindConversation(ctx, "p", k.Key); !errors.Is(err, problem.NotFound) {
		t.Errorf("the conversation that nobody is left in: %v, want not found", err)
	}
}

func TestPruneMessages(t *testing.T) { EachDatabase(t, testPruneMessages) }

// testPruneMessages shows that old messages are deleted, and with them the conversations between
// two members that have no newer messages.
func testPruneMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, people := t.Context(), addPeople(t, s, "ada", "bob", "eve")
	old := addMessage(t, s, written(people[0], people[1], "old"))
	addMessage(t, s, written(people[0], people[2], "new"))

	err := s.change(ctx, audit.None("a test"), func(tx tx) error {
		if _, err := tx.Exec(ctx, `UPDATE messages SET id = $1 WHERE id = $2`,
			uuid7.First(time.Now().Add(-48*time.Hour)), old.ID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE conversations SET last_at = 1 WHERE id = $1`, old.ConversationID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.PruneMessages(ctx, time.Now().Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0, 1} {
		p, err := s.ListMessagesOf(ctx, "p", people[i].MemberID, page.Query{Size: 10})
		k, kerr := s.ListConversations(ctx, "p", people[i].MemberID, page.Query{Size: 10})
		if err != nil || kerr != nil || len(p.Items) != want || len(k.Items) != want {
			t.Errorf("%s has %q in %d conversations, %v, %v, want %d", people[i].Name, textsOf(p.Items), len(k.Items),
				err, kerr, want)
		}
	}
}
