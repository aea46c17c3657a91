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
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"operations per second", n.perSecond, 10_000},
		{"busy cores of nodes", n.nodeLoad, 1},
		{"busy cores of databases", n.databaseLoad, 20},
		{"bytes in tables", n.tableBytes, 28.8e9},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}

	// A primary with 16 cores may have 8 busy cores. A third of a core fits on one node with four
	// cores, and one node is spare.
	if got := n.cells(); got != 3 {
		t.Errorf("%d cells, want 3", got)
	}
	if got := n.nodes(); got != 2 {
		t.Errorf("%d nodes in a cell, want 2", got)
	}
}
