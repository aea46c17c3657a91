package egress

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// TestLogLimits shows that neither one host nor many can fill the log.
func TestLogLimits(t *testing.T) {
	l, now := NewLog(slog.New(slog.DiscardHandler)), time.Now()
	admitted := func(at time.Time) (n int) {
		for i := range 10 * maxHosts {
			host := fmt.Sprintf("host-%d.example", i)
			for range 3 {
				if l.admit(host, at) {
					n++
				}
			}
		}
		return n
	}

	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, maxHosts}, {logEvery - 1, 0}, {logEvery, maxHosts}, {3 * logEvery, maxHosts}} {
		if got := admitted(now.Add(tt.after)); got != tt.want {
			t.Errorf("%s later, %d refusals are logged, want %d", tt.after, got, tt.want)
		}
	}
}
