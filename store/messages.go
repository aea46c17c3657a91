package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
)

// Messages holds conversations, their members and their messages.
type Messages struct{ *core }

var _ chat.Store = (*Messages)(nil)

// maxRooms is the maximum number of rooms that a subscriber may be a member of. maxRoomMembers is
// the maximum number of members of a room.
const (
	maxRooms       = 100
	maxRoomMembers = 1000
)

// messaging returns the event for the changes in this file. Messages are not audited.
func messaging() audit.Event { return audit.None("messages between subscribers") }

var conversationTable = table[chat.Conversation]{
	name:    "conversations",
	thing:   "conversation",
	columns: `id, project_id, pair, room, created, last_id, last_at`,
	fields: func(k *chat.Conversation) []any {
		return []any{&k.ID, &k.ProjectID, &k.Key, &k.Room, &k.Created, &k.LastID, &k.LastAt}
	},
}

var conversationMemberTable = table[chat.Member]{
	name:    "conversation_members",
	thing:   "member",
	columns: `conversation_id, member_id, subscriber_id, address_id, peer, joined`,
	fields: func(m *chat.Member) []any {
		return []any{&m.ConversationID, &m.ID, nullableOf(&m.SubscriberID), &m.AddressID, &m.Peer, &m.Joined}
	},
}

var messageTable = table[chat.Message]{
	name:  "messages",
	thing: "message",
	columns: `id, project_id, conversation_id, room, from_member, from_address, from_name,
		to_member, to_address, text, send_key, created`,
	fields: func(m *chat.Message) []any {
		return []any{&m.ID, &m.ProjectID, &m.ConversationID, &m.Room, &m.From.MemberID, &m.From.AddressID, &m.From.Name,
			&m.To.MemberID, &m.To.AddressID, &m.Text, &m.Key, &m.Created}
	},
}

// A messageTx writes conversations and messages within a change.
type messageTx struct{ tx }

func (t tx) messages() messageTx { return messageTx{t} }

// openConversation returns the conversation with the key of k. If there is none, it inserts k. It locks
// the conversation until the transaction ends, so that its messages are inserted one after another.
//
// k must always have a new id, even if the conversation exists. When PostgreSQL looks for a
// conflict, it can overlook a row that another transaction is updating. It then finds the conflict
// only while it inserts. If the key conflicts, it tries again; if the id conflicts, it fails.
func (t messageTx) openConversation(ctx context.Context, k chat.Conversation, at time.Time) (chat.Conversation, error) {
	k.Created = at
	query, args, err := conversationTable.insertion(&k)
	if err != nil {
		return k, err
	}
	return conversationTable.scan(t.Row(ctx, query+` ON CONFLICT (project_id, pair) DO UPDATE
		SET room = excluded.room RETURNING `+conversationTable.columns, args...))
}

// AddMessage inserts a message at the end of its conversation, and queues its events.
func (s *Messages) AddMessage(
	ctx context.Context, k chat.Conversation, m chat.Message, offline bool,
) (chat.Message, error) {
	return resultOf(ctx, s.change, messaging(), func(t tx) (chat.Message, error) {
		next := m // a copy, since this function may run again
		open, err := t.messages().openConversation(ctx, k, m.Created)
		if err != nil {
			return next, err
		}
		next.ConversationID = open.ID
		if m.Key != "" {
			sent, err := messageTable.find(ctx, t, `conversation_id = $1 AND from_member = $2 AND send_key = $3
				AND send_key <> ''`, open.ID, m.From.MemberID, m.Key)
			if !errors.Is(err, problem.NotFound) {
				return sent, err
			}
		}

		if err := t.messages().addMembers(ctx, next); err != nil {
			return next, err
		}
		next.Place(open)
		if err := t.messages().insertMessage(ctx, next, offline); err != nil {
			return next, err
		}
		err = t.Later(ctx, `UPDATE conversations SET last_id = $2, last_at = $3 WHERE id = $1`, open.ID, next.ID,
			micros(next.Created))
		return next, err
	})
}

// insertMessage inserts a message and queues its events.
func (t messageTx) insertMessage(ctx context.Context, m chat.Message, offline bool) error {
	query, args, err := messageTable.insertion(&m)
	if err != nil {
		return err
	}

	var webhooks int
	err = t.Row(ctx, query+` RETURNING `+webhooksOf("messages"), args...).Scan(&webhooks)
	if err := insertedReturning(err, "message", nil); err != nil {
		return err
	}

	names := []fabric.EventName{fabric.MessageCreated}
	if offline {
		names = append(names, fabric.MessageUndelivered)
	}

	for _, name := range names {
		event := func(m chat.Message) (fabric.Event, error) { return m.Event(name) }
		if err := queueEventOf(ctx, t.tx, webhooks, m, event); err != nil {
			return err
		}
	}
	return nil
}

