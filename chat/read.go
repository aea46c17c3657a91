package chat

import (
	"context"
	"errors"
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// List returns the conversations of a token's holder, the newest first.
func (c *Chat) List(ctx context.Context, t fabric.Token, q page.Query) (page.Page[Entry], error) {
	return c.cfg.Store.ListConversations(ctx, t.ProjectID, MemberID(t), q)
}

// Messages returns the messages of a conversation, the newest first. For a room, it returns no
// messages to subscribers who are not members. A guest gets the messages since the guest's first
// token was issued.
func (c *Chat) Messages(
	ctx context.Context, t fabric.Token, name string, q page.Query,
) (p page.Page[Message], err error) {
	v, err := c.find(ctx, t, "", name)
	if err != nil || v.row.ID == "" {
		return p, err
	}

	f := Filter{ConversationID: v.row.ID}
	if v.room {
		f.Since = visibleSince(t)
	}
	if v.room && t.Kind == fabric.SAT {
		in, err := c.cfg.Store.IsMember(ctx, v.row.ID, v.self.MemberID)
		if err != nil || !in {
			return p, err
		}
	}
	p, err = c.cfg.Store.ListMessages(ctx, f, q)
	return p, errors.Join(err, c.markGone(ctx, t, p.Items))
}

// AllMessages returns the messages of all conversations of a token's holder, the newest first. It omits
// the messages of rooms if the holder is a guest.
func (c *Chat) AllMessages(ctx context.Context, t fabric.Token, q page.Query) (page.Page[Message], error) {
	p, err := c.cfg.Store.ListMessagesOf(ctx, t.ProjectID, MemberID(t), q)
	return p, errors.Join(err, c.markGone(ctx, t, p.Items))
}

// markGone marks the senders whose addresses the holder of a token cannot find. These are deleted
// and disabled subscribers and, for guests, all senders whose addresses the token does not contain.
// SDK 3.29.0 looks up the address of each sender, and shows no messages at all if one of the
// addresses is missing.
func (c *Chat) markGone(ctx context.Context, t fabric.Token, all []Message) error {
	var ids []string
	for _, m := range all {
		from := m.From.AddressID
		if (t.Kind == fabric.SAT || slices.Contains(t.AddressIDs, from)) && !slices.Contains(ids, from) {
			ids = append(ids, from)
		}
	}

	if len(ids) > 0 {
		var err error
		if ids, err = c.cfg.Store.ReachableAddresses(ctx, t.ProjectID, ids); err != nil {
			return err
		}
	}

	for i, m := range all {
		all[i].From.Gone = !slices.Contains(ids, m.From.AddressID)
	}
	return nil
}
