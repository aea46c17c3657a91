package command

import (
	"strings"
	"testing"
)

// TestWrap shows that lines are broken between words only.
func TestWrap(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three\n"},
		{"one two three", 12, "one two\n    three\n"},
		{"one two three", 17, "one two three\n"},
		{"one /a/very/long/path two", 12, "one\n    /a/very/long/path\n    two\n"},
		{"/a/very/long/path", 12, "/a/very/long/path\n"},
	}
	for _, tt := range tests {
		var b strings.Builder
		wrap(&b, tt.text, 4, tt.width)
		if b.String() != tt.want {
			t.Errorf("wrap(%q, 4, %d) = %q, want %q", tt.text, tt.width, b.String(), tt.want)
		}
	}
}
