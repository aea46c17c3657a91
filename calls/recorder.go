package calls

import (
	"context"
	"time"
)

// A Recorder records calls. It is safe for concurrent use.
type Recorder interface {
	// Start begins to record a call. It announces the recording, unless c.Sid names one that
	// was announced before, and makes room for its packets on disk. It may take as long as a
	// database and a disk do, so the goroutine of a call must not wait for it.
	//
	// Of a recording that is under way in this process, Start returns what it returned before.
	Start(ctx context.Context, c RecordedCall) (Recording, error)

	// Interrupt ends the recordings of a call that were under way in another process, which has
	// ended, and reports whether there was one that was not paused.
	Interrupt(ctx context.Context, projectID, callID string) (recorded bool, err error)

	// Wanted returns the recordings of a call that lists show as in progress or paused.
	Wanted(ctx context.Context, projectID, callID string) ([]WantedRecording, error)
}

// A WantedRecording is an announced recording of a call, and what its status asks for.
type WantedRecording struct {
	RecordedCall
	Paused bool
	Skip   bool // while it is paused, time does not pass in it
}

// A RecordedCall describes a call to record.
type RecordedCall struct {
	Sid         string    // of the recording, if it was announced; "" announces one
	Project     string    // required
	CallID      string    // the id of the caller's leg; required
	From, To    string    // addresses or numbers
	Direction   string    // a member of recordings.Directions; "" if unknown
	Source      string    // a member of recordings.Sources; "" means its default
	Track       string    // a member of recordings.Tracks: both, the caller (inbound) or the callee (outbound)
	Mono        bool      // mix both sides into one channel; else the caller is left, the callee right
	Subscribers []string  // ids of the project's subscribers whose recording it is
	Started     time.Time // time zero of the recording; zero means now
}

// A Recording is a recording under way. Its methods return at once and are safe for
// concurrent use; after Stop, and while it is paused, packets are ignored.
//
// It takes care of the sound alone. The status that lists show is that of package recordings,
// which decides whether a recording may pause, resume or stop.
type Recording interface {
	// Sid returns the id of the recording.
	Sid() string

	// Tap returns the tap for the packets of one side. A client that comes back, and a
	// callee that takes the place of another one, use the same tap. Only audio is kept.
	Tap(s Side) Tap

	// Pause stops keeping packets. The result is silent until Resume or, with skip, goes on
	// where it stopped.
	Pause(skip bool)
	Resume()

	// Stop ends the recording. The file is made in the background. What it lacks, because
	// a disk was full or slow, shows in the error code of the recording.
	Stop()
}

// A Side is one of the two sides of a recorded call.
type Side int

// The sides.
const (
	CallerSide Side = iota
	CalleeSide
)
