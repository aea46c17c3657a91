package rest

import (
	"net/http"
	"strings"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A messageRequest is a message to send. Version 3 of the SDK names the conversation in
// conversation_id. Version 4 names it in group_id.
type messageRequest struct {
	ConversationID string `json:"conversation_id"`
	GroupID        string `json:"group_id"`
	From           string `json:"from_fabric_address_id"`
	Text           string `json:"text"`
	Key            string `json:"key"`
}

func (in messageRequest) input() chat.Input {
	to := in.ConversationID
	if to == "" {
		to = in.GroupID
	}
	return chat.Input{To: to, From: in.From, Text: in.Text, Key: in.Key}
}

// A joinRequest names the conversation to join. Version 4 of the SDK sends the addresses of both
// sides.
type joinRequest struct {
	ConversationID string   `json:"conversation_id"`
	From           string   `json:"from_fabric_address_id"`
	Addresses      []string `json:"fabric_address_ids"`
}

// conversation returns the name of the conversation to join. If conversation_id is missing, this is the
// address of the other side.
func (in joinRequest) conversation() (name string, err error) {
	name = in.ConversationID
	if name != "" {
		return name, nil
	}

	for _, id := range in.Addresses {
		if strings.EqualFold(id, in.From) || id == name {
			continue
		}
		if name != "" {
			return "", problem.BadParam("fabric_address_ids", "a conversation has two addresses, or is in a room")
		}
		name = id
	}

	if name == "" {
		return "", problem.Missing("conversation_id")
	}
	return name, nil
}

// A sentMessage is a message with the additional member that version 3 of the SDK expects.
type sentMessage struct {
	chat.Document
	Table conversationTable `json:"table"`
}

type conversationTable struct {
	ConversationID string `json:"conversation_id"`
	Text           string `json:"text,omitempty"`
}

type joinedResponse struct {
	ConversationID string            `json:"conversation_id"`
	GroupID        string            `json:"group_id"`
	Table          conversationTable `json:"table"`
}

// chatAPI serves conversations to subscribers and guests.
type chatAPI struct{ chat *chat.Chat }

func (a chatAPI) routes(by *credentials) []route {
	const (
		conversations = "/api/fabric/conversations"
		messages      = "/api/fabric/messages"
	)
	bearer := func(h handler[fabric.Token]) web.Handler {
		return by.bearer(h, fabric.SAT, fabric.Guest, fabric.Invite)
	}
	return []route{
		{"GET", conversations, bearer(respondPage(a.list, chat.Entry.Document))},
		{"POST", conversations + "/join", bearer(a.join)},
		{"GET", conversations + "/{id}/messages", bearer(a.messages)},
		{"GET", messages, bearer(a.allMessages)},
		{"POST", messages, bearer(a.send)},
	}
}

// list serves GET /api/fabric/conversations, newest first.
func (a chatAPI) list(r *http.Request, t fabric.Token, q page.Query) (page.Page[chat.Entry], error) {
	return a.chat.List(r.Context(), t, q)
}

// join serves POST /api/fabric/conversations/join.
func (a chatAPI) join(w http.ResponseWriter, r *http.Request, t fabric.Token) error {
	in, err := web.Decode[joinRequest](r)
	if err != nil {
		return err
	}

	name, err := in.conversation()
	if err != nil {
		return err
	}

	joined, err := a.chat.Join(r.Context(), t, in.From, name)
	if err != nil {
		return err
	}

	return web.JSON(w, http.StatusOK,
		joinedResponse{
			ConversationID: joined.AddressID,
			GroupID:        joined.GroupID,
			Table:          conversationTable{ConversationID: joined.AddressID},
		})
}

// messages serves GET /api/fabric/conversations/{id}/messages, newest first.
func (a chatAPI) messages(w http.ResponseWriter, r *http.Request, t fabric.Token) error {
	find := func(q page.Query) (page.Page[chat.Message], error) {
		return a.chat.Messages(r.Context(), t, r.PathValue("id"), q)
	}
	return paged(w, r, find, messageFor(t))
}

// allMessages serves GET /api/fabric/messages, newest first.
func (a chatAPI) allMessages(w http.ResponseWriter, r *http.Request, t fabric.Token) error {
	find := func(q page.Query) (page.Page[chat.Message], error) { return a.chat.AllMessages(r.Context(), t, q) }
	return paged(w, r, find, messageFor(t))
}

// messageFor returns a function that formats messages for a token's holder.
func messageFor(t fabric.Token) func(chat.Message) chat.Document {
	return func(m chat.Message) chat.Document { return m.Document(chat.MemberID(t)) }
}

// send serves POST /api/fabric/messages.
func (a chatAPI) send(w http.ResponseWriter, r *http.Request, t fabric.Token) error {
	in, err := web.Decode[messageRequest](r)
	if err != nil {
		return joinFaults(err, in.input().Check())
	}
	m, err := a.chat.Send(r.Context(), t, in.input())
	if err != nil {
		return err
	}
	d := m.Document(chat.MemberID(t))
	return web.JSON(w, http.StatusCreated, sentMessage{d, conversationTable{d.ConversationID, d.Text}})
}
