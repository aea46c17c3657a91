package clients

import (
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestCallsByTURN shows that browsers that can reach only the TURN server hear each other through
// it, and that doctor reports it as working.
func TestCallsByTURN(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t, "--listen-turn", "127.0.0.1:0")
	alice, bob := phones(t, s, "3.30.0")
	alice.use(t)
	bob.use(t)
	for _, f := range []*phone{alice, bob} {
		f.eval(t, "(restriction = { iceTransportPolicy: 'relay' }, 0)", new(int))
	}

	connect(alice, bob, true)
	hear(alice, bob)
	alice.do("see('b')", nil)
	for _, f := range []*phone{alice, bob} {
		var found []string
		f.eval(t, "connections.flatMap(c => c.gathered).filter(c => c !== 'end')", &found)
		if len(found) == 0 {
			t.Error("no candidate was found")
		}
		for _, c := range found {
			if !strings.HasPrefix(c, "relay ") {
				t.Errorf("a candidate is %q, want relay", c)
			}
		}
	}
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)

	out := s.Command(t, "", "doctor")
	if found := regexp.MustCompile(`ok +TURN +turns:localhost:\d+\?transport=tcp answers`); !found.MatchString(out) {
		t.Errorf("doctor prints %s, want %s", out, found)
	}
}
