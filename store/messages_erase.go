package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/internal/page"
)

// eraseMessages deletes the messages that the subscriber sent, the webhook deliveries about the
// subscriber's messages, and the conversations in which nobody else is left. It removes the subscriber
// from messages that the subscriber received.
func (e *erasure) eraseMessages(ctx context.Context) error {
	const deleteDeliveries = `DELETE FROM webhook_deliveries WHERE subject IN (
		SELECT id FROM messages
		WHERE project_id = $1 AND (from_member = $2 OR to_member = $2 AND to_member <> ''))`
	const deleteConversations = `DELETE FROM conversations WHERE project_id = $1 AND room = 0
		AND id IN (SELECT conversation_id FROM conversation_members WHERE member_id = $2)
		AND NOT EXISTS (SELECT 1 FROM conversation_members o
			WHERE o.conversation_id = conversations.id AND o.member_id <> $2)`
	for _, query := range []string{deleteDeliveries, deleteConversations} {
		if err := e.tx.Later(ctx, query, e.projectID, e.id); err != nil {
			return fmt.Errorf("erasing messages: %w", err)
		}
	}

	res, err := e.tx.Exec(ctx, `DELETE FROM messages WHERE project_id = $1 AND from_member = $2`, e.projectID, e.id)
	sent, err := countChanged(res, err, "messages")
	if err != nil {
		return err
	}
	e.result.Deleted["messages"] = sent

	res, err = e.tx.Exec(ctx, `UPDATE messages SET to_member = ''
		WHERE project_id = $1 AND to_member = $2 AND to_member <> ''`, e.projectID, e.id)
	received, err := countChanged(res, err, "messages")
	if err != nil {
		return err
	}
	if received > 0 {
		e.result.Anonymized["messages"] = received
	}
	return nil
}

// leaveConversations removes a subscriber from all conversations, because the subscriber is being
// deleted. The other members keep the messages.
func (t tx) leaveConversations(ctx context.Context, id string) error {
	for _, query := range []string{
		`UPDATE conversations SET pair = id WHERE room = 0
			AND id IN (SELECT conversation_id FROM conversation_members WHERE member_id = $1)`,
		`DELETE FROM conversation_members WHERE member_id = $1`,
	} {
		if err := t.Later(ctx, query, id); err != nil {
			return fmt.Errorf("leaving conversations: %w", err)
		}
	}
	return nil
}

// ExportMessages returns a page of the messages that a subscriber sent anywhere, or received from
// another person, newest first.
func (s *Messages) ExportMessages(
	ctx context.Context, projectID, id string, q page.Query,
) (page.Page[chat.Message], error) {
	l := messageTable.listing(q.From)
	l.desc = true
	l.where.and(`project_id || '' = $%d`, projectID)
	l.ways = l.where.messagesOf(id, nil)
	l.ways[0] = strings.TrimSuffix(l.ways[0], ` AND room = 0`)
	return l.page(ctx, s.read(), q)
}
