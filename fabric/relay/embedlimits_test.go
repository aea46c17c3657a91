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
	nextMinute := time.Now().Truncate(time.Minute).Add(time.Minute)
	w.ahead.Store(int64(time.Until(nextMinute)))
	nodes := []*node{w.node(relay.Limits{}), w.node(relay.Limits{})}
	embedded := func(key string, i int) func(*fabric.Token) {
		return func(t *fabric.Token) {
			t.ID = fmt.Sprint(key, i)
			t.Kind = fabric.Guest
			t.SubscriberID = ""
			t.KeyID = key
			t.Embedded = true
		}
	}

	key, other := uuidOf("e"), uuidOf("f")
	for i := range embedLimit {
		n := nodes[i%len(nodes)]
		n.connect(n.seal(embedded(key, i)))
	}

	for i, n := range nodes {
		token := n.seal(embedded(key, embedLimit+i))
		got := n.dial().call("signalwire.connect", authentication(token)+"}")
		got.wantCode(t, fmt.Sprintf("one socket too many at node %d", i), refused)
		n.connect(n.seal(embedded(other, i)))

		// A socket of another key cannot move to this key by presenting a new token.
		c, _ := n.connect(n.seal(func(t *fabric.Token) {
			t.Kind = fabric.Guest
			t.SubscriberID = ""
		}))
		token = n.seal(embedded(key, 10+i))
		got = c.call("signalwire.reauthenticate", authentication(token)+"}")
		got.wantCode(t, "a token of the key for another socket", refused)

		// Guest tokens that were not issued with an embed key do not count.
		n.connect(n.seal(func(t *fabric.Token) {
			t.Kind = fabric.Guest
			t.SubscriberID = ""
			t.KeyID = key
		}))
	}
}
