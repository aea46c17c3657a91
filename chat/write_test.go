package chat_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A leftStore calls left after it has added a message.
type leftStore struct {
	*store.Store
	left func()
}

func (s *leftStore) AddMessage(
	ctx context.Context, k chat.Conversation, m chat.Message, offline bool,
) (chat.Message, error) {
	m, err := s.Store.AddMessage(ctx, k, m, offline)
	s.left()
	return m, err
}

// TestSenderLeaves shows that a message to a room is delivered although its sender cancels the
// request as soon as the message has been stored.
func TestSenderLeaves(t *testing.T) {
	dir := storetest.Dir(t)
	rows := &leftStore{Store: storetest.Open(t, dir, nil)}
	sessions, err := sessionsql.Open(t.Context(), sessionsql.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sessions.Close() })
	f := fabric.New(fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows.Store, nil),
		Revocations: revocation.New(rows.Store, time.Now),
		Sessions:    sessions,
		Host:        "puc.localhost",
		Issuer:      "http://localhost/",
	})

	project := storetest.AddProject(t, rows.Store, time.Now())
	sender := storetest.AddSubscriber(t, rows.Store, project, "ada", time.Now())
	kind := f.Resources.Kinds().ByPath("conference_rooms")
	lobby := map[string]json.RawMessage{"name": json.RawMessage(`"lobby"`)}
	if _, err := f.Resources.Create(t.Context(), project, kind, lobby); err != nil {
		t.Fatal(err)
	}
	room, err := f.Addresses.FindAt(t.Context(), project, "/public/lobby")
	if err != nil {
		t.Fatal(err)
	}

	node, delivered := chat.New(chat.Config{Fabric: f, Store: rows}), make(received, 1)
	node.DeliverTo(delivered, nodes{})
	var running sync.WaitGroup
	running.Go(func() { node.Run(t.Context()) })
	t.Cleanup(running.Wait)

	ctx, cancel := context.WithCancel(t.Context())
	rows.left = cancel
	token := fabric.Token{Kind: fabric.SAT, ID: uuid.NewString(), ProjectID: project, SubscriberID: sender}
	if _, err := node.Send(ctx, token, chat.Input{To: room.ID, Text: "bye"}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-delivered:
		if got != "bye" {
			t.Errorf("%q was delivered, want %q", got, "bye")
		}
	case <-time.After(time.Minute):
		t.Error("the message was not delivered")
	}
}
