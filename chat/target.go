package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// A target is the conversation that a request names, as its caller may use it.
type target struct {
	me    Party
	to    Party
	room  bool
	found Conversation // the row; without an ID if there is none

	refusal error // why nothing can be written there; nil if it can
}

// conversation returns the conversation to write to, which is new if there is no row.
func (t target) conversation(projectID string) Conversation {
	if t.found.ID != "" {
		return t.found
	}
	k := Conversation{ID: newID(), ProjectID: projectID, Key: t.to.AddressID, Room: t.room}
	if !t.room {
		k.Key = keyOf(t.me.MemberID, t.to.MemberID)
	}
	return k
}

func noConversation() error { return problem.NoSuch("conversation") }

// unreachable returns the error for writing to a conversation that does not exist, or in which nobody
// is left.
func unreachable() error {
	return &problem.Error{Kind: problem.Invalid, Code: "does_not_exist", Param: "conversation_id",
		Message: "conversation_id is not an address that you can write to"}
}

// findToWrite is like find, for a request that writes to the conversation.
func (c *Chat) findToWrite(ctx context.Context, t fabric.Token, from, name string) (target, error) {
	found, err := c.find(ctx, t, from, name)
	if errors.Is(err, problem.NotFound) {
		return found, unreachable()
	}
	return found, errors.Join(err, found.refusal)
}

// partyOf returns the holder of a token as others see it. from is the id of the address that the
// client wants to show, or ""; it must be an address of the holder.
func (c *Chat) partyOf(ctx context.Context, t fabric.Token, from string) (Party, error) {
	me := Party{MemberID: MemberID(t)}
	if t.Kind != fabric.SAT {
		me.AddressID, me.Name = me.MemberID, "Guest"
		return me, nil
	}
	s, all, err := c.c.Fabric.Subscribers.RecentAddresses(ctx, t.ProjectID, t.SubscriberID)
	if err != nil {
		return me, err
	}
	me.SubscriberID, me.Name = s.ID, s.Title()
	for i, a := range all {
		if i == 0 || a.ID == from {
			me.AddressID = a.ID
		}
	}
	if from != "" && me.AddressID != from {
		const param = "from_fabric_address_id"
		return me, problem.BadParam(param, "%s must be an address of the subscriber", param)
	}
	return me, nil
}

// find returns the conversation with the given name, which is an address or a group id.
func (c *Chat) find(ctx context.Context, t fabric.Token, from, name string) (target, error) {
	me, err := c.partyOf(ctx, t, from)
	if err != nil {
		return target{}, err
	}
	peer, ok := peerIn(name, me.MemberID)
	if !ok {
		return target{}, noConversation()
	}

	a, err := c.c.Fabric.Addresses.Find(ctx, t, peer)
	if errors.Is(err, problem.NotFound) {
		return c.findWithout(ctx, t, me, peer)
	}
	if err != nil {
		return target{}, err
	}
	found := target{me: me, to: Party{AddressID: a.ID, Name: a.DisplayName}}
	switch {
	case a.Type == fabric.TypeRoom:
		found.room = true
	case a.Type != fabric.TypeSubscriber:
		found.refusal = problem.BadParam("conversation_id", "nobody reads messages at this address")
		return found, nil
	case a.ResourceID == me.MemberID:
		found.refusal = problem.BadParam("conversation_id", "conversation_id is your own address")
		return found, nil
	default:
		found.to.MemberID, found.to.SubscriberID = a.ResourceID, a.ResourceID
	}

	k, err := c.c.Store.FindConversation(ctx, t.ProjectID, found.conversation(t.ProjectID).Key)
	found.found = k
	return found, problem.IgnoreNotFound(err)
}

// findWithout returns a conversation of a subscriber whose peer has no address. The peer is a guest, or
// a subscriber that was deleted or disabled since.
func (c *Chat) findWithout(ctx context.Context, t fabric.Token, me Party, peer string) (target, error) {
	if t.Kind != fabric.SAT {
		return target{}, noConversation()
	}
	k, err := c.c.Store.FindConversationOf(ctx, t.ProjectID, me.MemberID, peer)
	if errors.Is(err, problem.NotFound) {
		return target{}, noConversation()
	}
	found := target{me: me, to: Party{AddressID: peer}, room: k.Room, found: k, refusal: unreachable()}
	if k.Key == keyOf(me.MemberID, peer) { // the address of a guest is its member id
		found.to.MemberID, found.refusal = peer, nil
	}
	return found, err
}

// peerIn returns the address in the name of a conversation, in canonical form.
func peerIn(name, memberID string) (peer string, ok bool) {
	if member, rest, group := strings.Cut(name, "_"); group {
		if !strings.EqualFold(member, memberID) {
			return "", false
		}
		name = rest
	}
	if len(name) != 36 {
		return "", false
	}
	u, err := uuid.Parse(name)
	return u.String(), err == nil
}

// visibleSince returns the time since when the holder of a token may read the messages of a room:
// for a guest, since its first token was issued.
func visibleSince(t fabric.Token) time.Time {
	switch {
	case t.Kind == fabric.SAT:
		return time.Time{}
	case t.RootedAt.IsZero():
		return t.IssuedAt
	}
	return t.RootedAt
}
