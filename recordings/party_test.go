package recordings_test

import (
	"slices"
	"testing"

	"github.com/selvage/selvage/recordings"
)

func TestSpellings(t *testing.T) {
	for _, tt := range []struct {
		party string
		want  []string
	}{
		{"+1 (555) 123-4567", []string{"+15551234567", "15551234567"}},
		{"15551234567", []string{"+15551234567", "15551234567"}},
		{"/private/ada", []string{"/private/ada"}},
		{"/public/a.b-c", []string{"/public/a.b-c"}},
		{"sip:ada@example.com", []string{"sip:ada@example.com"}},
		{"+", []string{"+"}},
		{"anonymous", []string{"anonymous"}},
	} {
		if got := recordings.Spellings(tt.party); !slices.Equal(got, tt.want) {
			t.Errorf("Spellings(%q) = %q, want %q", tt.party, got, tt.want)
		}
	}
}
