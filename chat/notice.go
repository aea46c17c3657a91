package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"time"

	"github.com/selvage/selvage/internal/uuid7"
)

// A Notice announces a message to the sockets of the conversation's members.
type Notice struct {
	Message Message
	Keys    []string // see [SocketKeys]
}

// A Handler handles the messages of one kind from other nodes; see package bus.
type Handler = func(ctx context.Context, from string, body json.RawMessage) (any, error)

// noticeMessage is the kind of messages between nodes that carry a Notice.
const noticeMessage = "chat.message"

// Notices wait in queues. All notices of a conversation wait in the same queue, so that they are
// handled one after the other.
const (
	queueCount  = 8
	queueLength = 1024
)

const (
	maxDelay  = 30 * time.Second // the longest time between a message and its notice
	forgetAge = 2 * time.Minute  // longer than maxDelay; see [Chat.runQueue]
	maxMissed = 100              // the most messages to read when notices were lost

	announceFor = 5 * time.Second // the longest time to find the members of a room
)

// AnnounceTo makes the Chat announce its messages to the other nodes. Call it before Run.
func (c *Chat) AnnounceTo(nodes Nodes) { c.nodes = nodes }

// DeliverTo makes the Chat deliver the messages of all nodes to the sockets of this process. Call it
// before Run.
func (c *Chat) DeliverTo(s Sockets, nodes Nodes) {
	c.sockets = s
	for i := range c.queues {
		c.queues[i] = make(chan *Notice, queueLength)
	}
	c.AnnounceTo(nodes)
	nodes.Handle(noticeMessage, func(_ context.Context, _ string, body json.RawMessage) (any, error) {
		var n Notice
		if err := json.Unmarshal(body, &n); err != nil {
			return nil, fmt.Errorf("decoding a message: %w", err)
		}
		c.enqueue(n)
		return nil, nil
	})
}

// publish announces a message on all nodes. The message has already been stored, so an error is
// only logged. It is announced even if its sender has canceled the request in the meantime.
func (c *Chat) publish(ctx context.Context, m Message) {
	if c.now().Sub(m.Created) > maxDelay {
		return // the request repeats an earlier request
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceFor)
	defer cancel()
	n := Notice{Message: m, Keys: []string{m.From.MemberID, m.To.MemberID}}
	if m.Room {
		members, err := c.cfg.Store.ListMembers(ctx, m.ConversationID)
		if err != nil {
			c.cfg.Log.Error("announcing a message", "message", m.ID, "error", err)
			return
		}
		n.Keys = append(members, m.To.AddressID) // the address is for guests
	}

	c.enqueue(n)
	if c.nodes != nil && !c.nodes.Alone() {
		c.nodes.Broadcast(noticeMessage, n)
	}
}

// enqueue adds a notice to the queue of its conversation.
func (c *Chat) enqueue(n Notice) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.Message.ConversationID)) // never fails
	queue := c.queues[h.Sum32()%queueCount]
	if queue == nil {
		return // this process has no sockets
	}
	select {
	case queue <- &n:
	default:
		c.dropped.Add(1) // delivered with the conversation's next message
	}
}

// A delivery records which message of a conversation was delivered last.
type delivery struct {
	messageID string
	at        time.Time
}

// runQueue delivers the notices of a queue until ctx is done. To avoid delivering a message twice,
// it remembers the last delivery of each conversation for forgetAge. No notice is delayed that
// long.
func (c *Chat) runQueue(ctx context.Context, queue <-chan *Notice) {
	last := make(map[string]delivery)
	tick := time.NewTicker(forgetAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-queue:
			c.deliver(ctx, last, *n)
		case now := <-tick.C:
			maps.DeleteFunc(last, func(_ string, d delivery) bool { return now.Sub(d.at) > forgetAge })
		}
	}
}

// deliver delivers a message, and before it the earlier messages whose notices have not arrived. It
// ignores a message that was delivered before. last holds the last deliveries by conversation.
func (c *Chat) deliver(ctx context.Context, last map[string]delivery, n Notice) {
	m := n.Message
	before := last[m.ConversationID].messageID // "" sorts before all ids
	if m.ID <= before {
		return
	}

	if after := c.missedAfter(before, m); after != "" {
		missed, err := c.cfg.Store.MessagesBetween(ctx, m.ConversationID, after, m.ID, maxMissed)
		if err != nil {
			c.cfg.Log.Error("reading missed messages", "message", m.ID, "error", err)
		}
		for _, early := range missed {
			c.sockets.Deliver(Notice{Message: early, Keys: n.Keys})
		}
	}
	c.sockets.Deliver(n)
	last[m.ConversationID] = delivery{messageID: m.ID, at: time.Now()}
}

// missedAfter returns the id after which messages were missed, or "" if none were. before is the id
// of the last delivered message, or "" if it is unknown. In that case, only messages that are not
// older than maxDelay can have been missed.
func (c *Chat) missedAfter(before string, m Message) string {
	if before == "" {
		before = uuid7.First(c.now().Add(-maxDelay))
	}
	if m.Previous <= before {
		return ""
	}
	return before
}