// addMembers makes the sender and the recipient of a message members of its conversation.
func (t messageTx) addMembers(ctx context.Context, m chat.Message) error {
	sender := chat.Member{
		ConversationID: m.ConversationID,
		ID:             m.From.MemberID,
		SubscriberID:   m.From.SubscriberID,
		AddressID:      m.From.AddressID,
		Peer:           m.To.AddressID,
		Joined:         m.Created,
	}
	if m.Room {
		if sender.SubscriberID == "" {
			return nil // the guest's token makes the guest a member
		}
		return t.joinRoom(ctx, sender)
	}

	receiver := chat.Member{
		ConversationID: m.ConversationID,
		ID:             m.To.MemberID,
		SubscriberID:   m.To.SubscriberID,
		AddressID:      m.To.AddressID,
		Peer:           m.From.AddressID,
		Joined:         m.Created,
	}
	for _, member := range []chat.Member{sender, receiver} {
		if _, err := t.addMember(ctx, member); err != nil {
			return err
		}
	}
	return nil
}

// addMember inserts a member and reports whether it is new. It leaves an existing member unchanged.
func (t messageTx) addMember(ctx context.Context, m chat.Member) (added bool, err error) {
	query, args, err := conversationMemberTable.insertion(&m)
	if err != nil {
		return false, err
	}
	res, err := t.Exec(ctx, query+` ON CONFLICT (conversation_id, member_id) DO NOTHING`, args...)
	if isForeignKey(err) {
		return false, problem.NoSuch("subscriber")
	}
	n, err := countChanged(res, err, "members")
	return n > 0, err
}

// joinRoom inserts a member of a room. If the room has too many members, or the subscriber is in
// too many rooms, the error is problem.Invalid. The caller must have locked the conversation.
func (t messageTx) joinRoom(ctx context.Context, m chat.Member) error {
	added, err := t.addMember(ctx, m)
	if err != nil {
		return err
	}
	if !added {
		return nil
	}

	var members, rooms int
	err = t.Row(ctx, `SELECT (SELECT count(*) FROM conversation_members WHERE conversation_id = $1),
		(SELECT count(*) FROM conversation_members m JOIN conversations c ON c.id = m.conversation_id
			WHERE m.member_id = $2 AND c.room = 1)`, m.ConversationID, m.ID).Scan(&members, &rooms)
	switch {
	case err != nil:
		return fmt.Errorf("counting members: %w", err)
	case members > maxRoomMembers:
		return problem.BadParam("conversation_id", "the room has %d members (maximum)", maxRoomMembers)
	case rooms > maxRooms:
		return problem.BadParam("conversation_id", "you are a member of %d rooms (maximum)", maxRooms)
	}
	return nil
}

// JoinRoom makes a subscriber a member of a room's conversation.
func (s *Messages) JoinRoom(ctx context.Context, k chat.Conversation, m chat.Member) error {
	return s.change(ctx, messaging(), func(t tx) error {
		open, err := t.messages().openConversation(ctx, k, m.Joined)
		if err != nil {
			return err
		}
		joining := m
		joining.ConversationID = open.ID
		return t.messages().joinRoom(ctx, joining)
	})
}

// FindConversation finds a conversation by its key.
func (s *Messages) FindConversation(ctx context.Context, projectID, key string) (chat.Conversation, error) {
	return conversationTable.find(ctx, s.read(), `project_id = $1 AND pair = $2`, projectID, key)
}

// FindConversationOf finds a member's conversation by the address at which the member reaches it.
func (s *Messages) FindConversationOf(
	ctx context.Context, projectID, memberID, peer string,
) (chat.Conversation, error) {
	return conversationTable.find(ctx, s.read(), `project_id = $1 AND id IN (
		SELECT conversation_id FROM conversation_members WHERE member_id = $2 AND peer = $3)
		ORDER BY id DESC LIMIT 1`, projectID, memberID, peer)
}

