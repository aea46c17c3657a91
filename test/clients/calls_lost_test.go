package clients

import (
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// lostNodes starts nodes, and two phones. Alice's clients prefer the first node and bob's the
// second.
func lostNodes(t *testing.T, nodes int) (n *harness.Nodes, alice, bob *phone) {
	t.Helper()
	if servers.BackendName(t) == "sqlite" {
		t.Skip("nodes cannot share files")
	}
	harness.NotStorage(t)
	n = harness.StartNodes(t, nil, make([]harness.Config, nodes)...)
	alice, bob = phones(t, n.Server, "3.30.0")
	alice.kept, bob.kept = true, true
	return n, alice, bob
}

// meet connects alice at the first node with bob at the second, and returns the id of the call.
func meet(n *harness.Nodes, alice, bob *phone) (id string) {
	alice.Helper()
	n.Prefer(0)
	alice.enter(false)
	n.Prefer(1)
	bob.enter(true)
	id = talk(alice, bob, false)
	hear(alice, bob)
	return id
}

// TestCallsOutliveTheirNode kills the node that carries a call. With our SDK, the call continues at
// the other node with the same id and the same record, and both sides hear each other.
func TestCallsOutliveTheirNode(t *testing.T) {
	n, alice, bob := lostNodes(t, 2)
	id := meet(n, alice, bob)

	n.Each[0].Kill()
	killed := time.Now()
	alice.wantMoved(id)
	bob.wantMoved("")
	hear(alice, bob)
	t.Logf("the call went on after %v", time.Since(killed))

	alice.do("call.hangup()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
}

// wantMoved waits until the phone's call has moved to another node. id is the id of the call, or ""
// if it is unknown.
func (f *phone) wantMoved(id string) {
	f.Helper()
	f.do("until(() => states.includes('media.reconnecting') && states.lastIndexOf('media.connected') > "+
		"states.lastIndexOf('media.reconnecting'))", nil)
	var now string
	if f.do("call.callId", &now); id != "" && now != id {
		f.Errorf("the call is %s, want %s as before", now, id)
	}
	var ended bool
	if f.do("states.includes('destroy')", &ended); ended {
		f.Errorf("the app saw the end of its call")
	}
}
