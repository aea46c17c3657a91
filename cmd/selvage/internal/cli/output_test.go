package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestFit shows how a table becomes narrower: first it loses its empty columns, then its cells are
// shortened, and finally it loses one column after another.
func TestFit(t *testing.T) {
	id := strings.Repeat("i", 36)
	rows := [][]string{
		{"ID", "Name", "Empty", "Grants", "Created"},
		{id, "Demo", "", strings.Repeat("g", 30), "2026-11-21 04:12"},
	}

	tests := []struct {
		limit   int
		minor   string // this column is hidden before others
		columns []string
		widths  []int
		hidden  []string
	}{
		{
			limit:   0,
			columns: []string{"ID", "Name", "Empty", "Grants", "Created"},
			widths:  []int{36, 4, 5, 30, 16},
		},
		{
			limit:   200,
			columns: []string{"ID", "Name", "Grants", "Created"},
			widths:  []int{36, 4, 30, 16},
		},
		{
			limit:   80,
			columns: []string{"ID", "Name", "Grants", "Created"},
			widths:  []int{36, 4, 18, 16},
		},
		{
			limit:   70,
			columns: []string{"ID", "Name", "Grants"},
			widths:  []int{36, 4, 26},
			hidden:  []string{"Created"},
		},
		{
			limit:   70,
			minor:   "Grants",
			columns: []string{"ID", "Name", "Created"},
			widths:  []int{36, 4, 16},
			hidden:  []string{"Grants"},
		},
		{
			limit:   20,
			minor:   "Grants",
			columns: []string{"ID", "Name"},
			widths:  []int{36, 4},
			hidden:  []string{"Created", "Grants"},
		},
	}

	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.limit, tt.minor), func(t *testing.T) {
			fitted, widths, hidden := fit(rows, []string{tt.minor}, tt.limit)
			if !slices.Equal(fitted[0], tt.columns) {
				t.Errorf("the columns are %q, want %q", fitted[0], tt.columns)
			}
			if !slices.Equal(widths, tt.widths) {
				t.Errorf("the widths are %v, want %v", widths, tt.widths)
			}
			if !slices.Equal(hidden, tt.hidden) {
				t.Errorf("the hidden columns are %q, want %q", hidden, tt.hidden)
			}
		})
	}
}
