package calls

import (
	"testing"
	"time"
)

// TestClockSetBack shows that no call has a negative duration if the clock is set back during the
// call.
func TestClockSetBack(t *testing.T) {
	created := time.Now().UTC().Add(time.Hour)
	r := Record{Created: created, Answered: created.Add(time.Minute)}
	if got := r.Duration(time.Now()); got != 0 {
		t.Errorf("the running call has lasted %v, want 0", got)
	}
	if got := r.endNow(); got != r.Answered {
		t.Errorf("the call ends at %v, want %v, when it was answered", got, r.Answered)
	}
	s := RoomSession{Started: created}
	if got := s.Duration(time.Now()); got != 0 {
		t.Errorf("the running room session has lasted %v, want 0", got)
	}
	if got := seconds(created, time.Time{}); got != 0 {
		t.Errorf("the member has been in the room for %d s, want 0", got)
	}
}
