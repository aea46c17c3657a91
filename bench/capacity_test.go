package main

import (
	"testing"
	"time"
)

// TestNeeds compares the needs of an installation with figures that were computed manually.
func TestNeeds(t *testing.T) {
	costs := []cost{{
		operation: operation{name: "introspection"},
		spending:  spending{node: 100 * time.Microsecond, postgres: 2 * time.Millisecond},
	}}
	n := needs(28.8e6, costs, growth{subscriber: 1000})

	// 28.8 million × 0.25 × 50 × 0.1 / 3600 s = 10,000 operations per second.
	if n.perSecond != 10_000 || n.nodeLoad != 1 || n.databaseLoad != 20 || n.tableBytes != 28.8e9 {
		t.Errorf("needs are %+v, want 10,000 per second, 1 and 20 busy cores, and 28.8 GB", n)
	}
	// A primary with 16 cores may have 8 busy cores. A third of a core fits on one node with four
	// cores, and one node is spare.
	if n.cells() != 3 || n.nodes() != 2 {
		t.Errorf("%d cells of %d nodes, want 3 of 2", n.cells(), n.nodes())
	}
}
