package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	id := strings.Repeat("i", 36)
	rows := [][]string{
		{"ID", "Name", "Empty", "Grants", "Created"},
		{id, "Demo", "", strings.Repeat("g", 30), "2026-11-21 04:12"},
	}

	tests := []struct {
		limit   int
		minor   string
		columns []string
		widths  []int
		hidden  []string
	}{
		{0, "", []string{"ID", "Name", "Empty", "Grants", "Created"}, []int{36, 4, 5, 30, 16}, nil},
		{200, "", []string{"ID", "Name", "Grants", "Created"}, []int{36, 4, 30, 16}, nil},
		{80, "", []string{"ID", "Name", "Grants", "Created"}, []int{36, 4, 18, 16}, nil},
		{70, "", []string{"ID", "Name", "Grants"}, []int{36, 4, 26}, []string{"Created"}},
		{70, "Grants", []string{"ID", "Name", "Created"}, []int{36, 4, 16}, []string{"Grants"}},
		{20, "Grants", []string{"ID", "Name"}, []int{36, 4}, []string{"Created", "Grants"}},
	}

	for _, tt := range tests {
		got, widths, hidden := fit(rows, []string{tt.minor}, tt.limit)
		if !slices.Equal(got[0], tt.columns) || !slices.Equal(widths, tt.widths) || !slices.Equal(hidden, tt.hidden) {
			t.Errorf("fit(%q, %d) = %v %v %v, want %v %v %v", tt.minor, tt.limit, got[0], widths, hidden,
				tt.columns, tt.widths, tt.hidden)
		}
	}
}
