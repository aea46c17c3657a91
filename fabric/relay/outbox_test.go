package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// pair returns both sides of a WebSocket.
func pair(t *testing.T) (server, client *websocket.Conn) {
	t.Helper()
	accepted := make(chan *websocket.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(slim{w}, r, nil); err == nil {
			accepted <- c
		}
	}))

	t.Cleanup(srv.Close)
	client, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}

	client.SetReadLimit(1 << 20)
	server = <-accepted
	t.Cleanup(func() { _, _ = client.CloseNow(), server.CloseNow() })
	return server, client
}

// TestOutbox shows that messages arrive in order, followed by the farewell.
func TestOutbox(t *testing.T) {
	server, client := pair(t)
	var o outbox
	const n = 50
	for i := range n {
		o.send(server, bytes.Repeat([]byte{byte('0' + i%10)}, 1+i*50))
	}

	o.close(server, farewell{code: 4401, reason: "enough"})
	o.send(server, []byte("too late"))
	go func() { _, _, _ = server.Read(t.Context()) }() // read, as a socket's goroutine does
	for i := range n {
		_, text, err := client.Read(t.Context())
		if err != nil || len(text) != 1+i*50 || text[0] != byte('0'+i%10) {
			t.Fatalf("message %d is %.20q, %v, want the one sent at this position", i, text, err)
		}
	}

	_, text, err := client.Read(t.Context())
	if websocket.CloseStatus(err) != 4401 {
		t.Errorf("at the end there is %q, %v, want a farewell", text, err)
	}
}

// TestOutboxFull shows that a client that does not read is disconnected. The memory that it uses
// until then is limited.
func TestOutboxFull(t *testing.T) {
	server, _ := pair(t)
	var o outbox
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = server.Read(context.Background())
	}()

	large := bytes.Repeat([]byte("x"), 60<<10)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		o.send(server, large)
		o.mu.Lock()
		over, waiting := o.last != nil, o.bytes
		o.mu.Unlock()
		if waiting > maxWaitingBytes {
			t.Fatalf("%d bytes are queued, want at most maxWaitingBytes", waiting)
		}
		if over {
			break
		}
		if time.Now().After(end) {
			t.Fatal("messages are still sent to a client that does not read")
		}
	}

	<-gone
}

// FuzzParse shows that parse returns either a message or a fault for any input. The response must
// be valid JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":"1","method":"signalwire.ping","params":{}}`,
		`{"jsonrpc":"2.0","id":-0,"result":{}}`, `[]`, `{"id":"\ud800"}`, "\x00",
		`{"params":` + strings.Repeat("[", 9_000), `{"jsonrpc":"2.0","id":"` + strings.Repeat(`\u0000`, 1<<13) + `"}`,
		"{" + strings.Repeat(`"id":1,`, 1<<13) + `"id":1}`} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		fuzzcost.Parser.Check(t, len(text), func() {
			m, err := parse([]byte(text))
			var answer []byte
			if err != nil {
				fault, known := faultOf(err)
				if !known {
					t.Fatalf("parse(%q) returned the internal error %v", text, err)
				}
				answer = response(nil, nil, fault)
			} else {
				answer = response(m.ID, done, nil)
			}
			if !json.Valid(answer) {
				t.Errorf("%q is answered with %s, want JSON", text, answer)
			}
		})
	})
}
