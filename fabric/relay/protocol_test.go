package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/fabric/relay"
)

// TestMessages shows how valid and invalid JSON-RPC is answered. After each message, the socket still
// works.
func TestMessages(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	c, _ := n.connect(n.seal(nil))
	tests := []struct {
		text     string
		wantID   string
		wantCode int
	}{
		{`{`, `null`, parseError},
		{``, `null`, parseError},
		{strings.Repeat("[", 60_000), `null`, parseError},
		{`[]`, `null`, invalidRequest},
		{`"signalwire.ping"`, `null`, invalidRequest},
		{`{}`, `null`, invalidRequest},
		{`{"jsonrpc":"1.0","id":1,"method":"signalwire.ping"}`, `null`, invalidRequest},
		{`{"jsonrpc":"2.0","id":{},"method":"signalwire.ping"}`, `null`, invalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, `null`, invalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"signalwire.ping"}`, `1`, 0},
		{`{"jsonrpc":"2.0","id":"ü\u0000","method":"signalwire.ping"}`, `"ü\u0000"`, 0},
		{`{"jsonrpc":"2.0","id":-1.5e3,"method":"signalwire.ping","params":{"timestamp":12.5}}`, `-1.5e3`, 0},
		{`{"jsonrpc":"2.0","id":null,"method":"signalwire.ping","params":{"timestamp":{}}}`, `null`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"signalwire.ping","params":[]}`, `1`, invalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"calling.dial","params":{}}`, `1`, methodNotFound},
		{
			`{"jsonrpc":"2.0","id":1,"method":"webrtc.verto","params":{"message":{"method":"verto.invite"}}}`,
			`1`,
			methodNotFound,
		},
	}

	for _, tt := range tests {
		c.send(tt.text)
		got, err := c.read()
		if err != nil {
			t.Fatalf("after %.80s: %v", tt.text, err)
		}
		got.wantCode(t, fmt.Sprintf("%.80s", tt.text), tt.wantCode)
		if string(got.ID) != tt.wantID {
			t.Errorf("%.80s: the id is %s, want %s", tt.text, got.ID, tt.wantID)
		}
	}

	c.send(`{"jsonrpc":"2.0","method":"signalwire.ping"}`) // a notification
	c.send(`{"jsonrpc":"2.0","id":"nobody asked","result":{}}`)
	c.send(`{"jsonrpc":"2.0","id":"nobody asked","error":{"code":1}}`)
	const sent = 1752000000.25
	var pong struct{ Timestamp float64 }
	c.call("signalwire.ping", `{"timestamp":1752000000.25}`).into(t, &pong)
	if pong.Timestamp != sent {
		t.Errorf("a ping returned the timestamp %v, want %v", pong.Timestamp, sent)
	}
	c.call("signalwire.ping", `{}`).into(t, &pong)
	if pong.Timestamp < 1752000000 {
		t.Errorf("a ping without a timestamp returned %v, want the current time", pong.Timestamp)
	}
	if got := c.call("webrtc.verto", `{}`); !strings.Contains(got.Error.Message, "does not carry calls") {
		t.Errorf("webrtc.verto returned %q, want a message that calls are not carried", got.Error.Message)
	}
}

// TestFrames shows for which frames the server closes the socket.
func TestFrames(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	ping := func(size int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","method":"signalwire.ping"}`, strings.Repeat("x", size))
	}

	tests := []struct {
		name      string
		connected bool
		kind      websocket.MessageType
		text      string
		wantCode  int
	}{
		{"binary", true, websocket.MessageBinary, "{}", 1003},
		{"not UTF-8", true, websocket.MessageText, "\"\xff\"", 1007},
		{"too long before connecting", false, websocket.MessageText, ping(9 << 10), 1009},
		{"too long", true, websocket.MessageText, ping(65 << 10), 1009},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := n.dial()
			if tt.connected {
				c.connect(n.seal(nil))
				c.send(ping(60 << 10)) // within the limit
			}
			if err := c.conn.Write(t.Context(), tt.kind, []byte(tt.text)); err != nil {
				t.Fatal(err)
			}
			if code, reason := c.closed(); code != tt.wantCode {
				t.Errorf("the socket is closed with %d %q, want %d", code, reason, tt.wantCode)
			}
		})
	}

	eventually(t, "all sockets to be released", func() bool { return n.relay.Stats() == relay.Stats{} })
}

// TestHandshake shows that invalid handshakes are refused, and that compression is not offered.
func TestHandshake(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	tests := []struct {
		name       string
		header     http.Header
		isWanted   bool // whether Wanted reports that the request is for a relay
		wantStatus int
	}{
		{name: "no upgrade", header: http.Header{}, wantStatus: http.StatusUpgradeRequired},
		{
			name:       "another protocol",
			header:     http.Header{"Upgrade": {"h2c"}, "Connection": {"Upgrade"}},
			wantStatus: http.StatusUpgradeRequired,
		},
		{
			name: "an old version",
			header: http.Header{
				"Upgrade":               {"WebSocket"},
				"Connection":            {"Upgrade"},
				"Sec-Websocket-Version": {"8"},
			},
			isWanted:   true,
			wantStatus: http.StatusBadRequest,
		},
		{
			name: "no key",
			header: http.Header{
				"Upgrade":               {"h2c, websocket"},
				"Connection":            {"Upgrade"},
				"Sec-Websocket-Version": {"13"},
			},
			isWanted:   true,
			wantStatus: http.StatusBadRequest,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := "http" + strings.TrimPrefix(n.url, "ws")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = tt.header
			if got := relay.Wanted(req); got != tt.isWanted {
				t.Errorf("Wanted = %v, want %v", got, tt.isWanted)
			}

			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != tt.wantStatus {
				t.Errorf("got %d, want %d", resp.StatusCode, tt.wantStatus)
			}
		})
	}

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	opts := &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover}
	conn, resp, err := websocket.Dial(ctx, n.url, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if got := resp.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		t.Errorf("compression is offered: %q", got)
	}

	eventually(t, "the failed handshakes to be released", func() bool {
		return n.relay.Stats() == relay.Stats{Sockets: 1}
	})
}
