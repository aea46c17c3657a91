package deliver

import (
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A State is the state of a job.
type State string

// The states of a job.
const (
	Pending   State = "pending"   // waiting or being sent
	Delivered State = "delivered" // accepted by the receiver
	Dead      State = "dead"      // given up: a dead letter
)

// ParseState parses the name of a state. It accepts "", which means any state.
func ParseState(name string) (State, error) {
	switch s := State(name); s {
	case "", Pending, Delivered, Dead:
		return s, nil
	}
	return "", problem.BadParam("state", "state must be pending, delivered or dead")
}

// Progress describes what has happened to a job so far.
type Progress struct {
	State    State
	Created  time.Time // when the event happened
	Due      time.Time // earliest time of the next attempt; zero means immediately
	Attempts int       // attempts since it was last queued
	Status   int       // status of the last response; 0 if there was none
	Error    string    // why the last attempt failed, or ""
	Ended    time.Time // zero while pending
}

// KeepDelivered and KeepDead are how long jobs are kept after they have ended. WaitAtMost is how
// long jobs may wait.
const (
	KeepDelivered = 24 * time.Hour
	KeepDead      = 30 * 24 * time.Hour
	WaitAtMost    = 48 * time.Hour // a receiver that often rests may get few attempts in this time
)
