package oidc

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Now()
	for past, want := range map[time.Duration]string{
		-time.Minute: "just now", time.Minute: "just now", 2 * time.Minute: "2 minutes ago", 119 * time.Minute: "119 minutes ago", 2 * time.Hour: "2 hours ago", 50 * time.Hour: "2 days ago",
	} {
		if got := ago(now, now.Add(-past)); got != want {
			t.Errorf("ago(%s) = %q, want %q", past, got, want)
		}
	}
	if got := ago(now, time.Time{}); got != "" {
		t.Errorf("ago of no time = %q", got)
	}
}
