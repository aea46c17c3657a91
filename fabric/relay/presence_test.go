package relay_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/session"
)

// online returns the number of sockets through which the tests' subscriber is online, according to
// another node.
func (n *node) online() int {
	n.t.Helper()
	return must[fabric.Presence](n.t)(n.fabric.Presence.Find(n.t.Context(), n.project.ID, uuidOf("5"))).Sockets
}

func (c *client) must(method string) {
	c.t.Helper()
	var r struct{ Code, Message string }
	if c.call(method, `{}`).into(c.t, &r); r.Code != "200" || r.Message != "OK" {
		c.t.Fatalf("%s returned %+v", method, r)
	}
}

func TestOnline(t *testing.T) {
	w := newWorld(t)
	here, there := w.node(relay.Limits{}), w.node(relay.Limits{})
	want := func(when string, sockets int) {
		t.Helper()
		eventually(t, when, func() bool { return here.online() == sockets && there.online() == sockets })
	}

	a, _ := here.connect(here.seal(nil))
	b, _ := there.connect(there.seal(nil))
	want("nobody to be online", 0)
	a.must("subscriber.online")
	want("one to be online", 1)
	b.must("subscriber.online")
	a.must("subscriber.online")
	want("both to be online", 2)
	if got := here.relay.Stats(); got != (relay.Stats{Sockets: 1, Connected: 1, Online: 1}) {
		t.Errorf("Stats = %+v, want one socket, connected and online", got)
	}

	b.must("subscriber.offline")
	b.must("subscriber.offline")
	want("one to be offline", 1)
	b.must("subscriber.online")
	if err := b.conn.Close(websocket.StatusGoingAway, ""); err != nil { // as when the user leaves the page
		t.Fatal(err)
	}

	want("the closed socket to be offline", 1)
	if err := a.conn.Close(websocket.StatusNoStatusRcvd, ""); err != nil { // as SDKs disconnect
		t.Fatal(err)
	}

	want("nobody to be online anymore", 0)
	eventually(t, "the sockets to be uncounted", func() bool { return here.relay.Stats() == relay.Stats{} })

	guest, _ := here.connect(here.seal(func(t *fabric.Token) { t.Kind = fabric.Guest }))
	if got := guest.call("subscriber.online", `{}`); got.code() != refused {
		t.Errorf("a guest goes online: %+v %s, want refused", got.Error, got.Result)
	}
}

// TestReconnect loses a socket and reconnects to another node. The subscriber is then online if and
// only if it was online before.
func TestReconnect(t *testing.T) {
	w := newWorld(t)
	here, there := w.node(relay.Limits{}), w.node(relay.Limits{})
	c, first := here.connect(here.seal(nil))
	c.must("subscriber.online")
	_ = c.conn.CloseNow() // the client sends no close frame
	eventually(t, "the socket to be uncounted", func() bool { return here.relay.Stats() == relay.Stats{} })
	if got := here.online(); got != 1 {
		t.Fatalf("after its socket was lost, the subscriber is online %d times, want 1 for a while", got)
	}

	stranger := there.seal(func(t *fabric.Token) { t.SubscriberID = uuidOf("6") })
	there.connect(stranger, `,"protocol":"`+first.Protocol+`"`)
	if got := there.relay.Stats(); got.Online != 0 {
		t.Fatalf("another subscriber took the place of a socket: %+v", got)
	}

	again, second := there.connect(there.seal(func(t *fabric.Token) { t.ID = uuidOf("b") }),
		`,"protocol":"`+first.Protocol+`"`)
	if got := there.relay.Stats(); got.Online != 1 || there.online() != 1 {
		t.Errorf("back on another node: %+v, online %d times, want once", got, there.online())
	}

	again.must("subscriber.offline")
	if got := here.online(); got != 0 {
		t.Errorf("a subscriber that went offline after coming back is online %d times, want 0", got)
	}

	_ = again.conn.CloseNow()
	there.connect(there.seal(nil), `,"protocol":"`+second.Protocol+`"`)
	if got := here.online(); got != 0 {
		t.Errorf("after coming back, an offline subscriber is online %d times, want 0", got)
	}
}

// TestStaysOnline advances the clock beyond the time for which the session store keeps a socket
// online without renewal.
func TestStaysOnline(t *testing.T) {
	w := newWorld(t)
	n := w.node(relay.Limits{})
	c, _ := n.connect(n.seal(nil))
	c.must("subscriber.online")
	w.ahead.Store(int64(50 * time.Second))
	n.relay.WatchAt(time.Now().Add(fabric.StayOnline))
	eventually(t, "the socket to renew its presence", func() bool {
		w.ahead.Store(int64(70 * time.Second))
		defer w.ahead.Store(int64(50 * time.Second))
		return n.online() == 1
	})
	if err := w.sessions.Delete(t.Context(), session.Key{Kind: "presence", ID: uuidOf("5")}); err != nil {
		t.Fatal(err)
	}

	n.relay.WatchAt(time.Now().Add(2 * fabric.StayOnline))
	eventually(t, "the socket to renew after the store was emptied", func() bool { return n.online() == 1 })
	w.ahead.Store(int64(3 * time.Minute))
	if got := n.online(); got != 0 {
		t.Errorf("online %d times after minutes without renewal, want 0", got)
	}
}
