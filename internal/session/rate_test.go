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
		for i, step := range []struct {
			pass   time.Duration // before the call
			events int
			wait   time.Duration
		}{
			{events: 0},
			{events: -1},
			{events: 4, wait: time.Minute},
			{events: 2},
			{events: 2, wait: time.Minute},
			{events: 1},
			{events: 1, wait: time.Minute},
			{pass: 59 * time.Second, events: 1, wait: time.Second},
			{pass: time.Second, events: 1},
			{events: 1, wait: time.Minute},
			{events: -1},
			{events: 1},
			{pass: time.Hour, events: 3},
			{events: 1, wait: time.Minute},
		} {
			time.Sleep(step.pass)
			if got := m.Allow(k, rate, step.events); got != step.wait {
				t.Errorf("step %d: Allow(%d) = %v, want %v", i, step.events, got, step.wait)
			}
		}

		if got := m.Allow(Key{"limit", "2"}, rate, 3); got != 0 {
			t.Errorf("Allow of another key = %v, want no wait", got)
		}
	})
}

// TestMeterBounded shows that a meter stays small even if clients invent many keys, and that the first
// keys it deletes are those that have recovered all events.
func TestMeterBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		short, long := Rate{Burst: 1, Every: time.Second}, Rate{Burst: 1, Every: time.Hour}
		kept := Key{"limit", "kept"}
		m.Allow(kept, long, 1)
		for i := range maxMetered - 1 {
			m.Allow(Key{"limit", strconv.Itoa(i)}, short, 1)
		}

		time.Sleep(time.Minute)
		m.Allow(Key{"limit", "more"}, long, 1)
		if m.Allow(kept, long, 1) == 0 {
			t.Error("a key that has not recovered was deleted, want it refused")
		}
		if len(m.full) > maxMetered/2 {
			t.Errorf("%d keys remain, want at most %d", len(m.full), maxMetered/2)
		}

		for i := range 3 * maxMetered {
			m.Allow(Key{"limit", strconv.Itoa(i)}, long, 1)
		}
		if len(m.full) > maxMetered {
			t.Errorf("%d keys are stored, want at most %d", len(m.full), maxMetered)
		}
	})
}
