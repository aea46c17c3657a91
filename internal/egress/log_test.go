package egress

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// TestLogLimits shows that neither one host nor many can fill the log, and that the log says once a
// minute that hosts are missing.
func TestLogLimits(t *testing.T) {
	l, now := NewLog(slog.New(slog.DiscardHandler)), time.Now()
	admitted := func(at time.Time) (n, notes int) {
		for i := range 10 * maxHosts {
			host := fmt.Sprintf("host-%d.example", i)
			for range 3 {
				logs, full := l.admit(host, at)
				if logs {
					n++
				}
				if full {
					notes++
				}
			}
		}
		return n, notes
	}

	for _, tt := range []struct {
		after       time.Duration
		want, notes int
	}{{0, maxHosts, 1}, {logEvery - 1, 0, 0}, {logEvery, maxHosts, 1}, {3 * logEvery, maxHosts, 1}} {
		if got, notes := admitted(now.Add(tt.after)); got != tt.want || notes != tt.notes {
			t.Errorf("%s later, %d refusals are logged, with %d notes about more, want %d and %d",
				tt.after, got, notes, tt.want, tt.notes)
		}
	}
}
