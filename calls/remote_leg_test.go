package calls

import (
	"context"
	"errors"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

// TestRemoteLegs shows that legs of two projects on other nodes are kept apart, even if their
// clients chose the same id.
func TestRemoteLegs(t *testing.T) {
	c := New(Config{})
	c.remote.add("1", remoteLeg{node: "a", holder: "alice", project: "p"})
	c.remote.add("1", remoteLeg{node: "b", holder: "mallory", project: "q"})
	if n := c.Stats().Elsewhere; n != 2 {
		t.Errorf("%d legs are known, want 2", n)
	}

	c.remote.forget("1", "mallory")
	legs := c.remote.byNode()
	if len(legs) != 1 {
		t.Errorf("the legs that are left are %v, want those of one node", legs)
	}
	if len(legs["a"]) != 1 {
		t.Errorf("the legs that are left on node a are %v, want alice's", legs["a"])
	}
}

// A movedStore is a store in which another node carries one call. All other calls have ended. If err is
// not nil, the store is unavailable.
type movedStore struct {
	Store
	leg, node string
	err       error
}

func (s movedStore) FindLeg(_ context.Context, _, leg string) (Record, error) {
	if s.err != nil {
		return Record{}, s.err
	}
	if leg == s.leg {
		return Record{Node: s.node}, nil
	}
	return Record{}, problem.NoSuch("call")
}

// hungUpClients records which legs have ended.
type hungUpClients map[string]bool

func (c hungUpClients) Tell(_ Socket, e Event) { c[e.Leg] = e.Kind == HungUp }

// TestLoseNodes shows that a client whose call was taken over from a dead node may still attach to it,
// even while the database is unavailable. It is notified once the call has ended.
func TestLoseNodes(t *testing.T) {
	told := hungUpClients{}
	c := New(Config{Clients: told, Store: movedStore{leg: "1", node: "alive"}})
	dead := map[string]bool{"dead": true}
	for _, leg := range []string{"1", "2"} {
		c.remote.add(leg, remoteLeg{node: "dead", holder: "alice", project: "p"})
	}
	away := errors.New("the database is unavailable")
	loseNodes := func(want error) {
		t.Helper()
		if err := c.loseNodes(t.Context(), dead); !errors.Is(err, want) {
			t.Errorf("loseNodes = %v, want %v", err, want)
		}
		if told["1"] {
			t.Error("the client was notified that its call has ended, but another node carries the call now")
		}
	}
	loseNodes(nil)
	if !told["2"] {
		t.Error("the client was not notified that its call on a dead node has ended")
	}

	c.store = movedStore{err: away}
	loseNodes(away)
	c.store = movedStore{}
	if err := c.loseNodes(t.Context(), dead); err != nil {
		t.Errorf("loseNodes = %v", err)
	}
	if !told["1"] {
		t.Error("the client was not notified that its call has ended on the other node")
	}
	if n := c.Stats().Elsewhere; n != 0 {
		t.Errorf("%d legs on other nodes are known, want none", n)
	}
}
