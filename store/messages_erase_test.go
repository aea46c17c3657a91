package store

import (
	"errors"
	"slices"
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

func TestEraseMessages(t *testing.T) { EachDatabase(t, testEraseMessages) }

// testEraseMessages shows that an erased subscriber's messages are deleted, that the messages of
// others remain, and that a deleted subscriber can be erased later.
func testEraseMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	people := addPeople(t, s, "ada", "bob")
	ada, bob := people[0], people[1]
	fromAda := addMessage(t, s, newMessage(ada, bob, "from ada"))
	addMessage(t, s, newMessage(bob, ada, "from bob"))
	erase := func(id string) fabric.Erasure {
		t.Helper()
		req := fabric.ErasureRequest{
			Revocation: end(revocation.Subscriber, id),
			Names:      func(fabric.Subscriber, []fabric.Address) []string { return nil },
		}
		e, err := s.EraseSubscriber(ctx, "p", req, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}

	if err := s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, ada.SubscriberID)); err != nil {
		t.Fatal(err)
	}
	erasure := erase(ada.SubscriberID)
	if erasure.Found {
		t.Error("erasing ada after her deletion finds her")
	}
	if n := erasure.Deleted["messages"]; n != 1 {
		t.Errorf("erasing ada deletes %d messages, want 1", n)
	}
	if n := erasure.Anonymized["messages"]; n != 1 {
		t.Errorf("erasing ada anonymizes %d messages, want 1", n)
	}

	left, err := s.MessagesBetween(ctx, fromAda.ConversationID, "", "g", 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := textsOf(left); !slices.Equal(got, []string{"from bob"}) {
		t.Errorf("bob keeps %q, want only his own message", got)
	}

	kept, err := s.FindConversationOf(ctx, "p", bob.MemberID, ada.AddressID)
	if err != nil {
		t.Fatal(err)
	}
	if kept.ID != fromAda.ConversationID {
		t.Errorf("bob finds the conversation %s, want %s", kept.ID, fromAda.ConversationID)
	}
	if kept.Key != kept.ID {
		t.Errorf("the key of the conversation is %q, want its id %q", kept.Key, kept.ID)
	}

	if erasure := erase(bob.SubscriberID); !erasure.Found {
		t.Error("erasing bob does not find him")
	}
	if _, err := s.FindConversation(ctx, "p", kept.Key); !errors.Is(err, problem.NotFound) {
		t.Errorf("finding a conversation without members: %v, want not found", err)
	}
}

func TestPruneMessages(t *testing.T) { EachDatabase(t, testPruneMessages) }

// testPruneMessages shows that old messages are deleted, and with them the conversations of two
// members in which there are no newer messages.
func testPruneMessages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	people := addPeople(t, s, "ada", "bob", "eve")
	ada, bob, eve := people[0], people[1], people[2]
	old := addMessage(t, s, newMessage(ada, bob, "old"))
	addMessage(t, s, newMessage(ada, eve, "new"))

	twoDaysAgo := uuid7.First(time.Now().Add(-48 * time.Hour))
	err := s.change(ctx, audit.None("a test"), func(tx tx) error {
		_, err := tx.Exec(ctx, `UPDATE messages SET id = $1 WHERE id = $2`, twoDaysAgo, old.ID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE conversations SET last_at = 1 WHERE id = $1`, old.ConversationID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.PruneMessages(ctx, time.Now().Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		member chat.Party
		want   int // messages, each in a conversation of its own
	}{
		{member: ada, want: 1},
		{member: bob, want: 0},
		{member: eve, want: 1},
	} {
		messages, err := s.ListMessagesOf(ctx, "p", tt.member.MemberID, page.Query{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(messages.Items) != tt.want {
			t.Errorf("%s has the messages %q, want %d", tt.member.Name, textsOf(messages.Items), tt.want)
		}

		conversations, err := s.ListConversations(ctx, "p", tt.member.MemberID, page.Query{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(conversations.Items) != tt.want {
			t.Errorf("%s has %d conversations, want %d", tt.member.Name, len(conversations.Items), tt.want)
		}
	}
}
