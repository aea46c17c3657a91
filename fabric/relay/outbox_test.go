package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// pair returns both sides of a WebSocket.
func pair(t *testing.T) (server, client *websocket.Conn) {
	t.Helper()
	accepted := make(chan *websocket.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(slim{w}, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- conn
	}))
	t.Cleanup(srv.Close)

	client, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	client.SetReadLimit(1 << 20)
	server = <-accepted
	t.Cleanup(func() {
		_ = client.CloseNow()
		_ = server.CloseNow()
	})
	return server, client
}

// TestOutbox shows that messages arrive in order, followed by the farewell.
func TestOutbox(t *testing.T) {
	server, client := pair(t)
	o := &outbox{conn: server}
	const n = 50
	message := func(i int) []byte { return bytes.Repeat([]byte{byte('0' + i%10)}, 1+i*50) }
	for i := range n {
		o.send(message(i))
	}

	o.close(farewell{code: 4401, reason: "enough"})
	o.send([]byte("too late"))
	go func() { _, _, _ = server.Read(t.Context()) }() // read, as a socket's goroutine does
	for i := range n {
		_, text, err := client.Read(t.Context())
		if err != nil {
			t.Fatalf("reading message %d: %v", i, err)
		}
		if !bytes.Equal(text, message(i)) {
			t.Fatalf("message %d is %.20q, want %.20q", i, text, message(i))
		}
	}

	if _, text, err := client.Read(t.Context()); websocket.CloseStatus(err) != 4401 {
		t.Errorf("after the messages: received %q, %v, want the farewell", text, err)
	}
}

// TestOutboxFull shows that a client that does not read is disconnected. The memory that it uses
// until then is limited.
func TestOutboxFull(t *testing.T) {
	server, _ := pair(t)
	o := &outbox{conn: server}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = server.Read(context.Background())
	}()

	large := bytes.Repeat([]byte("x"), 60<<10)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(time.Minute)
	for closed := false; !closed; <-tick.C {
		o.send(large)
		o.mu.Lock()
		closed = o.state == outboxClosed
		waiting := o.bytes
		o.mu.Unlock()
		if waiting > maxWaitingBytes {
			t.Fatalf("%d bytes are queued, want at most %d", waiting, maxWaitingBytes)
		}
		if time.Now().After(deadline) {
			t.Fatal("messages are still sent to a client that does not read")
		}
	}
	<-gone
}

// TestHeldEvents shows that the events of a request wait for its response, unless they are too many
// or too large. They always arrive in order.
func TestHeldEvents(t *testing.T) {
	server, client := pair(t)
	s := &socket{conn: server, out: outbox{conn: server}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	receives := func(want string) {
		t.Helper()
		_, text, err := client.Read(ctx)
		if err != nil || string(text) != want {
			t.Fatalf("received %.20q, %v, want %.20q", text, err, want)
		}
	}

	s.events.hold()
	for i := range 3 * maxHeld {
		s.tell(fmt.Append(nil, i))
		if (i+1)%maxHeld == 0 {
			for first := range maxHeld {
				receives(fmt.Sprint(i + 1 - maxHeld + first))
			}
		}
	}
	large := strings.Repeat("x", maxHeldBytes/2)
	for range 3 { // together, they do not fit into the queue
		s.tell([]byte(large))
		s.tell([]byte(large))
		receives(large)
		receives(large)
	}
	s.tell([]byte("last"))
	s.out.send([]byte("response"))
	s.releaseEvents()
	receives("response")
	receives("last")
	s.tell([]byte("later"))
	receives("later")
}

// TestLargestRoom shows that an event with as many members as a room can have fits into the queue,
// together with the other events that a client gets when it joins.
func TestLargestRoom(t *testing.T) {
	const id = "00000000-0000-0000-0000-000000000000"
	widest := calls.Member{
		ID:           id,
		Leg:          id,
		Type:         calls.Device,
		Parent:       id,
		SubscriberID: id,
		AddressID:    id,
		InputVolume:  -50,
		OutputVolume: -50,
	}
	room := &calls.Room{
		ID:          id,
		Name:        strings.Repeat("n", 1<<10),
		DisplayName: strings.Repeat("d", 1<<10),
		Session:     id,
	}
	for i, size := 0, 0; size <= calls.MaxListed; i++ {
		widest.Name = strings.Repeat(`"`, i%100)
		room.Members = append(room.Members, widest)
		size += widest.MaxSize()
	}

	e := calls.Event{
		Kind:         calls.Joined,
		Leg:          id,
		MemberID:     id,
		RoomSession:  id,
		RoomID:       id,
		Node:         id,
		Room:         room,
		Capabilities: slices.Repeat([]string{"member.microphone.volume"}, 20),
	}
	_, content := show(e)
	const others = 16 << 10
	if n := len(encode(content)); n+others > maxWaitingBytes {
		t.Errorf("the event is %d bytes long, want at most %d", n, maxWaitingBytes-others)
	}
}

// FuzzParse shows that parse returns either a message or a fault for any input. The response must
// be valid JSON.
func FuzzParse(f *testing.F) {
	seeds := []string{
		`{"jsonrpc":"2.0","id":"1","method":"signalwire.ping","params":{}}`,
		`{"jsonrpc":"2.0","id":-0,"result":{}}`,
		`[]`,
		`{"id":"\ud800"}`,
		"\x00",
		`{"params":` + strings.Repeat("[", 9_000),
		`{"jsonrpc":"2.0","id":"` + strings.Repeat(`\u0000`, 1<<13) + `"}`,
		"{" + strings.Repeat(`"id":1,`, 1<<13) + `"id":1}`,
	}
	for _, seed := range seeds {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		fuzzcost.Parser.Check(t, len(text), func() {
			answer := answerTo(t, text)
			if !json.Valid(answer) {
				t.Errorf("%q is answered with %s, want JSON", text, answer)
			}
		})
	})
}

// answerTo parses a message, and returns a response to it or to the fault in it.
func answerTo(t *testing.T, text string) []byte {
	m, err := parse([]byte(text))
	if err == nil {
		return response(m.ID, done, nil)
	}
	fault, known := faultOf(err)
	if !known {
		t.Fatalf("parse(%q) returned the internal error %v", text, err)
	}
	return response(nil, nil, fault)
}
