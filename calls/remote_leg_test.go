package calls

import "testing"

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
