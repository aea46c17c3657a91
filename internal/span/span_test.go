package span

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration // 0 if the text is refused
		back string
	}{
		{"1s", time.Second, "1s"},
		{"90s", 90 * time.Second, "1m30s"},
		{"10m", 10 * time.Minute, "10m"},
		{"20h", 20 * time.Hour, "20h"},
		{"36h30m", 36*time.Hour + 30*time.Minute, "36h30m"},
		{"48h", 48 * time.Hour, "2d"},
		{"30d", 30 * Day, "30d"},
		{"720h1s", 0, ""},
		{"31d", 0, ""},
		{"99999999999d", 0, ""},
		{"-1d", 0, ""},
		{"-99999999999d", 0, ""},
		{"0", 0, ""},
		{"1.5d", 0, ""},
		{"5", 0, ""},
		{"", 0, ""},
	}

	for _, tt := range tests {
		s := Span{Least: time.Second, Most: 30 * Day}
		err := s.Set(tt.text)
		if (err == nil) != (tt.want > 0) || s.Length != tt.want || err == nil && s.String() != tt.back {
			t.Errorf("Set(%q) = %v, %s, %v, want %v, %s", tt.text, s.Length, s.String(), err, tt.want, tt.back)
		}
	}
	if got := (&Span{}).String(); got != "0" {
		t.Errorf("a missing span is %q, want 0, which the help omits", got)
	}
}
