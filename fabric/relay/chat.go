package relay

import (
	"github.com/google/uuid"

	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
)

var _ chat.Sockets = (*Relay)(nil)

// readers maps each key to the authenticated sockets that receive the messages for this key; see
// [chat.SocketKeys]. Relay.mu guards it.
type readers map[string]map[*socket]struct{}

// add registers a socket that was authenticated with the token t.
func (all readers) add(s *socket, t fabric.Token) {
	for _, key := range chat.SocketKeys(t) {
		if all[key] == nil {
			all[key] = make(map[*socket]struct{})
		}
		all[key][s] = struct{}{}
	}
}

// remove undoes add.
func (all readers) remove(s *socket, t fabric.Token) {
	for _, key := range chat.SocketKeys(t) {
		if delete(all[key], s); len(all[key]) == 0 {
			delete(all, key)
		}
	}
}

// setReader replaces the token under which a socket receives messages.
func (r *Relay) setReader(s *socket, old, token fabric.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers.remove(s, old)
	r.readers.add(s, token)
}

// readersOf returns the set of sockets that are registered under any of the keys.
func (r *Relay) readersOf(keys []string) map[*socket]struct{} {
	found := make(map[*socket]struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		for s := range r.readers[key] {
			found[s] = struct{}{}
		}
	}
	return found
}

// Deliver implements [chat.Sockets]. A socket whose token was revoked gets nothing, even if it is
// still open.
func (r *Relay) Deliver(n chat.Notice) {
	for s := range r.readersOf(n.Keys) {
		token, ok := s.authenticated()
		if !ok || r.fabric.Tokens.Revoked(token) != nil {
			continue
		}
		m := n.Message
		s.tell(request(uuid.NewString(), "signalwire.event", eventParams{
			Type:      "conversation.message",
			Timestamp: float64(m.Created.UnixMilli()) / 1000,
			ProjectID: m.ProjectID,
			NodeID:    r.node,
			Params:    m.Document(chat.MemberID(token)),
		}))
	}
}
