package calls

import (
	"testing"
	"time"

	"github.com/selvage/selvage/internal/session/sql"
)

// TestDeadNodes shows that a node counts as dead if it stays silent, but not because it could not
// renew its entry while the session store was unavailable.
func TestDeadNodes(t *testing.T) {
	sessions, err := sql.Open(t.Context(), sql.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sessions.Close() })

	p := newPeers("self", nil, sessions)
	want := func(when string, want bool) {
		t.Helper()
		dead, err := p.deadNodes(t.Context(), []string{"self", "other"})
		if err != nil {
			t.Fatal(err)
		}
		if dead["other"] != want {
			t.Errorf("%s, the node counts as dead: %t, want %t", when, dead["other"], want)
		}
	}

	want("at first", false)
	long := time.Now().Add(-time.Hour)
	p.checked, p.lastAlive["other"] = long, long
	want("after an outage of the session store", false)
	p.lastAlive["other"] = time.Now().Add(-aliveFor)
	want("after a long silence", true)
}
