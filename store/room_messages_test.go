package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

func TestRoomMessages(t *testing.T) { EachDatabase(t, testRoomMessages) }

// testRoomMessages shows who is a member of a room. It also shows that the list of a member's messages
// contains those from rooms and those from people, newest first.
func testRoomMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	people := addPeople(t, s, "ada", "bob", "eve")
	ada, bob, eve := people[0], people[1], people[2]
	guest := chat.Party{MemberID: newID(), AddressID: newID(), Name: "Guest"}
	room := chat.Party{AddressID: newID()}
	inRoom := func(from chat.Party, text string) chat.Message {
		m := newMessage(from, room, text)
		m.Room = true
		return addMessage(t, s, m)
	}

	first := inRoom(ada, "hello")
	inRoom(guest, "from a guest")
	conversation := chat.Conversation{ID: newID(), ProjectID: "p", Key: room.AddressID, Room: true}
	joined := chat.Member{
		ID:           bob.MemberID,
		SubscriberID: bob.SubscriberID,
		AddressID:    bob.AddressID,
		Peer:         room.AddressID,
		Joined:       time.Now(),
	}
	for range 2 {
		if err := s.JoinRoom(ctx, conversation, joined); err != nil {
			t.Fatal(err)
		}
	}
	addMessage(t, s, newMessage(eve, bob, "psst"))
	inRoom(ada, "bye")

	members, err := s.ListMembers(ctx, first.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ada.MemberID, bob.MemberID}
	slices.Sort(members)
	slices.Sort(want)
	if !slices.Equal(members, want) {
		t.Errorf("the members are %q, want %q", members, want)
	}

	isMember, err := s.IsMember(ctx, first.ConversationID, eve.MemberID)
	if err != nil {
		t.Fatal(err)
	}
	if isMember {
		t.Error("IsMember of eve = true, want false")
	}

	wantMessagesOf(t, s, bob, "bye", "psst", "from a guest", "hello")
	wantMessagesOf(t, s, eve, "psst")

	future := chat.Filter{ConversationID: first.ConversationID, Since: time.Now().Add(time.Hour)}
	found := listMessages(t, s, future, page.Query{Size: 10, From: first.ID})
	if texts := textsOf(found.Items); len(texts) > 0 {
		t.Errorf("the messages since a time in the future are %q, want none", texts)
	}
}

// wantMessagesOf fails the test unless the messages of all conversations of a member have these
// texts.
func wantMessagesOf(t *testing.T, s *Store, member chat.Party, want ...string) {
	t.Helper()
	found, err := s.ListMessagesOf(t.Context(), "p", member.MemberID, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got := textsOf(found.Items); !slices.Equal(got, want) {
		t.Errorf("all messages of %s are %q, want %q", member.Name, got, want)
	}
}

func TestRoomLimits(t *testing.T) { EachDatabase(t, testRoomLimits) }

// testRoomLimits shows that the numbers of members of a room and of rooms of a subscriber are
// limited.
func testRoomLimits(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ada := addPeople(t, s, "ada")[0]
	join := func(room, member, subscriber string) error {
		conversation := chat.Conversation{ID: newID(), ProjectID: "p", Key: room, Room: true}
		return s.JoinRoom(t.Context(), conversation, chat.Member{
			ID:           member,
			SubscriberID: subscriber,
			AddressID:    member,
			Peer:         room,
			Joined:       time.Now(),
		})
	}

	for i := range maxRooms {
		if err := join(fmt.Sprint("room", i), ada.MemberID, ada.SubscriberID); err != nil {
			t.Fatalf("joining room %d: %v", i, err)
		}
	}
	err := join(fmt.Sprint("room", maxRooms), ada.MemberID, ada.SubscriberID)
	if !errors.Is(err, problem.Invalid) {
		t.Fatalf("joining one room too many: %v, want Invalid", err)
	}

	filled(t, c, s, `INSERT INTO conversation_members (conversation_id, member_id, address_id, peer, joined)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < `+fmt.Sprint(maxRoomMembers-1)+`)
		SELECT (SELECT id FROM conversations WHERE pair = 'room0'), 'm' || i, '', '', 0 FROM n`)
	if err := join("room0", newID(), ""); !errors.Is(err, problem.Invalid) {
		t.Errorf("joining a full room: %v, want Invalid", err)
	}
}
