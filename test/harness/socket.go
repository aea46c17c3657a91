package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// A Socket is a WebSocket like that of a browser SDK. It answers the server's requests while it
// reads.
type Socket struct {
	conn      *websocket.Conn
	next      int
	requested []string // methods of the server's requests
	said      []Said   // messages of conversations
}

// A Said is a message of a conversation, as the server sends it over a socket.
type Said struct {
	ID             string `json:"id"`
	Text           string `json:"text"`
	ConversationID string `json:"conversation_id"`
	UserID         string `json:"user_id"`
}

// A Reply is the response to a request over a socket.
type Reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Codes of errors in replies. JSON-RPC defines CodeInvalidParams.
const (
	CodeInvalidParams        = -32602
	CodeValidationFailed     = -32003 // for a request that only another subscriber may send
	CodeAuthenticationFailed = -32002
	CodeRefused              = -32000
)

// Code returns the code of the error, or 0 if the request succeeded.
func (r Reply) Code() int {
	if r.Error == nil {
		return 0
	}
	return r.Error.Code
}

// Codes with which the server closes sockets (RFC 6455, section 7.4.2): 4000 plus an HTTP status.
const (
	ClosedUnauthorized = 4401 // the token expired or was revoked
	ClosedTimeout      = 4408 // the client did not authenticate, or did not answer, in time
)

// Dial opens a socket and returns the status of the HTTP response. If the server refuses the
// socket, Dial returns nil for it.
func (s *Server) Dial(t T) (*Socket, int) {
	t.Helper()
	socket, status, err := s.TryDial()
	if err != nil {
		t.Fatalf("opening a socket: %v", err)
	}
	if socket != nil {
		t.Cleanup(func() { _ = socket.conn.CloseNow() })
	}
	return socket, status
}

// TryDial opens a socket like Dial, but returns an error if the server does not answer.
func (s *Server) TryDial() (*Socket, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.HTTP, "http")+"/", &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {"https://app.example"}},
	})

	switch {
	case err == nil:
		conn.SetReadLimit(1 << 20)
		return &Socket{conn: conn}, resp.StatusCode, nil
	case resp != nil:
		return nil, resp.StatusCode, nil
	}
	return nil, 0, err
}

// Connect opens a socket and authenticates it with a fabric token. protocol is the protocol of an
// earlier socket, or "". Connect returns the protocol of the new socket.
func (s *Server) Connect(t T, token, protocol string) (socket *Socket, newProtocol string) {
	t.Helper()
	socket, status := s.Dial(t)
	if socket == nil {
		t.Fatalf("opening a socket returned %d", status)
	}

	r := socket.Call(t, "signalwire.connect",
		map[string]any{"authentication": map[string]string{"jwt_token": token}, "protocol": protocol})

	var result struct{ Protocol string }
	if r.Error != nil || json.Unmarshal(r.Result, &result) != nil {
		t.Fatalf("signalwire.connect returned %+v %s", r.Error, r.Result)
	}
	return socket, result.Protocol
}

// Call sends a request and returns the reply.
func (s *Socket) Call(t T, method string, params any) Reply {
	t.Helper()
	r, err := s.TryCall(method, params)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

// TryCall is like Call, but returns an error if the socket is closed.
func (s *Socket) TryCall(method string, params any) (r Reply, err error) {
	s.next++
	id := fmt.Sprint(s.next)
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return r, err
	}

	if err := s.Send(string(text)); err != nil {
		return r, err
	}

	for {
		answered, text, err := s.read()
		if err != nil || answered == id {
			return r, errors.Join(err, json.Unmarshal(text, &r))
		}
	}
}

// Send sends a text message, which need not be a request.
func (s *Socket) Send(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, []byte(text))
}

// read reads one message. If it is a request from the server, read answers it. Otherwise read
// returns the ID of the request that the message answers.
func (s *Socket) read() (answered string, text []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, text, err = s.conn.Read(ctx)
	if err != nil {
		return "", []byte("{}"), err
	}

	var m struct {
		ID, Method string
		Params     struct {
			Type   string          `json:"event_type"`
			Params json.RawMessage `json:"params"`
		}
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Method == "" {
		return m.ID, text, nil // the ID is empty in an error about a message without an ID
	}

	s.requested = append(s.requested, m.Method)
	if m.Params.Type == "conversation.message" {
		var said Said
		if err := json.Unmarshal(m.Params.Params, &said); err != nil {
			return "", nil, err
		}
		s.said = append(s.said, said)
	}
	return "", nil, s.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{}}`, m.ID))
}

// Closed reads until the server has closed the socket. It returns the close code, or -1 if
// the connection was lost.
func (s *Socket) Closed() int {
	for {
		if _, _, err := s.read(); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}

// Said reads until the server has sent n conversation messages. It returns all messages so far.
func (s *Socket) Said(t T, n int) []Said {
	t.Helper()
	for len(s.said) < n {
		if _, _, err := s.read(); err != nil {
			t.Fatalf("after %d of %d messages: %v", len(s.said), n, err)
		}
	}
	return s.said
}

// WasTold reports whether the server has sent a request with that method.
func (s *Socket) WasTold(method string) bool { return slices.Contains(s.requested, method) }

// Abandon drops the connection without a close handshake.
func (s *Socket) Abandon() { _ = s.conn.CloseNow() }
