package relay

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Limits of an outbox: how many messages and bytes it queues, and how long sending a message may
// take.
const (
	maxWaiting      = 64
	maxWaitingBytes = 256 << 10
	writeTimeout    = 10 * time.Second
)

// An outbox queues the messages that a socket has to send. Its goroutine runs only while the queue
// is not empty.
type outbox struct {
	mu      sync.Mutex
	waiting [][]byte
	bytes   int
	sending bool      // the goroutine runs, or has ended and must not start again
	last    *farewell // how to close the socket after the queue is empty; nil while it stays open
}

// send appends a message to the queue. If the queue is full because the client does not read, send
// closes the socket.
func (o *outbox) send(conn *websocket.Conn, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.last != nil:
		return
	case len(o.waiting) >= maxWaiting || o.bytes+len(text) > maxWaitingBytes:
		o.last = &farewell{code: websocket.StatusPolicyViolation}
		o.waiting = nil
		go func() { _ = conn.CloseNow() }() // sending a close frame would also wait until the client reads
		return
	}
	o.waiting = append(o.waiting, text)
	o.bytes += len(text)
	o.start(conn)
}

// close closes the socket after the queue is empty. Later messages are dropped.
func (o *outbox) close(conn *websocket.Conn, f farewell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = &f
		o.start(conn)
	}
}

// start starts the goroutine unless it is running. o.mu must be locked.
func (o *outbox) start(conn *websocket.Conn) {
	if !o.sending {
		o.sending = true
		go o.run(conn)
	}
}

// run sends messages until the queue is empty or the socket is closed.
func (o *outbox) run(conn *websocket.Conn) {
	for {
		text, last := o.next()
		if last != nil {
			_ = conn.Close(last.code, last.reason) // waits up to 5 s for the client's close frame
			return
		}
		if text == nil {
			return
		}

		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := conn.Write(ctx, websocket.MessageText, text)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // ends the reading goroutine
			return              // sending stays true, so nothing else is sent
		}
	}
}

// next removes and returns the first message. If the queue is empty, it returns the pending
// farewell, or nil.
func (o *outbox) next() (text []byte, last *farewell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.sending = o.last != nil // after a farewell, nothing else is sent
		o.waiting = nil
		return nil, o.last
	}
	text, o.waiting = o.waiting[0], o.waiting[1:]
	o.bytes -= len(text)
	return text, nil
}
