package span

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for _, tt := range []struct {
		text      string
		length    time.Duration
		formatted string
	}{
		{"1s", time.Second, "1s"},
		{"90s", 90 * time.Second, "1m30s"},
		{"10m", 10 * time.Minute, "10m"},
		{"20h", 20 * time.Hour, "20h"},
		{"36h30m", 36*time.Hour + 30*time.Minute, "36h30m"},
		{"48h", 48 * time.Hour, "2d"},
		{"30d", 30 * Day, "30d"},
	} {
		s := Span{Least: time.Second, Most: 30 * Day}
		if err := s.Set(tt.text); err != nil {
			t.Errorf("Set(%q) = %v, want success", tt.text, err)
			continue
		}
		if s.Length != tt.length {
			t.Errorf("the length of %q is %v, want %v", tt.text, s.Length, tt.length)
		}
		if got := s.String(); got != tt.formatted {
			t.Errorf("String of %q = %q, want %q", tt.text, got, tt.formatted)
		}
	}

	for _, text := range []string{
		"720h1s", "31d", "99999999999d", "-1d", "-99999999999d", "0", "1.5d", "5", "",
	} {
		s := Span{Least: time.Second, Most: 30 * Day}
		if err := s.Set(text); err == nil {
			t.Errorf("Set(%q) succeeds, want an error", text)
		}
		if s.Length != 0 {
			t.Errorf("the length after Set(%q) is %v, want 0 as before", text, s.Length)
		}
	}

	if got := (&Span{}).String(); got != "0" {
		t.Errorf("a missing span is %q, want 0, which the help omits", got)
	}
}
