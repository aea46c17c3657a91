package nodes

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

const (
	messages      = "/api/fabric/messages"
	conversations = "/api/fabric/conversations"
)

// A writer is a subscriber who writes messages at one node.
type writer struct {
	harness.SAT
	node    *harness.Server
	address string
}

func newWriter(t *testing.T, p *harness.Project, node *harness.Server, name string) writer {
	t.Helper()
	sat := p.NewSAT(t, name)
	return writer{SAT: sat, node: node, address: p.Address(t, sat.SubscriberID)}
}

// write sends a message to an address.
func (w writer) write(t harness.T, to, text string) {
	t.Helper()
	w.node.Post(t, messages, harness.Bearer(w.Token), harness.JSON(map[string]string{
		"conversation_id": to,
		"text":            text,
	})).Want(t, 201)
}

// read returns the texts of a conversation, newest first.
func (w writer) read(t *testing.T, of string) (texts []string) {
	t.Helper()
	var page struct{ Data []harness.Said }
	w.node.Get(t, conversations+"/"+of+"/messages?page_size=1000", harness.Bearer(w.Token)).Want(t, 200).Read(t, &page)
	for _, m := range page.Data {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestMessagesElsewhere shows that each socket of two people, at each node, gets each of their
// messages once and in the order of the conversation. Other people do not get the messages. After a
// restart, the conversation still contains them.
func TestMessagesElsewhere(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	alice, bob := newWriter(t, p, n.Each[0], "alice"), newWriter(t, p, n.Each[1], "bob")
	eve := newWriter(t, p, n.Each[1], "eve")
	var sockets []*harness.Socket
	for _, who := range []writer{alice, bob} {
		for _, node := range n.Each {
			s, _ := node.Connect(t, who.Token, "")
			sockets = append(sockets, s)
		}
	}
	stranger, _ := n.Each[1].Connect(t, eve.Token, "")

	const each = 25
	var writing sync.WaitGroup
	for from, to := range map[writer]writer{alice: bob, bob: alice} {
		writing.Go(func() {
			for i := range each {
				from.write(t, to.address, fmt.Sprint(from.SubscriberID, " ", i))
			}
		})
	}
	writing.Wait()

	want := alice.read(t, bob.address)
	slices.Reverse(want)
	if len(want) != 2*each {
		t.Fatalf("the conversation has %d messages, want %d", len(want), 2*each)
	}

	alice.write(t, bob.address, "last") // a duplicate would arrive before this message
	want = append(want, "last")
	for i, s := range sockets {
		var got []string
		for _, m := range s.Said(t, len(want)) {
			got = append(got, m.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("socket %d got %q, want %q", i, got, want)
		}
	}

	eve.write(t, alice.address, "for alice")
	if got := stranger.Said(t, 1); len(got) != 1 || got[0].Text != "for alice" {
		t.Errorf("eve's socket got %+v, want only eve's own message", got)
	}

	n.Each[1].Kill()
	n.Each[1].Restart(t)
	got := bob.read(t, alice.address)
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Errorf("after a restart, bob reads %q, want %q", got, want)
	}
}

// TestRoomMessagesElsewhere shows that a message to a room reaches its 100 members at two nodes,
// and a guest, but nobody else. It logs how long this takes.
func TestRoomMessagesElsewhere(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "hall"})).Want(t, 201)
	alice := newWriter(t, p, n.Each[0], "alice")
	var page struct{ Data []struct{ ID string } }
	n.Get(t, "/api/fabric/addresses?type=room", harness.Bearer(alice.Token)).Want(t, 200).Read(t, &page)
	room := page.Data[0].ID

	const members = 100
	join := func(w writer) *harness.Socket {
		w.node.Post(t, conversations+"/join", harness.Bearer(w.Token),
			harness.JSON(map[string]string{"conversation_id": room})).Want(t, 200)
		s, _ := w.node.Connect(t, w.Token, "")
		return s
	}
	sockets := []*harness.Socket{join(alice)}
	for i := 1; i < members; i++ {
		sat := p.NewSAT(t, fmt.Sprint("member", i))
		sockets = append(sockets, join(writer{SAT: sat, node: n.Each[i%2]}))
	}
	guest, _ := n.Each[1].Connect(t, p.NewGuest(t, room).Token, "")
	outside, _ := n.Each[1].Connect(t, p.NewSAT(t, "outside").Token, "")

	alice.write(t, room, "first")
	began := time.Now()
	alice.write(t, room, "second")
	for i, s := range append(sockets, guest) {
		if got := s.Said(t, 2); got[0].Text != "first" || got[1].Text != "second" || got[1].ConversationID != room {
			t.Errorf("member %d got %+v, want the messages first and second in the room", i, got)
		}
	}
	t.Logf("a message reached %d members after %v", members, time.Since(began))
	outside.Call(t, "signalwire.ping", map[string]any{})
	if outside.WasTold("signalwire.event") {
		t.Error("somebody outside the room got an event")
	}
}

// TestMessagesWithoutCalls shows that messages reach other nodes even if calls are off.
func TestMessagesWithoutCalls(t *testing.T) {
	off := []string{"--listen-media", "off"}
	n := harness.StartNodes(t, nil, harness.Config{Args: off}, harness.Config{Args: slices.Clone(off)})
	p := n.NewProject(t)
	alice, bob := newWriter(t, p, n.Each[0], "alice"), newWriter(t, p, n.Each[1], "bob")
	s, _ := bob.node.Connect(t, bob.Token, "")
	alice.write(t, bob.address, "hello")
	if got := s.Said(t, 1); got[0].Text != "hello" || got[0].ConversationID != alice.address {
		t.Errorf("bob got %+v, want hello from alice", got)
	}
}
