package chat

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
)

// The limits of a message.
const (
	MaxText = 4000 // characters of the text
	maxKey  = 64   // characters of the key
)

// A Message is one message of a conversation.
type Message struct {
	ID             string // the ids of a conversation sort in the order of its messages
	ProjectID      string
	ConversationID string
	Room           bool
	From           Party
	To             Party // the other party; in a room, only the room's address
	Text           string
	Key            string // chosen by the sender to repeat a request safely; may be ""
	Created        time.Time

	Previous string // the id of the message before it, or ""; set only by AddMessage
}

// A Party is the sender or the receiver of a message.
type Party struct {
	MemberID     string
	SubscriberID string `json:",omitempty"` // "" for a guest; not stored
	AddressID    string
	Name         string `json:",omitempty"` // stored only for the sender
	Gone         bool   `json:"-"`          // the reader cannot find the address; set only by lists
}

// A Document is a message as the API and events show it to a member. Some values have several
// names, because SDKs differ in the names that they read.
type Document struct {
	ID                  string   `json:"id"`
	Type                string   `json:"type"`
	Subtype             string   `json:"subtype"`
	Kind                string   `json:"kind"`
	Hidden              bool     `json:"hidden"`
	ConversationID      string   `json:"conversation_id"` // the address at which the member reaches the conversation
	AddressID           string   `json:"address_id"`
	GroupID             string   `json:"group_id"`
	ConversationName    string   `json:"conversation_name"`
	UserID              string   `json:"user_id"`
	UserName            string   `json:"user_name"`
	FromAddressID       string   `json:"from_address_id"` // "" for a guest, or if the member cannot find the address
	FromFabricAddressID string   `json:"from_fabric_address_id"`
	Text                string   `json:"text"`
	Time                int64    `json:"ts"` // unix milliseconds
	Key                 string   `json:"key,omitempty"`
	Metadata            struct{} `json:"metadata"`
	Details             struct{} `json:"details"`
}

// Document returns the message's Document for a member. Only the sender sees the key.
func (m Message) Document(memberID string) Document {
	peer := m.Peer(memberID)
	d := Document{
		ID:                  m.ID,
		Type:                "message",
		Subtype:             "chat",
		Kind:                "chat",
		ConversationID:      peer,
		AddressID:           peer,
		GroupID:             groupID(memberID, peer),
		UserID:              m.From.MemberID,
		UserName:            m.From.Name,
		FromFabricAddressID: m.From.AddressID,
		Text:                m.Text,
		Time:                m.Created.UnixMilli(),
	}
	if m.From.AddressID != m.From.MemberID && !m.From.Gone {
		d.FromAddressID = m.From.AddressID
	}
	if memberID == m.From.MemberID {
		d.Key = m.Key
	} else if !m.Room {
		d.ConversationName = m.From.Name
	}
	return d
}

// Peer returns the address at which a member reaches the message's conversation.
func (m Message) Peer(memberID string) string {
	if m.Room || memberID == m.From.MemberID {
		return m.To.AddressID
	}
	return m.From.AddressID
}

// A Summary is a message as webhooks show it. It leaves out the text, because deliveries are stored
// and shown to operators.
type Summary struct {
	ID               string `json:"id"`
	Room             bool   `json:"room"`
	FromAddressID    string `json:"from_address_id"`
	FromSubscriberID string `json:"from_subscriber_id,omitempty"` // missing for guests
	FromName         string `json:"from_name"`
	ToAddressID      string `json:"to_address_id"`
	ToSubscriberID   string `json:"to_subscriber_id,omitempty"` // missing for rooms and guests
	CreatedAt        string `json:"created_at"`
}

// Summary returns the message's Summary.
func (m Message) Summary() Summary {
	return Summary{
		ID:               m.ID,
		Room:             m.Room,
		FromAddressID:    m.From.AddressID,
		FromSubscriberID: m.From.SubscriberID,
		FromName:         m.From.Name,
		ToAddressID:      m.To.AddressID,
		ToSubscriberID:   m.To.SubscriberID,
		CreatedAt:        m.Created.UTC().Format(time.RFC3339),
	}
}

// Event returns the event of the given name that reports the message to webhooks.
func (m Message) Event(name fabric.EventName) (fabric.Event, error) {
	return fabric.NewEvent(name, m.ProjectID, m.ID, m.Created, m.Summary())
}

// Place sets the id and the time of a message, which becomes the last message of its conversation.
// If this node's clock is behind, the new id is the successor of the last one.
func (m *Message) Place(last Conversation) {
	m.Previous = last.LastID
	if m.Created.Before(last.LastAt) {
		m.Created = last.LastAt
	}
	m.ID = uuid7.At(m.Created)
	if m.ID <= last.LastID {
		m.ID = successor(last.LastID)
	}
}

// successor returns the id after the given one.
func successor(id string) string {
	u, err := uuid.Parse(id)
	if err != nil {
		return newID()
	}
	// The second half of the id begins with the two bits of the variant (RFC 9562, section 4.1).
	// Its other bits are random. In practice, they are never all 1, so the sum does not overflow.
	tail := u[8:]
	binary.BigEndian.PutUint64(tail, binary.BigEndian.Uint64(tail)+1)
	return u.String()
}

// checkText returns an error for a text that is blank, too long or cannot be shown.
func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return problem.Missing("text")
	case !utf8.ValidString(text):
		return problem.BadParam("text", "text is not valid UTF-8")
	case len(text) > MaxText && utf8.RuneCountInString(text) > MaxText:
		return problem.BadParam("text", "text is too long (maximum is %d characters)", MaxText)
	case strings.ContainsFunc(text, isForbidden):
		return problem.BadParam("text", "text must not contain control characters other than tabs and line ends")
	}
	return nil
}

func isForbidden(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
}

// checkKey returns an error for a key that cannot be stored.
func checkKey(key string) error {
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return problem.BadParam("key", "key must have at most %d visible ASCII characters", maxKey)
	}
	return nil
}
