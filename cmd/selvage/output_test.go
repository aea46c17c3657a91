package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFit(t *testing.T) {
	id := strings.Repeat("i", 36)
	rows := [][]string{
		{"ID", "Name", "Empty", "Grants", "Created"},
		{id, "Demo", "", strings.Repeat("g", 30), "2026-11-21 04:12"},
	}
	tests := []struct {
		limit   int
		aside   string
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
		got, widths, hidden := fit(rows, []string{tt.aside}, tt.limit)
		if !slices.Equal(got[0], tt.columns) || !slices.Equal(widths, tt.widths) || !slices.Equal(hidden, tt.hidden) {
			t.Errorf("fit(%q, %d) = %v %v %v, want %v %v %v", tt.aside, tt.limit, got[0], widths, hidden,
				tt.columns, tt.widths, tt.hidden)
		}
	}
}

func TestLength(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"},
		{4 * time.Millisecond, "0.004s"},
		{62 * time.Millisecond, "0.06s"},
		{996 * time.Millisecond, "1s"},
		{7213 * time.Millisecond, "7.2s"},
		{90 * time.Second, "1m30s"},
	}
	for _, tt := range tests {
		if got := length(tt.d); got != tt.want {
			t.Errorf("length(%v) = %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestRejection(t *testing.T) {
	tests := []struct {
		rejects, files int
		want           string
	}{
		{1, 1, "the file was rejected; nothing is stored"},
		{2, 2, "all 2 files were rejected; nothing is stored"},
		{1, 3, "1 of 3 files was rejected; the others are stored"},
		{2, 3, "2 of 3 files were rejected; the others are stored"},
	}
	for _, tt := range tests {
		if got := rejection(tt.rejects, tt.files); got.Error() != tt.want {
			t.Errorf("rejection(%d, %d) = %q, want %q", tt.rejects, tt.files, got, tt.want)
		}
	}
	if err := rejection(0, 3); err != nil {
		t.Errorf("rejection(0, 3) = %v, want nil", err)
	}
}
