package chat

import (
	"time"

	"github.com/selvage/selvage/fabric"
)

// A Conversation is between two members, or in a room.
type Conversation struct {
	ID        string
	ProjectID string
	Key       string // unique in the project: the ids of both members, or of the room's address
	Room      bool
	Created   time.Time
	LastID    string // id of the newest message; "" if there is none
	LastAt    time.Time
}

// A Member is a party to a conversation.
type Member struct {
	ConversationID string
	ID             string // the subscriber's id; for a guest, see [MemberID]
	SubscriberID   string // "" for a guest
	AddressID      string // address at which others reach the member; for a guest, its ID
	Peer           string // the address at which the member reaches the conversation
	Joined         time.Time
}

// An Entry is a conversation in a member's list of conversations.
type Entry struct {
	Conversation
	Member
	Name string // name of the other party or the room; "" if it no longer exists
}

// MemberID returns the id of a token's holder among the members of conversations: the id of its
// subscriber, or an id of its own for a guest. A guest's id stays the same when the guest's token
// is refreshed.
func MemberID(t fabric.Token) string {
	switch t.Kind {
	case fabric.SAT:
		return t.SubscriberID
	case fabric.Guest:
		return t.FamilyID
	}
	return t.ID // the FamilyID of an invite is that of the subscriber's token
}

// SocketKeys returns the keys of a token's sockets; see [Notice]. The sockets of a guest receive the
// messages of the rooms that its token may reach.
func SocketKeys(t fabric.Token) []string {
	keys := []string{MemberID(t)}
	if t.Kind != fabric.SAT {
		keys = append(keys, t.AddressIDs...)
	}
	return keys
}

// keyOf returns the key of the conversation between two members.
func keyOf(a, b string) string { return min(a, b) + "+" + max(a, b) }

// An EntryDocument is a conversation as the API shows it to a member. The two generations of SDKs
// have different names for the same values.
type EntryDocument struct {
	ID            string   `json:"id"` // the address; SDKs send it back as conversation_id
	AddressID     string   `json:"address_id"`
	GroupID       string   `json:"group_id"`
	FromAddressID string   `json:"from_fabric_address_id"`
	Name          string   `json:"name"`
	CreatedAt     int64    `json:"created_at"`      // unix milliseconds
	LastMessageAt int64    `json:"last_message_at"` // unix milliseconds; 0 if there is no message
	Metadata      struct{} `json:"metadata"`
}

// Document returns the entry's EntryDocument.
func (e Entry) Document() EntryDocument {
	return EntryDocument{
		ID:            e.Peer,
		AddressID:     e.Peer,
		GroupID:       groupID(e.Member.ID, e.Peer),
		FromAddressID: e.Member.AddressID,
		Name:          e.Name,
		CreatedAt:     e.Conversation.Created.UnixMilli(),
		LastMessageAt: millis(e.LastAt),
	}
}

// millis returns a time in unix milliseconds, or 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// groupID returns the name of a conversation in version 4 of the SDK, which takes the address from
// the part after the underscore. It is different for each member.
func groupID(memberID, peer string) string { return memberID + "_" + peer }
