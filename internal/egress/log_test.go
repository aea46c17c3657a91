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
	l, began := NewLog(slog.New(slog.DiscardHandler)), time.Now()
	type lines struct {
		Refusals int
		Notes    int // that the log lacks hosts
	}
	admitAll := func(now time.Time) (n lines) {
		for i := range 10 * maxHosts {
			host := fmt.Sprintf("host-%d.example", i)
			for range 3 {
				logs, full := l.admit(host, now)
				if logs {
					n.Refusals++
				}
				if full {
					n.Notes++
				}
			}
		}
		return n
	}

	for _, tt := range []struct {
		after time.Duration
		want  lines
	}{
		{after: 0, want: lines{Refusals: maxHosts, Notes: 1}},
		{after: logEvery - 1, want: lines{}},
		{after: logEvery, want: lines{Refusals: maxHosts, Notes: 1}},
		{after: 3 * logEvery, want: lines{Refusals: maxHosts, Notes: 1}},
	} {
		if got := admitAll(began.Add(tt.after)); got != tt.want {
			t.Errorf("%s later, the log has %+v, want %+v", tt.after, got, tt.want)
		}
	}
}
