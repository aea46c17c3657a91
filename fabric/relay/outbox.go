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

// An outbox queues the messages that a socket has to send. Its goroutine runs only while the outbox
// is sending or leaving.
type outbox struct {
	conn *websocket.Conn

	mu      sync.Mutex
	state   outboxState
	waiting [][]byte // the queued messages
	bytes   int      // the size of the queued messages
	last    farewell // how to close the socket after the queue is empty; set while leaving
}

// An outboxState says what an outbox is doing. Only an idle outbox can start to send. A closed outbox
// stays closed.
type outboxState int

const (
	outboxIdle    outboxState = iota // the queue is empty
	outboxSending                    // sends the queue, then becomes idle
	outboxLeaving                    // sends the queue, then closes the socket; drops new messages
	outboxClosed                     // sends nothing and drops new messages
)

// send appends a message to the queue. If the queue is full because the client does not read, send
// closes the socket.
func (o *outbox) send(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == outboxLeaving || o.state == outboxClosed {
		return
	}
	if len(o.waiting) >= maxWaiting || o.bytes+len(text) > maxWaitingBytes {
		o.drop()
		go func() { _ = o.conn.CloseNow() }() // sending a close frame would also wait until the client reads
		return
	}

	o.waiting = append(o.waiting, text)
	o.bytes += len(text)
	if o.state == outboxIdle {
		o.state = outboxSending
		go o.run()
	}
}

// close closes the socket after the queue is empty. Later messages are dropped.
func (o *outbox) close(f farewell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == outboxLeaving || o.state == outboxClosed {
		return
	}

	running := o.state == outboxSending
	o.state = outboxLeaving
	o.last = f
	if !running {
		go o.run()
	}
}

// run sends messages until the queue is empty or the socket is closed.
func (o *outbox) run() {
	for {
		text, last := o.next()
		if last != nil {
			_ = o.conn.Close(last.code, last.reason) // waits up to 5 s for the client's close frame
			return
		}
		if text == nil {
			return
		}

		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := o.conn.Write(ctx, websocket.MessageText, text)
		cancel()
		if err != nil {
			o.abort()
			return
		}
	}
}

// next removes and returns the first message. If the queue is empty, next changes the state for the
// end of the goroutine: a leaving outbox becomes closed, and next returns its farewell. A sending
// outbox becomes idle, and next returns nil.
func (o *outbox) next() (text []byte, last *farewell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) > 0 {
		text, o.waiting = o.waiting[0], o.waiting[1:]
		o.bytes -= len(text)
		return text, nil
	}

	o.waiting = nil // frees the memory of the queue
	switch o.state {
	case outboxSending:
		o.state = outboxIdle
	case outboxLeaving:
		o.state = outboxClosed
		return nil, &o.last
	}
	return nil, nil
}

// abort closes the socket without a farewell, which also ends the goroutine that reads from it.
func (o *outbox) abort() {
	o.mu.Lock()
	o.drop()
	o.mu.Unlock()
	_ = o.conn.CloseNow()
}

// drop closes the outbox and empties the queue. o.mu must be locked.
func (o *outbox) drop() {
	o.state = outboxClosed
	o.waiting = nil
	o.bytes = 0
}
