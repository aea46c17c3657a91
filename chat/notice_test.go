package chat_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/store/storetest"
)

// nodes collects the handlers of messages between nodes, so that a test can send messages from
// another node.
type nodes map[string]chat.Handler

func (nodes) Alone() bool                               { return true }
func (nodes) Broadcast(string, any)                     {}
func (n nodes) Handle(kind string, handle chat.Handler) { n[kind] = handle }

// send sends a notice from another node.
func (n nodes) send(t *testing.T, notice chat.Notice) {
	t.Helper()
	body, err := json.Marshal(notice)
	if err != nil {
		t.Fatal(err)
	}
	for _, handle := range n {
		if _, err := handle(t.Context(), "another", body); err != nil {
			t.Fatal(err)
		}
	}
}

// A received passes on the texts of the messages that are delivered to sockets.
type received chan string

func (r received) Deliver(notice chat.Notice) { r <- notice.Message.Text }

// TestNotices shows that a node delivers messages in order and only once, even if their notices
// arrive twice or out of order.
func TestNotices(t *testing.T) {
	rows := storetest.Rows(t)
	now := time.Now()
	project := storetest.AddProject(t, rows, now)
	party := func(name string) chat.Party {
		id := storetest.AddSubscriber(t, rows, project, name, now)
		return chat.Party{MemberID: id, SubscriberID: id, AddressID: uuid.NewString(), Name: name}
	}

	ada, bob := party("ada"), party("bob")
	conversation := chat.Conversation{ID: uuid.NewString(), ProjectID: project, Key: "ada and bob"}
	var notices []chat.Notice
	for _, text := range []string{"0", "1", "2", "3", "4"} {
		m := chat.Message{ProjectID: project, From: ada, To: bob, Text: text, Created: now.UTC()}
		sent, err := rows.AddMessage(t.Context(), conversation, m, false)
		if err != nil {
			t.Fatal(err)
		}
		notices = append(notices, chat.Notice{Message: sent, Keys: []string{bob.MemberID}})
	}

	node, delivered, others := chat.New(chat.Config{Store: rows}), make(received, 10), nodes{}
	node.DeliverTo(delivered, others)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { node.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for _, i := range []int{1, 0, 1, 3, 2, 3, 4} { // the first two are swapped, and 2 comes after 3
		others.send(t, notices[i])
	}

	var texts []string
	for range notices {
		texts = append(texts, <-delivered)
	}
	if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(texts, want) {
		t.Errorf("delivered %q, want %q", texts, want)
	}
	select {
	case more := <-delivered:
		t.Errorf("delivered %s again", more)
	default:
	}
}

// TestPlace shows that a message is placed after the last message, even if the clock is behind.
func TestPlace(t *testing.T) {
	last := chat.Conversation{LastID: uuid7.First(time.Now().Add(time.Hour)), LastAt: time.Now().Add(time.Hour)}
	for range 3 {
		m := chat.Message{Created: time.Now()}
		m.Place(last)
		if m.ID <= last.LastID {
			t.Errorf("the ID is %s, want an ID after %s", m.ID, last.LastID)
		}
		if m.Previous != last.LastID {
			t.Errorf("the previous message is %s, want %s", m.Previous, last.LastID)
		}
		if m.Created.Before(last.LastAt) {
			t.Errorf("the message is from %v, want a time after %v", m.Created, last.LastAt)
		}
		if _, err := uuid.Parse(m.ID); err != nil {
			t.Errorf("the ID %s is not a UUID: %v", m.ID, err)
		}
		last.LastID, last.LastAt = m.ID, m.Created
	}
}
