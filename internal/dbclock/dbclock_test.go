package dbclock

import (
	"context"
	"testing"
	"time"
)

// TestClock shows that a clock follows the database's, and not that of the machine.
func TestClock(t *testing.T) {
	var c Clock
	ahead := func(context.Context) (time.Time, error) { return time.Now().Add(time.Hour), nil }
	if err := c.Read(t.Context(), ahead); err != nil {
		t.Fatal(err)
	}

	earliest := time.Now().Add(50 * time.Minute)
	if now := c.Now(); now.Before(earliest) {
		t.Errorf("the clock shows %s, want the database's time, which is an hour ahead", now)
	}
	if c.Jumped() {
		t.Error("the machine's clock was not set, but Jumped reports that it was")
	}
}
