// Package chat keeps conversations and their messages. It decides which parties may write to each
// other, and which open sockets receive a message.
//
// A conversation is between two parties, each a subscriber or a guest, or between the members of a
// conference room. Members name a conversation by an address, which is the address of the other
// party or of the room. A message's id sorts after the ids of all earlier messages in its
// conversation, even if other nodes accepted those.
//
// A message is sent to the sockets of all members, on all nodes. A socket receives each message at
// most once, and the messages of a conversation in order. A client that was not connected reads
// them from the history.
//
// The package contains no HTTP, SQL or WebSockets. Packages fabric/rest and fabric/relay serve
// clients, and package store keeps the rows.
package chat

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// Config holds the dependencies of a Chat.
type Config struct {
	Fabric *fabric.Fabric
	Store  Store

	// Admit counts a message that sender sends. It returns problem.RateLimited if the sender has sent too
	// many. embedKey is the id of the embed key from which a guest's token came, or "". If Admit is
	// nil, all messages are admitted.
	Admit func(ctx context.Context, sender, embedKey string) error

	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil means slog.Default()
}

// A Chat enforces the rules of this package. Create one with [New]. Its methods may be called
// concurrently.
type Chat struct {
	cfg     Config
	sockets Sockets // nil if this process has none
	nodes   Nodes   // nil if this process is not a node
	queues  [queueCount]chan *Notice

	sent, dropped atomic.Uint64
}

// New returns a Chat with the dependencies in c.
func New(c Config) *Chat {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Admit == nil {
		c.Admit = func(context.Context, string, string) error { return nil }
	}
	return &Chat{cfg: c}
}

// Sockets are the open sockets of this process; see package fabric/relay.
type Sockets interface {
	// Deliver sends a message once to each socket that has one of the notice's keys.
	Deliver(n Notice)
}

// Nodes sends messages to the other nodes; see package bus.
type Nodes interface {
	// Alone reports whether there are no other nodes.
	Alone() bool
	// Broadcast sends a message to all other nodes without waiting. A message may be lost.
	Broadcast(kind string, v any)
	// Handle sets the handler for messages of one kind.
	Handle(kind string, h Handler)
}

// A Store keeps conversations, their members and their messages. Each method except PruneMessages
// is one transaction.
type Store interface {
	// AddMessage inserts a message. It first inserts the conversation k and its members if they do
	// not exist. k must have a new id. If a conversation with the same key exists, that
	// conversation keeps its id. AddMessage assigns the message an id after that of the
	// conversation's last message, and a time that is not earlier. If the sender has sent a message
	// with the same key to the conversation before, AddMessage returns that message instead. It
	// queues an event for webhooks. If offline is set, which means that no device of the receiver
	// is online, it queues a second event; see [Message.Event].
	AddMessage(ctx context.Context, k Conversation, m Message, offline bool) (Message, error)
	// JoinRoom inserts the conversation of a room, and a member of it, if they do not exist. If the
	// room has too many members, or the subscriber is a member of too many rooms, it returns
	// problem.Invalid.
	JoinRoom(ctx context.Context, k Conversation, m Member) error

	// FindConversation finds a conversation by its key.
	FindConversation(ctx context.Context, projectID, key string) (Conversation, error)
	// FindConversationOf finds a member's conversation by the address at which the member reaches it.
	FindConversationOf(ctx context.Context, projectID, memberID, peer string) (Conversation, error)
	// ListConversations returns a member's conversations, the newest first.
	ListConversations(ctx context.Context, projectID, memberID string, q page.Query) (page.Page[Entry], error)

	// ListMembers returns the ids of a conversation's members.
	ListMembers(ctx context.Context, conversationID string) ([]string, error)
	// IsMember reports whether a conversation has the member.
	IsMember(ctx context.Context, conversationID, memberID string) (bool, error)

	// ListMessages returns the messages of a conversation, the newest first.
	ListMessages(ctx context.Context, f Filter, q page.Query) (page.Page[Message], error)
	// ListMessagesOf returns the messages of all conversations of a member, the newest first.
	ListMessagesOf(ctx context.Context, projectID, memberID string, q page.Query) (page.Page[Message], error)
	// MessagesBetween returns the first messages of a conversation whose ids lie between two ids, in
	// the order of their ids. The parameter most limits their number.
	MessagesBetween(ctx context.Context, conversationID, after, before string, most int) ([]Message, error)

	// ReachableAddresses returns those of the given ids that belong to addresses of the project. It
	// omits addresses of disabled subscribers.
	ReachableAddresses(ctx context.Context, projectID string, ids []string) ([]string, error)

	// PruneMessages deletes the messages that were sent before the given time, and conversations
	// between two parties that have had no messages since then.
	PruneMessages(ctx context.Context, before time.Time) error
}

// A Filter selects the messages of a conversation.
type Filter struct {
	ConversationID string
	Since          time.Time // zero means all
}

// now returns the time to the microsecond, the precision of rows.
func (c *Chat) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Microsecond) }

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Stats counts messages.
type Stats struct {
	Sent    uint64 // messages accepted by this node since it started
	Dropped uint64 // notices that this node could not handle in time
}

// Stats returns the current counts.
func (c *Chat) Stats() Stats { return Stats{c.sent.Load(), c.dropped.Load()} }

// Prune deletes the messages that were sent before the given time, and conversations between two
// parties that have had no messages since then.
func (c *Chat) Prune(ctx context.Context, before time.Time) error {
	return c.cfg.Store.PruneMessages(ctx, before)
}

// Run delivers messages to the sockets of this process until ctx is done.
func (c *Chat) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for _, queue := range c.queues {
		if queue != nil {
			work.Go(func() { c.runQueue(ctx, queue) })
		}
	}
}