// ListConversations returns a page of a member's conversations, newest first.
func (s *Messages) ListConversations(
	ctx context.Context, projectID, memberID string, q page.Query,
) (page.Page[chat.Entry], error) {
	conversations := selection{
		thing: "conversations",
		columns: qualified("c", conversationTable.columns) + `, ` +
			qualified("m", conversationMemberTable.columns) + `, COALESCE(a.display_name, '')`,
		from: `conversation_members m JOIN conversations c ON c.id = m.conversation_id
			LEFT JOIN addresses a ON a.id = m.peer`,
		key:   []string{"m.conversation_id"},
		start: startAt(q.From),
		desc:  true,
	}
	l := listing[chat.Entry]{
		selection: conversations,
		scan:      scanEntry,
		id:        func(e chat.Entry) string { return e.Conversation.ID },
	}
	l.where.and(`m.member_id = $%d`, memberID)
	l.where.and(`c.project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

func scanEntry(row scanner) (e chat.Entry, err error) {
	more := conversationMemberTable.fields(&e.Member)
	for i, f := range more {
		more[i] = scanTarget(f)
	}
	e.Conversation, err = conversationTable.scanWith(row, append(more, &e.Name)...)
	return e, err
}

// ListMembers returns the ids of a conversation's members.
func (s *Messages) ListMembers(ctx context.Context, conversationID string) ([]string, error) {
	return gather(ctx, s.read(), "listing members", scanID,
		`SELECT member_id FROM conversation_members WHERE conversation_id = $1`, conversationID)
}

// IsMember reports whether a conversation has the member.
func (s *Messages) IsMember(ctx context.Context, conversationID, memberID string) (bool, error) {
	var id string
	return s.read().findRow(ctx, "member", `SELECT member_id FROM conversation_members
		WHERE conversation_id = $1 AND member_id = $2`, []any{conversationID, memberID}, &id)
}

// ListMessages returns a page of a conversation's messages, newest first.
func (s *Messages) ListMessages(
	ctx context.Context, f chat.Filter, q page.Query,
) (page.Page[chat.Message], error) {
	l := messageTable.listing(q.From)
	l.desc = true
	if !f.Since.IsZero() {
		l.within.low = uuid7.First(f.Since)
		l.start = l.within.startAt(q.From)
	}
	l.where.and(`conversation_id = $%d`, f.ConversationID)
	return l.page(ctx, s.read(), q)
}

// ListMessagesOf returns a page of the messages in all conversations of a member, newest first.
func (s *Messages) ListMessagesOf(
	ctx context.Context, projectID, memberID string, q page.Query,
) (p page.Page[chat.Message], err error) {
	rooms, err := gather(ctx, s.read(), "listing rooms", scanID, `SELECT m.conversation_id FROM conversation_members m
		JOIN conversations c ON c.id = m.conversation_id
		WHERE m.member_id = $1 AND c.project_id = $2 AND c.room = 1 LIMIT $3`, memberID, projectID, maxRooms)
	if err != nil {
		return p, err
	}
	l := messageTable.listing(q.From)
	l.desc = true
	l.where.and(`project_id || '' = $%d`, projectID) // an expression, so that no index on project_id is used
	l.ways = l.where.messagesOf(memberID, rooms)
	return l.page(ctx, s.read(), q)
}

// messagesOf returns alternative conditions for the messages of a member: messages that it sent to
// another member, messages that it received, and messages in each of its rooms. No message meets
// two of these conditions.
func (w *where) messagesOf(memberID string, rooms []string) []string {
	w.args = append(w.args, memberID)
	arg := fmt.Sprintf("$%d", len(w.args))
	ways := []string{
		`from_member = ` + arg + ` AND room = 0`,
		`to_member = ` + arg + ` AND to_member <> ''`, // must contain the condition of the index
	}
	for _, id := range rooms {
		w.args = append(w.args, id)
		ways = append(ways, fmt.Sprintf("conversation_id = $%d", len(w.args)))
	}
	return ways
}

// MessagesBetween returns the messages of a conversation whose ids are greater than after and less
// than before, oldest first. It returns at most limit messages.
func (s *Messages) MessagesBetween(
	ctx context.Context, conversationID, after, before string, limit int,
) ([]chat.Message, error) {
	return messageTable.gather(ctx, s.read(), `WHERE conversation_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4`,
		conversationID, after, before, limit)
}

// ReachableAddresses returns those of the given ids that belong to reachable addresses of a
// project.
func (s *Messages) ReachableAddresses(ctx context.Context, projectID string, ids []string) ([]string, error) {
	w := where{conditions: []string{reachable}}
	w.in(`id`, ids)
	w.and(`project_id = $%d`, projectID)
	return gather(ctx, s.read(), "finding addresses", scanID, `SELECT id FROM addresses WHERE `+w.String(), w.args...)
}

// PruneMessages deletes the messages that were sent before the given time, in short transactions.
// It also deletes conversations between two members in which nobody has written since then.
func (s *Messages) PruneMessages(ctx context.Context, before time.Time) error {
	err := s.sweep(ctx, `DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE id < $2 ORDER BY id LIMIT $1)`,
		uuid7.First(before))
	if err != nil {
		return err
	}
	// On PostgreSQL, only the condition outside of the subquery is checked again if this change has
	// waited for a change that adds a message.
	return s.sweep(ctx, `DELETE FROM conversations WHERE id IN (
		SELECT id FROM conversations WHERE room = 0 AND last_at < $2 ORDER BY last_at LIMIT $1)
		AND last_at < $2`, micros(before))
}
