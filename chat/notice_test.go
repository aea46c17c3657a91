package chat_test

import (
	"context"
	"encoding/json"
	"slices"
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

func (nodes) Alone() bool                          { return true }
func (nodes) Broadcast(string, any)                {}
func (n nodes) Handle(kind string, h chat.Handler) { n[kind] = h }

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

func (r received) Deliver(n chat.Notice) { r <- n.Message.Text }

// TestNotices shows that a node delivers messages in order and once, although their notices arrive
// twice or out of order.
func TestNotices(t *testing.T) {
	rows := storetest.Rows(t)
	now := time.Now()
	project := storetest.AddProject(t, rows, now)
	party := func(name string) chat.Party {
		id := storetest.AddSubscriber(t, rows, project, name, now)
		return chat.Party{MemberID: id, SubscriberID: id, AddressID: uuid.NewString(), Name: name}
	}

	ada, bob := party("ada"), party("bob")
	k := chat.Conversation{ID: uuid.NewString(), ProjectID: project, Key: "ada and bob"}
	var all []chat.Notice
	for _, text := range []string{"0", "1", "2", "3", "4"} {
		m := chat.Message{ProjectID: project, From: ada, To: bob, Text: text, Created: now.UTC()}
		sent, err := rows.AddMessage(t.Context(), k, m, false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, chat.Notice{Message: sent, Keys: []string{bob.MemberID}})
	}

	c, got, others := chat.New(chat.Config{Store: rows}), make(received, 10), nodes{}
	c.DeliverTo(got, others)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for _, i := range []int{1, 0, 1, 3, 2, 3, 4} { // the first two are swapped, and 2 comes after 3
		others.send(t, all[i])
	}

	var texts []string
	for range all {
		texts = append(texts, <-got)
	}

	if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(texts, want) {
		t.Errorf("delivered %q, want %q", texts, want)
	}
	select {
	case more := <-got:
		t.Errorf("delivered %s again", more)
	default:
	}
}

// TestPlace shows that a message sorts after the last one, whatever the clock says.
func TestPlace(t *testing.T) {
	last := chat.Conversation{LastID: uuid7.First(time.Now().Add(time.Hour)), LastAt: time.Now().Add(time.Hour)}
	for range 3 {
		m := chat.Message{Created: time.Now()}
		m.Place(last)
		if m.ID <= last.LastID || m.Previous != last.LastID || m.Created.Before(last.LastAt) {
			t.Errorf("the message after %s at %v is %s at %v, want a later one", last.LastID, last.LastAt,
				m.ID, m.Created)
		}
		if _, err := uuid.Parse(m.ID); err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
		last.LastID, last.LastAt = m.ID, m.Created
	}
}
