package calls

import (
	"context"
	"time"
)

// A State is how far a call has come.
type State string

// The states.
const (
	Created   State = "created"
	Ringing   State = "ringing"
	InCall    State = "answered"
	Completed State = "ended"
)

// A Record is what is kept of a call.
type Record struct {
	ID        string // the caller leg's id
	ProjectID string
	From, To  Party
	Dialed    string // the address as it was dialed
	State     State
	Cause     Cause // set once the call has ended
	Node      string
	Created   time.Time
	Answered  time.Time // zero if nobody answered
	Ended     time.Time // zero while the call runs

	RecordingID string // "" if it was not recorded
	Video       bool
	Quality     Quality // of the caller's media
}

// Duration returns how long the parties were connected until now.
func (r Record) Duration(now time.Time) time.Duration {
	switch {
	case r.Answered.IsZero():
		return 0
	case r.Ended.IsZero():
		return now.Sub(r.Answered)
	}
	return r.Ended.Sub(r.Answered)
}

// A Store keeps the records of calls.
type Store interface {
	// SaveCall writes a record over the previous one of the same call, together with the
	// events that webhooks want: one for each state.
	SaveCall(ctx context.Context, r Record) error
}
