package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// An Input is a message to send.
type Input struct {
	To   string // the conversation: an address or a group id
	From string // the sender's address; "" means its first
	Text string
	Key  string // repeating a request with the same key sends the message only once; may be ""
}

// Check returns everything that is wrong with the input.
func (in Input) Check() error {
	var missing error
	if in.To == "" {
		missing = problem.Missing("conversation_id")
	}
	return errors.Join(missing, checkText(in.Text), checkKey(in.Key))
}

// Send writes a message on behalf of a token's holder and sends it to the sockets of the members. It
// makes the sender a member of a room.
func (c *Chat) Send(ctx context.Context, t fabric.Token, in Input) (Message, error) {
	if err := in.Check(); err != nil {
		return Message{}, err
	}
	embedKey := ""
	if t.Embedded {
		embedKey = t.KeyID
	}
	if err := c.c.Admit(ctx, MemberID(t), embedKey); err != nil {
		return Message{}, err
	}
	to, err := c.findToWrite(ctx, t, in.From, in.To)
	if err != nil {
		return Message{}, err
	}

	m := Message{ProjectID: t.ProjectID, Room: to.room, From: to.me, To: to.to, Text: in.Text, Key: in.Key,
		Created: c.now()}
	offline, err := c.isOffline(ctx, m)
	if err != nil {
		return Message{}, err
	}
	if m, err = c.c.Store.AddMessage(ctx, to.conversation(t.ProjectID), m, offline); err != nil {
		return Message{}, fmt.Errorf("sending a message: %w", err)
	}
	c.sent.Add(1)
	c.publish(ctx, m)
	return m, nil
}

// isOffline reports whether the receiver of a message between two has no device that is online.
func (c *Chat) isOffline(ctx context.Context, m Message) (bool, error) {
	if m.To.SubscriberID == "" {
		return false, nil
	}
	p, err := c.c.Fabric.Presence.Find(ctx, m.ProjectID, m.To.SubscriberID)
	return !p.Online(), err
}

// A Joined is a conversation that the holder of a token has joined.
type Joined struct {
	Peer    string // its address
	GroupID string
}

// Join returns the conversation with the given name. It makes a subscriber a member of a room, so
// that the subscriber receives what others write there.
func (c *Chat) Join(ctx context.Context, t fabric.Token, from, name string) (Joined, error) {
	to, err := c.findToWrite(ctx, t, from, name)
	if err != nil {
		return Joined{}, err
	}
	if to.room && t.Kind == fabric.SAT {
		m := Member{ID: to.me.MemberID, SubscriberID: to.me.SubscriberID, AddressID: to.me.AddressID,
			Peer: to.to.AddressID, Joined: c.now()}
		if err := c.c.Store.JoinRoom(ctx, to.conversation(t.ProjectID), m); err != nil {
			return Joined{}, fmt.Errorf("joining a conversation: %w", err)
		}
	}
	return Joined{to.to.AddressID, groupID(to.me.MemberID, to.to.AddressID)}, nil
}
