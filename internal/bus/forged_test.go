package bus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/bus"
)

// tap returns the sealed messages on a node's channel, as an eavesdropper sees them.
func tap(t *testing.T, by bus.Transport, channel string) <-chan []byte {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	messages, done := make(chan []byte, 1000), make(chan struct{})
	go func() {
		defer close(done)
		by.Listen(ctx, []string{channel}, func(m []byte) { messages <- slices.Clone(m) })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return messages
}

// overhear sends messages of the given kind until the tap receives one, and returns the sealed
// message.
func overhear(t *testing.T, from *bus.Bus, tapped <-chan []byte, to, kind string) []byte {
	t.Helper()
	for end := time.After(time.Minute); ; {
		from.Send(to, kind, kind)
		select {
		case m := <-tapped:
			return m
		case <-time.After(20 * time.Millisecond):
		case <-end:
			t.Fatal("no message is heard")
		}
	}
}

// TestForged shows that an attacker who can read and send messages on the transports, but does not have
// the secret, cannot invent, change, repeat or redirect a message.
func TestForged(t *testing.T) {
	eachTransport(t, func(t *testing.T, ta, tb bus.Transport) {
		got := make(chan string, 1000)
		note := map[string]bus.Handler{"note": func(_ context.Context, _ string, body json.RawMessage) (any, error) {
			got <- string(body)
			return nil, nil
		}}
		a, _ := start(t, nil, ta)
		b, name := start(t, note, tb)
		stranger, _ := startNode(t, [32]byte{2}, nil, ta)
		_, other := start(t, nil, tb)
		meet(t, a, name)
		meet(t, a, other)

		tapped, elsewhere := tap(t, tb, name), tap(t, tb, other)
		heard := overhear(t, a, tapped, name, "quiet") // b does not handle messages of this kind
		redirected := overhear(t, a, elsewhere, other, "note")
		a.Send(name, "note", "first of all")
		repeated := waitFor(t, tapped, heard)
		if text := <-got; text != `"first of all"` {
			t.Fatalf("the first note is %s, want the note that was sent first", text)
		}

		invented := []byte(`{"from":"` + name + `","kind":"note","body":"invented"}`)
		changed := bytes.Clone(repeated)
		changed[len(changed)-3] ^= 1
		forged := [][]byte{invented, changed, repeated, redirected, nil, {1}, {1, 255, 3}}
		for _, message := range forged {
			if err := ta.Publish(t.Context(), name, message); err != nil {
				t.Fatal(err)
			}
		}

		stranger.Send(name, "note", "from a stranger")
		want := uint64(len(forged)) + 1
		for end := time.Now().Add(time.Minute); b.Refused() < want && time.Now().Before(end); {
			meet(t, a, name)
		}

		close(got)
		for text := range got {
			t.Errorf("a forged note arrived: %s", text)
		}

		if n := b.Refused(); n != want {
			t.Errorf("%d messages were refused, want %d", n, want)
		}
	})
}

// waitFor returns the first tapped message whose length differs from that of before.
func waitFor(t *testing.T, tapped <-chan []byte, before []byte) []byte {
	t.Helper()
	for {
		select {
		case m := <-tapped:
			if len(m) != len(before) {
				return m
			}
		case <-time.After(time.Minute):
			t.Fatal("the note is not heard")
		}
	}
}
