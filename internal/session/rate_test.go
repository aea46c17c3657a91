package session

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestMeter shows that a meter allows exactly the events that its rate allows.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		k, rate := Key{"limit", "1"}, Rate{Burst: 3, Every: time.Minute}
		for i, tt := range []struct {
			pass time.Duration
			n    int
			want time.Duration
		}{
			{0, 0, 0}, {0, -1, 0}, {0, 4, time.Minute}, {0, 2, 0}, {0, 2, time.Minute}, {0, 1, 0},
			{0, 1, time.Minute},
			{59 * time.Second, 1, time.Second}, {time.Second, 1, 0}, {0, 1, time.Minute}, {0, -1, 0}, {0, 1, 0},
			{time.Hour, 3, 0}, {0, 1, time.Minute},
		} {
			time.Sleep(tt.pass)
			if got := m.Allow(k, rate, tt.n); got != tt.want {
				t.Errorf("step %d: Allow(%d) = %v, want %v", i, tt.n, got, tt.want)
			}
		}

		if got := m.Allow(Key{"limit", "2"}, rate, 3); got != 0 {
			t.Errorf("Allow of another key = %v, want no wait", got)
		}
	})
}

// TestMeterBounded shows that a meter stays small even if clients invent many keys, and that it
// first deletes the keys that have recovered all events.
func TestMeterBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		short, long := Rate{Burst: 1, Every: time.Second}, Rate{Burst: 1, Every: time.Hour}
		kept := Key{"limit", "kept"}
		m.Allow(kept, long, 1)
		for i := range metered - 1 {
			m.Allow(Key{"limit", strconv.Itoa(i)}, short, 1)
		}

		time.Sleep(time.Minute)
		m.Allow(Key{"limit", "more"}, long, 1)
		if m.Allow(kept, long, 1) == 0 || len(m.full) > metered/2 {
			t.Errorf("%d keys remain, want the two that have not recovered", len(m.full))
		}

		for i := range 3 * metered {
			m.Allow(Key{"limit", strconv.Itoa(i)}, long, 1)
		}
		if len(m.full) > metered {
			t.Errorf("%d keys are stored, want at most %d", len(m.full), metered)
		}
	})
}
