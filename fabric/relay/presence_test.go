package relay_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/session"
)

// online returns the number of sockets through which the tests' subscriber is online, as this node
// sees it.
func (n *node) online() int {
	n.t.Helper()
	presence, err := n.fabric.Presence.Find(n.t.Context(), n.project.ID, uuidOf("5"))
	if err != nil {
		n.t.Fatal(err)
	}
	return presence.Sockets
}

// must sends a request without parameters, and fails the test unless the request succeeds.
func (c *client) must(method string) {
	c.t.Helper()
	type result struct{ Code, Message string }
	var got result
	c.call(method, `{}`).into(c.t, &got)
	if want := (result{"200", "OK"}); got != want {
		c.t.Fatalf("%s returned %+v, want %+v", method, got, want)
	}
}

func TestOnline(t *testing.T) {
	w := newWorld(t)
	here, there := w.node(relay.Limits{}), w.node(relay.Limits{})
	wantOnline := func(what string, sockets int) {
		t.Helper()
		eventually(t, what, func() bool { return here.online() == sockets && there.online() == sockets })
	}

	a, _ := here.connect(here.seal(nil))
	b, _ := there.connect(there.seal(nil))
	wantOnline("nobody to be online", 0)
	a.must("subscriber.online")
	wantOnline("one to be online", 1)
	b.must("subscriber.online")
	a.must("subscriber.online")
	wantOnline("both to be online", 2)
	if got := here.relay.Stats(); got != (relay.Stats{Sockets: 1, Connected: 1, Online: 1}) {
		t.Errorf("Stats = %+v, want one socket, connected and online", got)
	}

	b.must("subscriber.offline")
	b.must("subscriber.offline")
	wantOnline("one to be offline", 1)
	b.must("subscriber.online")
	if err := b.conn.Close(websocket.StatusGoingAway, ""); err != nil { // as when the user leaves the page
		t.Fatal(err)
	}

	wantOnline("the closed socket to be offline", 1)
	if err := a.conn.Close(websocket.StatusNoStatusRcvd, ""); err != nil { // as SDKs disconnect
		t.Fatal(err)
	}

	wantOnline("nobody to be online anymore", 0)
	eventually(t, "the sockets to be uncounted", func() bool { return here.relay.Stats() == relay.Stats{} })

	guest, _ := here.connect(here.seal(func(t *fabric.Token) { t.Kind = fabric.Guest }))
	guest.call("subscriber.online", `{}`).wantCode(t, "subscriber.online by a guest", refused)
}

// TestReconnect shows that if a socket is lost and the client reconnects to another node, the
// subscriber is online if and only if it was online before.
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
		t.Fatalf("after another subscriber has reconnected, %d sockets are online, want none", got.Online)
	}

	token := there.seal(func(t *fabric.Token) { t.ID = uuidOf("b") })
	again, second := there.connect(token, `,"protocol":"`+first.Protocol+`"`)
	if got := there.relay.Stats(); got.Online != 1 {
		t.Errorf("back on another node, %d of the node's sockets are online, want 1", got.Online)
	}
	if got := there.online(); got != 1 {
		t.Errorf("back on another node, the subscriber is online %d times, want once", got)
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

// TestStaysOnline shows that an open socket stays online because it renews its presence, even if the
// session store loses it. Without renewal, the socket goes offline.
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
		t.Errorf("after minutes without renewal, the subscriber is online %d times, want 0", got)
	}
}
