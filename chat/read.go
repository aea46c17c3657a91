package chat

import (
	"context"
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// List returns the conversations of a token's holder, the newest first.
func (c *Chat) List(ctx context.Context, t fabric.Token, q page.Query) (page.Page[Entry], error) {
	return c.cfg.Store.ListConversations(ctx, t.ProjectID, MemberID(t), q)
}

// Messages returns the messages of a conversation, the newest first. For a room, it returns no
// messages to subscribers who are not members. In a room, a guest gets the messages since the
// guest's first token was issued.
func (c *Chat) Messages(
	ctx context.Context, t fabric.Token, name string, q page.Query,
) (page.Page[Message], error) {
	var none page.Page[Message]
	v, err := c.find(ctx, t, "", name)
	if err != nil {
		return none, err
	}
	if v.row.ID == "" {
		return none, nil
	}

	f := Filter{ConversationID: v.row.ID}
	if v.room {
		f.Since = visibleSince(t)
	}
	if v.room && t.Kind == fabric.SAT {
		isMember, err := c.cfg.Store.IsMember(ctx, v.row.ID, v.self.MemberID)
		if err != nil {
			return none, err
		}
		if !isMember {
			return none, nil
		}
	}

	messages, err := c.cfg.Store.ListMessages(ctx, f, q)
	if err != nil {
		return none, err
	}
	return messages, c.markGone(ctx, t, messages.Items)
}

// AllMessages returns the messages of all conversations of a token's holder, the newest first. It
// omits the messages of rooms if the holder is a guest.
func (c *Chat) AllMessages(ctx context.Context, t fabric.Token, q page.Query) (page.Page[Message], error) {
	messages, err := c.cfg.Store.ListMessagesOf(ctx, t.ProjectID, MemberID(t), q)
	if err != nil {
		return page.Page[Message]{}, err
	}
	return messages, c.markGone(ctx, t, messages.Items)
}

// markGone marks the senders whose addresses the holder of a token cannot find. These are deleted
// and disabled subscribers and, for guests, all senders whose addresses the token does not contain.
// SDK 3.29.0 looks up the address of each sender, and shows no messages at all if one of the
// addresses is missing.
func (c *Chat) markGone(ctx context.Context, t fabric.Token, messages []Message) error {
	var visible []string // the addresses that the token permits
	for _, m := range messages {
		id := m.From.AddressID
		isVisible := t.Kind == fabric.SAT || slices.Contains(t.AddressIDs, id)
		if isVisible && !slices.Contains(visible, id) {
			visible = append(visible, id)
		}
	}

	var reachable []string
	if len(visible) > 0 {
		var err error
		reachable, err = c.cfg.Store.ReachableAddresses(ctx, t.ProjectID, visible)
		if err != nil {
			return err
		}
	}

	for i, m := range messages {
		messages[i].From.Gone = !slices.Contains(reachable, m.From.AddressID)
	}
	return nil
}
