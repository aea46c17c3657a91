package relay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
)

// TestEmbedSockets shows that sockets opened with an embed key's tokens count against the key's
// limit, across all nodes. Other sockets do not count against it.
func TestEmbedSockets(t *testing.T) {
	w := newWorld(t)
	w.ahead.Store(int64(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))) // start a new minute
	nodes := []*node{w.node(relay.Limits{}), w.node(relay.Limits{})}
	embedded := func(key string, i int) func(*fabric.Token) {
		return func(t *fabric.Token) {
			t.ID, t.Kind, t.SubscriberID = fmt.Sprint(key, i), fabric.Guest, ""
			t.KeyID, t.Embedded = key, true
		}
	}

	key, other := uuidOf("e"), uuidOf("f")
	for i := range embedLimit {
		n := nodes[i%len(nodes)]
		n.connect(n.seal(embedded(key, i)))
	}

	for i, n := range nodes {
		got := n.dial().call("signalwire.connect", authentication(n.seal(embedded(key, embedLimit+i)))+"}")
		if got.code() != refused {
			t.Errorf("one socket too many at node %d: got code %d, want %d", i, got.code(), refused)
		}
		n.connect(n.seal(embedded(other, i)))

		// A socket of another key cannot move to this key by presenting a new token.
		c, _ := n.connect(n.seal(func(t *fabric.Token) { t.Kind, t.SubscriberID = fabric.Guest, "" }))
		if got := c.call("signalwire.reauthenticate", authentication(n.seal(embedded(key, 10+i)))+"}"); got.code() !=
			refused {
			t.Errorf("a token of the key for another socket: got code %d, want %d", got.code(), refused)
		}
		n.connect(n.seal(func(t *fabric.Token) { t.Kind, t.SubscriberID, t.KeyID = fabric.Guest, "", key }))
	}
}
