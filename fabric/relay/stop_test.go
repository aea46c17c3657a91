package relay_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
)

// TestTooManyOfSubscriber shows that the sockets of a subscriber are limited, whichever tokens they use,
// and that a closed socket makes room for another one.
func TestTooManyOfSubscriber(t *testing.T) {
	n := newWorld(t).node(relay.Limits{PerCaller: 2})
	good := n.seal(nil)
	first, _ := n.connect(good)
	n.connect(n.seal(func(t *fabric.Token) { t.ID = uuidOf("d") }))
	third := n.dial()
	got := third.call("signalwire.connect", authentication(good)+"}")
	got.wantCode(t, "a third socket of a subscriber", refused)

	_ = first.conn.CloseNow()
	eventually(t, "room for another socket", func() bool {
		return third.call("signalwire.connect", authentication(good)+"}").Error == nil
	})
}

// TestGuestsAreLimitedApart shows that each guest may have as many sockets as the limit allows.
func TestGuestsAreLimitedApart(t *testing.T) {
	n := newWorld(t).node(relay.Limits{PerCaller: 2, PerNetwork: 3})
	guest := func(id string) string {
		return n.seal(func(t *fabric.Token) {
			t.Kind = fabric.Guest
			t.ID = uuidOf(id)
			t.SubscriberID = ""
		})
	}

	for range 2 {
		n.connect(guest("1"))
		n.connect(guest("2"))
	}
}

// TestTooManyStrangers shows that the number of unauthenticated sockets from one network is limited.
func TestTooManyStrangers(t *testing.T) {
	n := newWorld(t).node(relay.Limits{PerNetwork: 3})
	n.connect(n.seal(nil)) // does not count
	for i := range 3 {
		if c, status := n.tryDial(); c == nil {
			t.Fatalf("stranger %d got %d, want a socket", i, status)
		}
	}

	c, status := n.tryDial()
	if c != nil {
		t.Error("one stranger too many got a socket")
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("one stranger too many got %d, want 429", status)
	}
}

// TestPanic shows that a panic in a method closes only its own socket.
func TestPanic(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	n.relay.Panic("webrtc.verto")
	other, _ := n.connect(n.seal(nil))
	c, _ := n.connect(n.seal(nil))
	c.must("subscriber.online")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"webrtc.verto"}`)
	if code, reason := c.closed(); code != 1011 {
		t.Errorf("the socket is closed with %d %q, want 1011", code, reason)
	}
	other.must("subscriber.online")
	eventually(t, "the socket to be released", func() bool {
		return n.relay.Stats() == relay.Stats{Sockets: 1, Connected: 1, Online: 1}
	})
}

// TestShutdown shows that a node that is stopping closes all sockets and accepts no new ones.
func TestShutdown(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	stranger := n.dial()
	lively, _ := n.connect(n.seal(nil))
	deaf, _ := n.connect(n.seal(nil))
	deaf.deaf = true
	lively.must("subscriber.online")

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		n.relay.Shutdown(ctx)
	}()

	for name, c := range map[string]*client{
		"a stranger":                    stranger,
		"a client":                      lively,
		"a client that does not answer": deaf,
	} {
		if code, reason := c.closed(); code != 1012 {
			t.Errorf("the socket of %s is closed with %d %q, want 1012", name, code, reason)
		}
	}

	lively.wantTold("signalwire.disconnect")
	<-stopped
	c, status := n.tryDial()
	if c != nil {
		t.Error("a node that is stopping accepts a socket")
	}
	if status != http.StatusServiceUnavailable {
		t.Errorf("a new socket of a node that is stopping: got %d, want 503", status)
	}
	if got := n.online(); got != 1 {
		t.Errorf("the subscriber is online %d times, want 1 until it reconnects", got)
	}
}

// TestShutdownLate shows that a node that is stopping also closes the socket of a client that does not
// read.
func TestShutdownLate(t *testing.T) {
	n := newWorld(t).node(relay.Limits{})
	n.connect(n.seal(nil))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	n.relay.Shutdown(ctx)
	eventually(t, "the socket to be closed", func() bool { return n.relay.Stats() == relay.Stats{} })
}
