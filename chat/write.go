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
	From string // the id of the sender's address; "" means the first one
	Text string
	Key  string // repeating a request with the same key sends the message only once; may be ""
}

// Check returns an error that lists all faults of the input.
func (in Input) Check() error {
	var missing error
	if in.To == "" {
		missing = problem.Missing("conversation_id")
	}
	return errors.Join(missing, checkText(in.Text), checkKey(in.Key))
}

// Send writes a message on behalf of a token's holder and sends it to the sockets of the members. A
// subscriber who writes to a room becomes a member of its conversation.
func (c *Chat) Send(ctx context.Context, t fabric.Token, in Input) (Message, error) {
	if err := in.Check(); err != nil {
		return Message{}, err
	}
	embedKey := ""
	if t.Embedded {
		embedKey = t.KeyID
	}
	if err := c.cfg.Admit(ctx, MemberID(t), embedKey); err != nil {
		return Message{}, err
	}
	v, err := c.findToWrite(ctx, t, in.From, in.To)
	if err != nil {
		return Message{}, err
	}

	m := Message{
		ProjectID: t.ProjectID,
		Room:      v.room,
		From:      v.self,
		To:        v.peer,
		Text:      in.Text,
		Key:       in.Key,
		Created:   c.now(),
	}
	offline, err := c.isOffline(ctx, m)
	if err != nil {
		return Message{}, err
	}

	m, err = c.cfg.Store.AddMessage(ctx, v.conversation(t.ProjectID), m, offline)
	if errors.Is(err, problem.NotFound) { // the other party has been deleted
		return Message{}, unreachable()
	}
	if err != nil {
		return Message{}, fmt.Errorf("sending a message: %w", err)
	}

	c.sent.Add(1)
	c.publish(ctx, m)
	return m, nil
}

// isOffline reports whether no device of the message's receiver is online. It returns false for
// guests and rooms.
func (c *Chat) isOffline(ctx context.Context, m Message) (bool, error) {
	if m.To.SubscriberID == "" {
		return false, nil
	}
	p, err := c.cfg.Fabric.Presence.Find(ctx, m.ProjectID, m.To.SubscriberID)
	return !p.Online(), err
}

// A Reference holds the two names by which clients refer to a conversation.
type Reference struct {
	AddressID string // address of the other party or the room
	GroupID   string
}

// Join finds the conversation with the given name. If it is the conversation of a room, Join makes a
// subscriber a member, so that the subscriber receives what others write there.
func (c *Chat) Join(ctx context.Context, t fabric.Token, from, name string) (Reference, error) {
	v, err := c.findToWrite(ctx, t, from, name)
	if err != nil {
		return Reference{}, err
	}
	if v.room && t.Kind == fabric.SAT {
		m := Member{
			ID:           v.self.MemberID,
			SubscriberID: v.self.SubscriberID,
			AddressID:    v.self.AddressID,
			Peer:         v.peer.AddressID,
			Joined:       c.now(),
		}
		if err := c.cfg.Store.JoinRoom(ctx, v.conversation(t.ProjectID), m); err != nil {
			return Reference{}, fmt.Errorf("joining a conversation: %w", err)
		}
	}
	return Reference{AddressID: v.peer.AddressID, GroupID: groupID(v.self.MemberID, v.peer.AddressID)}, nil
}
