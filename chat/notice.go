package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/selvage/selvage/internal/uuid7"
)

// A Notice announces a message to the sockets of its members.
type Notice struct {
	Message Message
	Keys    []string // of the sockets; see [SocketKeys]
}

// A Handler handles the messages of one kind from other nodes; see package bus.
type Handler = func(ctx context.Context, from string, body json.RawMessage) (any, error)

// noticeMessage is the kind of messages between nodes that carry a Notice.
const noticeMessage = "chat.message"

// The notices of one conversation wait in one of lineCount lines, so that they are handled in turn.
const (
	lineCount   = 8
	lineWaiting = 1024 // notices in a line
)

// Times of a line. A notice that arrives out of order was sent less than recent ago, and a line
// remembers a conversation for longer than that.
const (
	recent      = 30 * time.Second
	rememberFor = 2 * time.Minute
)

// maxMissed is the most missed messages that are read when a notice was lost.
const maxMissed = 100

// Announce makes the Chat send its messages to the other nodes. Call it before Run.
func (c *Chat) Announce(nodes Nodes) { c.nodes = nodes }

// Carry makes the Chat deliver messages of all nodes to the sockets of this process. Call it before
// Run.
func (c *Chat) Carry(s Sockets, nodes Nodes) {
	c.sockets = s
	for i := range c.lines {
		c.lines[i] = make(chan Notice, lineWaiting)
	}
	c.Announce(nodes)
	nodes.Handle(noticeMessage, func(_ context.Context, _ string, body json.RawMessage) (any, error) {
		var n Notice
		if err := json.Unmarshal(body, &n); err != nil {
			return nil, fmt.Errorf("decoding a message: %w", err)
		}
		c.enqueue(n)
		return nil, nil
	})
}

// publish announces a message on all nodes. The message is stored, so an error is only logged.
func (c *Chat) publish(ctx context.Context, m Message) {
	if c.now().Sub(m.Created) > recent {
		return // the request repeats an old one
	}
	n := Notice{m, []string{m.From.MemberID, m.To.MemberID}}
	if m.Room {
		members, err := c.c.Store.ListMembers(ctx, m.ConversationID)
		if err != nil {
			c.c.Log.Error("announcing a message", "message", m.ID, "error", err)
			return
		}
		n.Keys = append(members, m.To.AddressID) // the address is for guests
	}
	c.enqueue(n)
	if c.nodes != nil && !c.nodes.Alone() {
		c.nodes.Broadcast(noticeMessage, n)
	}
}

// enqueue adds a notice to the line of its conversation.
func (c *Chat) enqueue(n Notice) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.Message.ConversationID)) // never fails
	line := c.lines[h.Sum32()%lineCount]
	if line == nil {
		return // this process has no sockets
	}
	select {
	case line <- n:
	default:
		c.dropped.Add(1) // the next message of the conversation makes up for it
	}
}

// A place is the last message of a conversation that a line has delivered.
type place struct {
	id string
	at time.Time // when
}

// runLine delivers the notices of a line until ctx is done.
func (c *Chat) runLine(ctx context.Context, line <-chan Notice) {
	last := make(map[string]place)
	tick := time.NewTicker(rememberFor)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-line:
			c.deliver(ctx, last, n)
		case now := <-tick.C:
			for id, p := range last {
				if now.Sub(p.at) > rememberFor {
					delete(last, id)
				}
			}
		}
	}
}

// deliver delivers a message, and before it the earlier messages whose notices have not arrived. It
// ignores a message that was delivered before.
func (c *Chat) deliver(ctx context.Context, last map[string]place, n Notice) {
	m := n.Message
	done, known := last[m.ConversationID]
	if known && m.ID <= done.id {
		return
	}
	if after := c.missedAfter(done.id, m); after != "" {
		missed, err := c.c.Store.MessagesBetween(ctx, m.ConversationID, after, m.ID, maxMissed)
		if err != nil {
			c.c.Log.Error("reading missed messages", "message", m.ID, "error", err)
		}
		for _, early := range missed {
			c.sockets.Deliver(Notice{early, n.Keys})
		}
	}
	c.sockets.Deliver(n)
	last[m.ConversationID] = place{m.ID, time.Now()}
}

// missedAfter returns the id after which messages were missed, or "" if none were. done is the id of
// the last delivered message. If it is unknown, only recent messages can have been missed.
func (c *Chat) missedAfter(done string, m Message) string {
	if done != "" {
		if m.Previous > done {
			return done
		}
		return ""
	}
	if m.Previous == "" {
		return ""
	}
	since := uuid7.First(c.now().Add(-recent))
	if m.Previous < since {
		return ""
	}
	return since
}
