// Package phone is a telephone for tests. It uses the relay's protocol in the same way as the
// browser SDK. Instead of audio, it sends and receives text in RTP packets, with pion.
package phone

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/test/harness"
)

// patience limits how long a phone waits for anything.
const patience = time.Minute

// A Phone is a client with one WebSocket. Its methods are safe for concurrent use, except those that
// configure later calls, such as Silent and Light.
type Phone struct {
	Protocol string     // the protocol to pass to a later phone that takes over from this one
	Rings    chan *Call // calls to the phone
	t        harness.T
	conn     *websocket.Conn
	silent   bool
	hear     func(payload []byte) // receives each payload on a light phone; otherwise nil
	codec    webrtc.RTPCodecParameters

	mu      sync.Mutex
	replies map[string]chan reply
	calls   map[string]*Call
	closed  chan struct{} // closed when the socket is closed
}

type reply struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// Connect connects a phone to one server with a token. protocol is the protocol of an earlier
// phone, or "".
func Connect(t harness.T, s *harness.Server, token, protocol string) *Phone {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.HTTP, "http")+"/", &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {"https://app.example"}},
	})
	if err != nil {
		t.Fatalf("opening a socket: %v", err)
	}

	conn.SetReadLimit(1 << 20)
	p := &Phone{
		Rings:   make(chan *Call, 16),
		t:       t,
		conn:    conn,
		codec:   opus,
		replies: make(map[string]chan reply),
		calls:   make(map[string]*Call),
		closed:  make(chan struct{}),
	}
	t.Cleanup(p.Drop)
	go p.read()

	var connection struct{ Protocol string }
	p.request("signalwire.connect", map[string]any{
		"authentication": map[string]string{"jwt_token": token},
		"protocol":       protocol,
	}, &connection)
	p.Protocol = connection.Protocol
	return p
}

// Online makes the phone's subscriber reachable for calls.
func (p *Phone) Online() *Phone {
	p.t.Helper()
	p.request("subscriber.online", map[string]any{}, nil)
	return p
}

// Offline makes the phone's subscriber unreachable again.
func (p *Phone) Offline() {
	p.t.Helper()
	p.request("subscriber.offline", map[string]any{}, nil)
}

// Silent makes the phone describe audio in later calls, but never send any. Such calls are cheap.
func (p *Phone) Silent() *Phone {
	p.silent = true
	return p
}

// G711 makes the phone's later calls use G.711 instead of Opus, so that any payload can be decoded
// for a recording.
func (p *Phone) G711() *Phone {
	p.codec = g711
	return p
}

// G722 makes the later calls of a light phone use G.722, the better of the two codecs that rooms
// support.
func (p *Phone) G722() *Phone {
	p.codec = g722
	return p
}

// lightCodec returns the codec of a light phone, as session descriptions name it.
func (p *Phone) lightCodec() string {
	if p.codec.PayloadType == g722.PayloadType {
		return "G722/8000"
	}
	return "opus/48000/2"
}

// Light makes the phone's later calls carry audio at a fraction of the cost, so that one program
// can make many calls. hear is called with each payload that arrives.
func (p *Phone) Light(hear func(payload []byte)) *Phone {
	p.hear = hear
	return p
}

// Loud makes the phone send audio in later calls again, after Silent.
func (p *Phone) Loud() *Phone {
	p.silent = false
	return p
}

// Leave closes the socket like a client that does not reconnect.
func (p *Phone) Leave() { _ = p.conn.Close(websocket.StatusNormalClosure, "") }

// Drop closes the socket without a close handshake. Media continues.
func (p *Phone) Drop() { _ = p.conn.CloseNow() }

// WaitClosed waits until the server has closed the socket.
func (p *Phone) WaitClosed() {
	p.t.Helper()
	select {
	case <-p.closed:
	case <-time.After(patience):
		p.t.Fatalf("the server did not close the socket")
	}
}

// Take moves the calls of an earlier phone to this phone, like an SDK that reconnects.
func (p *Phone) Take(from *Phone) {
	from.mu.Lock()
	defer from.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range from.calls {
		c.phone = p
		p.calls[id] = c
	}
}

// request sends a request and decodes its result.
func (p *Phone) request(method string, params, result any) {
	p.t.Helper()
	if err := p.try(method, params, result); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

func (p *Phone) try(method string, params, result any) error {
	id, answer := uuid.NewString(), make(chan reply, 1)
	p.mu.Lock()
	p.replies[id] = answer
	p.mu.Unlock()
	if err := p.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return err
	}

	select {
	case r := <-answer:
		if r.Error != nil {
			return fmt.Errorf("error %d %s", r.Error.Code, r.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(r.Result, result)
	case <-time.After(patience):
		return fmt.Errorf("no answer within %v", patience)
	}
}

func (p *Phone) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.conn.Write(ctx, websocket.MessageText, text)
}

// A message is a message from the server.
type message struct {
	ID     string
	Method string
	Params struct {
		Type   string `json:"event_type"`
		NodeID string `json:"node_id"`
		Params struct {
			CallID string `json:"call_id"`    // the ID in an event about a call
			State  string `json:"call_state"` // the state in a call.state event
			Method string
			Params struct {
				CallID string `json:"callID"`
				SDP    string `json:"sdp"`
				Cause  string `json:"cause"`
			}
		}
	}
	reply
}

// read reads until the socket is closed.
func (p *Phone) read() {
	defer close(p.closed)
	for {
		_, text, err := p.conn.Read(context.Background())
		if err != nil {
			return
		}

		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			continue // an event in a format that the phone does not support
		}
		if m.Method == "" {
			p.mu.Lock()
			answer := p.replies[m.ID]
			delete(p.replies, m.ID)
			p.mu.Unlock()
			if answer != nil {
				answer <- m.reply
			}
			continue
		}

		switch m.Params.Type {
		case "webrtc.message":
			p.handle(m)
		case "call.state":
			p.handleState(m.Params.Params.CallID, m.Params.Params.State)
		}
		_ = p.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{}}) // the socket may be closed
	}
}

// handleState handles a change of a call's state.
func (p *Phone) handleState(call, state string) {
	p.mu.Lock()
	c := p.calls[call]
	p.mu.Unlock()
	if c != nil && state == "lost" {
		c.lostOnce.Do(func() { close(c.lost) })
	}
}

// handle handles a verto message.
func (p *Phone) handle(m message) {
	in := m.Params.Params
	p.mu.Lock()
	c := p.calls[in.Params.CallID]
	if c == nil && in.Method == "verto.invite" {
		c = newCall(p, in.Params.CallID)
		c.offer = in.Params.SDP
		p.calls[c.ID] = c
	}
	p.mu.Unlock()
	if c == nil {
		return
	}

	c.setNode(m.Params.NodeID)
	switch in.Method {
	case "verto.invite":
		p.Rings <- c
	case "verto.media":
		c.answers <- in.Params.SDP
	case "verto.answer":
		c.answerOnce.Do(func() { close(c.answered) })
	case "verto.bye":
		c.endOnce.Do(func() { c.ended <- in.Params.Cause })
	}
}
