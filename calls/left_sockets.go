package calls

import (
	"sync"
	"time"
)

// leftFor is how long a socket is remembered after its client has left it. This is longer than a command
// may take, or a call that has found a socket needs until it rings there. It is not much longer, because a
// browser that duplicates a tab makes the new tab reconnect in place of the former one, which stays open.
const leftFor = 15 * time.Second

// maxLeft limits how many sockets are remembered. If there are more, between half of them and all are
// remembered, newest first.
const maxLeft = 20_000

// leftSockets remembers which sockets clients have left, because they have reconnected. Commands from such
// a socket may still arrive, and calls may still ring it. The zero value is ready to use. leftSockets is
// safe for concurrent use.
type leftSockets struct {
	mu            sync.Mutex
	began         time.Time // when newer became empty
	newer, former map[leftSocket]successor
}

// A leftSocket identifies a socket that a client has left. It contains the holder of the client's token,
// because clients name their former sockets themselves. They must not affect the sockets of others.
type leftSocket struct{ id, holder string }

// A successor is the next socket of a client, and when the client got it.
type successor struct {
	socket Socket
	since  time.Time
}

// add records that a client has left a socket. If the client had left it before, but has not left the socket
// that it got then, add returns the latter. The client does not know that socket, because the response with
// its name was lost.
func (s *leftSockets) add(from Socket, to Client) (unknown Socket, wasLeft bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unknown, wasLeft = s.next(from, to.holder())
	if wasLeft {
		_, isKnown := s.next(unknown, to.holder())
		wasLeft = !isKnown
	}
	now := time.Now()
	if s.newer == nil || now.Sub(s.began) >= leftFor || len(s.newer) >= maxLeft/2 {
		s.former = s.newer
		s.newer = make(map[leftSocket]successor)
		s.began = now
	}
	s.newer[leftSocket{from.ID, to.holder()}] = successor{to.Socket, now}
	return unknown, wasLeft
}

// use stores the socket of a command in a leg, unless the client has left the socket. If the client leaves
// the socket at the same time, Moved calls add before it searches for the legs at the socket. Therefore, it
// finds the leg, or use finds that the client has left the socket.
func (s *leftSockets) use(client Client, l *leg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wasLeft := s.next(client.Socket, client.holder()); !wasLeft {
		l.at.Store(client.Socket)
	}
}

// assign is like use, but if the client has left the socket, it stores the client's present socket. It
// returns the client with the socket that it has stored.
func (s *leftSockets) assign(client Client, l *leg) Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	client.Socket = s.present(client)
	l.at.Store(client.Socket)
	return client
}

// find returns the present socket of a client.
func (s *leftSockets) find(client Client) Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present(client)
}

// present implements find. s.mu must be held.
func (s *leftSockets) present(client Client) Socket {
	socket := client.Socket
	for {
		next, ok := s.next(socket, client.holder())
		if !ok {
			return socket
		}
		socket = next
	}
}

// next returns the socket for which a client has left another one. s.mu must be held.
func (s *leftSockets) next(left Socket, holder string) (next Socket, ok bool) {
	key := leftSocket{left.ID, holder}
	found, ok := s.newer[key]
	if !ok {
		found, ok = s.former[key]
	}
	if !ok || time.Since(found.since) >= leftFor {
		return Socket{}, false
	}
	return found.socket, true
}
