package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A client is the client's side of a socket. It answers requests unless deaf is set.
type client struct {
	t         *testing.T
	conn      *websocket.Conn
	deaf      bool
	next      int
	requested []frame // requests received from the server
}

// A frame is a message in either direction.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// dial opens a socket as a page of another site does.
func (n *node) dial() *client {
	n.t.Helper()
	c, status := n.tryDial()
	if c == nil {
		n.t.Fatalf("opening a socket returned %d", status)
	}
	return c
}

// tryDial is like dial, but returns nil and the status of the response if the socket is refused.
func (n *node) tryDial() (*client, int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), deadline)
	defer cancel()
	opts := &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://app.example"}}}
	conn, resp, err := websocket.Dial(ctx, n.url+"/", opts)
	if err != nil {
		if resp == nil {
			n.t.Fatal(err)
		}
		return nil, resp.StatusCode
	}
	conn.SetReadLimit(1 << 20)
	n.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: n.t, conn: conn}, resp.StatusCode
}

// connect opens a socket and authenticates.
func (n *node) connect(token string, more ...string) (*client, connected) {
	n.t.Helper()
	c := n.dial()
	return c, c.connect(token, more...)
}

// connected is the result of signalwire.connect and signalwire.reauthenticate.
type connected struct {
	Identity      string     `json:"identity"`
	Protocol      string     `json:"protocol"`
	Authorization authorized `json:"authorization"`
	ICEServers    []any      `json:"ice_servers"`
}

// authorized holds the claims of the token with which a socket is authenticated.
type authorized struct {
	JTI        string               `json:"jti"`
	ProjectID  string               `json:"project_id"`
	Subscriber authorizedSubscriber `json:"fabric_subscriber"`
}

type authorizedSubscriber struct {
	Version       int    `json:"version"`
	SubscriberID  string `json:"subscriber_id"`
	ApplicationID string `json:"application_id"`
	ProjectID     string `json:"project_id"`
	SpaceID       string `json:"space_id"`
	ExpiresAt     int64  `json:"expires_at"`
}

// authentication returns the parameters of signalwire.connect without the closing brace, so
// that a test can append more.
func authentication(token string) string {
	return fmt.Sprintf(`{"version":{"major":4,"minor":0,"revision":0},"event_acks":true,`+
		`"agent":"@signalwire/js/browser/3.30.0","authentication":{"jwt_token":%q}`, token)
}

func (c *client) connect(token string, more ...string) (r connected) {
	c.t.Helper()
	c.call("signalwire.connect", authentication(token)+strings.Join(more, "")+"}").into(c.t, &r)
	return r
}

// into decodes the result of a response, which must not be an error.
func (f frame) into(t *testing.T, v any) {
	t.Helper()
	if f.Error != nil {
		t.Fatalf("got the error %d %q", f.Error.Code, f.Error.Message)
	}
	if err := json.Unmarshal(f.Result, v); err != nil {
		t.Fatalf("reading %s: %v", f.Result, err)
	}
}

// code returns the code of an error, or 0 for a result.
func (f frame) code() int {
	if f.Error == nil {
		return 0
	}
	return f.Error.Code
}

// wantCode fails the test unless the response to what was requested has the given error code.
func (f frame) wantCode(t *testing.T, requested string, code int) {
	t.Helper()
	if got := f.code(); got != code {
		t.Errorf("%s: got the error %+v and the result %s, want the code %d", requested, f.Error, f.Result, code)
	}
}

// call sends a request and returns the response.
func (c *client) call(method, params string) frame {
	c.t.Helper()
	c.next++
	id := fmt.Sprintf(`"%d"`, c.next)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return c.until("an answer to "+method, func(f frame) bool { return string(f.ID) == id && f.Method == "" })
}

// send sends the text of a message.
func (c *client) send(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), deadline)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("sending %.80s: %v", text, err)
	}
}

// until reads messages until wanted returns true, and returns that message.
func (c *client) until(what string, wanted func(frame) bool) frame {
	c.t.Helper()
	for {
		f, err := c.read()
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", what, err)
		}
		if wanted(f) {
			return f
		}
	}
}

// read reads one message. If it is a request, read also answers it, unless c is deaf.
func (c *client) read() (f frame, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), deadline)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		c.t.Fatalf("the server sent %.200s: %v", text, err)
	}
	if f.Version != "2.0" {
		c.t.Fatalf("the server sent %.200s, want JSON-RPC 2.0", text)
	}
	if f.Method == "" || c.deaf {
		return f, nil
	}

	c.requested = append(c.requested, f)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID))
	return f, nil
}

// closed reads until the server closes the socket, and returns the code and the reason.
func (c *client) closed() (code int, reason string) {
	c.t.Helper()
	for {
		_, err := c.read()
		var closed websocket.CloseError
		switch {
		case err == nil:
		case errors.As(err, &closed):
			return int(closed.Code), closed.Reason
		default:
			return -1, err.Error()
		}
	}
}

// wantTold fails the test unless the client has received a request with this method.
func (c *client) wantTold(method string) {
	c.t.Helper()
	if !slices.ContainsFunc(c.requested, func(f frame) bool { return f.Method == method }) {
		c.t.Errorf("the client received %+v, want %s", c.requested, method)
	}
}

// wantTokenDead reads until the server closes the socket, and fails the test unless it does so because
// the token is no longer valid, for the given reason.
func (c *client) wantTokenDead(reason string) {
	c.t.Helper()
	code, got := c.closed()
	if code != tokenDead {
		c.t.Errorf("the socket is closed with the code %d, want %d", code, tokenDead)
	}
	if !strings.Contains(got, reason) {
		c.t.Errorf("the socket is closed for the reason %q, want %q", got, reason)
	}
}
