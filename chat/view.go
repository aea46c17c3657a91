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

// A view is a conversation as one of its members sees it.
type view struct {
	self Party
	peer Party // the other party; in a room, only the room's address
	room bool
	row  Conversation // without an ID if nothing has been written to the conversation

	refusal error // why the member cannot write to the conversation, or nil
}

// conversation returns a new conversation with the key of the view. Its id is used only if there is no
// row with that key.
func (v view) conversation(projectID string) Conversation {
	k := Conversation{ID: newID(), ProjectID: projectID, Room: v.room}
	switch {
	case v.row.ID != "":
		k.Key = v.row.Key
	case v.room:
		k.Key = v.peer.AddressID
	default:
		k.Key = keyOf(v.self.MemberID, v.peer.MemberID)
	}
	return k
}

func noConversation() error { return problem.NoSuch("conversation") }

// unreachable returns the error for writing to a conversation that does not exist, or whose other
// party is gone.
func unreachable() error {
	return &problem.Error{
		Kind:    problem.Invalid,
		Code:    "does_not_exist",
		Param:   "conversation_id",
		Message: "conversation_id is not an address that you can write to",
	}
}

// findToWrite is like find, for a request that writes to the conversation.
func (c *Chat) findToWrite(ctx context.Context, t fabric.Token, from, name string) (view, error) {
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

	s, all, err := c.cfg.Fabric.Subscribers.RecentAddresses(ctx, t.ProjectID, t.SubscriberID)
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
func (c *Chat) find(ctx context.Context, t fabric.Token, from, name string) (view, error) {
	me, err := c.partyOf(ctx, t, from)
	if err != nil {
		return view{}, err
	}
	peer, ok := peerIn(name, me.MemberID)
	if !ok {
		return view{}, noConversation()
	}

	a, err := c.cfg.Fabric.Addresses.Find(ctx, t, peer)
	if errors.Is(err, problem.NotFound) {
		return c.findWithoutAddress(ctx, t, me, peer)
	}
	if err != nil {
		return view{}, err
	}

	found := view{self: me, peer: Party{AddressID: a.ID, Name: a.DisplayName}}
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
		found.peer.MemberID, found.peer.SubscriberID = a.ResourceID, a.ResourceID
	}

	key := found.conversation(t.ProjectID).Key
	found.row, err = c.cfg.Store.FindConversation(ctx, t.ProjectID, key)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return view{}, err
	}
	return found, nil
}

// findWithoutAddress returns a subscriber's conversation with a peer that has no address. The peer is a
// guest, a subscriber who has since been deleted or disabled, or a room that has since been
// deleted.
func (c *Chat) findWithoutAddress(ctx context.Context, t fabric.Token, me Party, peer string) (view, error) {
	if t.Kind != fabric.SAT {
		return view{}, noConversation()
	}
	row, err := c.cfg.Store.FindConversationOf(ctx, t.ProjectID, me.MemberID, peer)
	if errors.Is(err, problem.NotFound) {
		return view{}, noConversation()
	}
	if err != nil {
		return view{}, err
	}

	found := view{self: me, peer: Party{AddressID: peer}, room: row.Room, row: row, refusal: unreachable()}
	if row.Key == keyOf(me.MemberID, peer) { // the address of a guest is its member id
		found.peer.MemberID, found.refusal = peer, nil
	}
	return found, nil
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

// visibleSince returns the time of the oldest messages that the holder of a token may read in a
// room. For a guest, this is the time at which the guest's first token was issued.
func visibleSince(t fabric.Token) time.Time {
	if t.Kind == fabric.SAT {
		return time.Time{}
	}
	return t.Began()
}
