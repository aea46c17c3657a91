package clients

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// TestCallsByTURN shows that browsers that can reach only the TURN server hear each other through
// it. It also shows that doctor finds no problem with the TURN server.
func TestCallsByTURN(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t, "--listen-turn", "127.0.0.1:0")
	alice, bob := phones(t, s, "3.30.0")
	onlyRelay(alice, bob)
	connect(alice, bob, true)
	hear(alice, bob)
	alice.do("see('b')", nil)
	wantRelayed(alice, bob)
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)

	found := regexp.MustCompile(`ok +TURN +turns:localhost:\d+\?transport=tcp answers`)
	// The server starts listening a little later.
	harness.Eventually(t, patience, "doctor to find the TURN server", func() error {
		if out, err := s.TryCommand("doctor"); err != nil || !found.MatchString(out) {
			return fmt.Errorf("doctor returned %v and printed %s, want %s", err, out, found)
		}
		return nil
	})
}

// TestCallsByTURNOfNodes shows that clients of two nodes hear each other if each client can reach
// only the TURN server of its own node.
func TestCallsByTURNOfNodes(t *testing.T) {
	if servers.BackendName(t) == "sqlite" {
		t.Skip("nodes cannot share files")
	}
	harness.NotStorage(t)
	relayed := harness.Config{Args: []string{"--listen-turn", "127.0.0.1:0"}}
	n := harness.StartNodes(t, nil, relayed, relayed)
	alice, bob := phones(t, n.Server, "3.30.0")
	n.Prefer(0)
	alice.enter(false)
	n.Prefer(1)
	bob.enter(true)
	onlyRelay(alice, bob)
	talk(alice, bob, false)
	hear(alice, bob)
	wantRelayed(alice, bob)
	hangUp(alice, bob)
}

// onlyRelay makes phones use only relayed candidates.
func onlyRelay(all ...*phone) {
	for _, f := range all {
		f.eval(f.T, "(restriction = { iceTransportPolicy: 'relay' }, 0)", new(int))
	}
}

// wantRelayed fails the test unless all ICE candidates of the phones are relayed.
func wantRelayed(all ...*phone) {
	for _, f := range all {
		f.Helper()
		var found []string
		f.eval(f.T, "connections.flatMap(c => c.gathered).filter(c => c !== 'end')", &found)
		if len(found) == 0 {
			f.Error("no candidate was found")
		}
		for _, c := range found {
			if !strings.HasPrefix(c, "relay ") {
				f.Errorf("a candidate is %q, want relay", c)
			}
		}
	}
}
