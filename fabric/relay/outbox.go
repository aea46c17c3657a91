package relay

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// What may wait for a client to read it, and how long one message may.
const (
	maxWaiting      = 64
	maxWaitingBytes = 256 << 10
	writeTimeout    = 10 * time.Second
)

// An outbox is what a socket has to send. A goroutine sends it, which there is
// only while something waits.
type outbox struct {
	mu      sync.Mutex
	waiting [][]byte
	bytes   int
	sending bool
	last    *farewell // to be said once nothing waits
}

// send puts a message behind those that wait. A client that has not read all
// those is given up.
func (o *outbox) send(conn *websocket.Conn, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.last != nil:
		return
	case len(o.waiting) >= maxWaiting || o.bytes+len(text) > maxWaitingBytes:
		o.last = &farewell{code: websocket.StatusPolicyViolation}
		o.waiting = nil
		go func() { _ = conn.CloseNow() }() // a farewell would wait, too
		return
	}
	o.waiting = append(o.waiting, text)
	o.bytes += len(text)
	o.start(conn)
}

// close closes the socket once nothing waits. Nothing is sent after it.
func (o *outbox) close(conn *websocket.Conn, f farewell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = &f
		o.start(conn)
	}
}

func (o *outbox) start(conn *websocket.Conn) {
	if !o.sending {
		o.sending = true
		go o.run(conn)
	}
}

func (o *outbox) run(conn *websocket.Conn) {
	for {
		text, last := o.next()
		if last != nil {
			_ = conn.Close(last.code, last.reason) // waits for the client's own, for five seconds
			return
		}
		if text == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := conn.Write(ctx, websocket.MessageText, text)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // which ends the reading
			return
		}
	}
}

// next takes the first message out; without one, the farewell that is due.
func (o *outbox) next() (text []byte, last *farewell) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.sending = o.last != nil
		o.waiting = nil
		return nil, o.last
	}
	text, o.waiting = o.waiting[0], o.waiting[1:]
	o.bytes -= len(text)
	return text, nil
}
