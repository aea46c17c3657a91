package calls

import (
	"context"
	"errors"
	"time"
)

// A Recorder records calls and room sessions. It is safe for concurrent use.
type Recorder interface {
	// Start begins to record a call or a room session. It announces the recording, unless c.Sid
	// names a recording that was already announced. It reserves space for the packets on disk. It
	// uses the database and the disk, so the goroutine of a call must not wait for Start.
	//
	// If the recording is already in progress in this process, Start returns the same Recording
	// again. If the recorder has no space for packets, Start returns ErrNotStored. In this case,
	// Start has ended a recording that it announced itself. If c.Sid is set, the caller must end
	// the recording.
	Start(ctx context.Context, c RecordedCall) (Recording, error)

	// Interrupt ends the recordings of a call or room session that were in progress in a process
	// that has ended. It reports whether at least one of them was not paused.
	Interrupt(ctx context.Context, of Recorded) (recorded bool, err error)

	// End ends the recordings of a call or room session that are in progress or paused.
	//
	// If sid is set, End ends only this recording.
	End(ctx context.Context, of Recorded, sid string) error

	// Wanted returns the recordings of a call or room session whose status is in progress or
	// paused.
	Wanted(ctx context.Context, of Recorded) ([]WantedRecording, error)
}

// ErrNotStored is returned by a Recorder that cannot store packets.
var ErrNotStored = errors.New("the packets of the recording cannot be stored")

// A Recorded identifies what is recorded: a call, or the sum of all members of a room session.
type Recorded struct {
	Project     string // required
	CallID      string // the id of the caller's leg; "" for a room session
	RoomSession string // the id of the room session; "" for a call
}

// A WantedRecording is a recording that is in progress or paused according to its status.
type WantedRecording struct {
	RecordedCall
	Paused bool
	Skip   bool // cut out the time while it is paused
}

// A RecordedCall describes a call or room session to record. The sum of all members of a room is
// recorded as the caller's side.
type RecordedCall struct {
	Sid         string    // the Sid of an announced recording; "" announces a new recording
	Project     string    // required
	CallID      string    // as in Recorded
	RoomSession string    `json:",omitempty"` // as in Recorded
	From, To    string    // addresses or numbers
	Direction   string    // a member of recordings.Directions; "" if unknown
	Source      string    // a member of recordings.Sources; "" means its default
	Track       string    // a member of recordings.Tracks: both, inbound or outbound
	Mono        bool      // mix both sides into one channel instead of caller left, callee right
	Subscribers []string  // ids of the project's subscribers who own the recording
	Started     time.Time // start of the recording; zero means now
}

// Recorded identifies the call or room session.
func (c RecordedCall) Recorded() Recorded {
	return Recorded{Project: c.Project, CallID: c.CallID, RoomSession: c.RoomSession}
}

// A Recording is a recording in progress. Its methods return immediately and are safe for
// concurrent use. Packets are ignored after Stop, and while the recording is paused.
//
// A Recording handles only the audio. Package recordings keeps the status, and decides whether a
// recording may pause, resume or stop.
type Recording interface {
	// Sid returns the id of the recording.
	Sid() string

	// Tap returns the tap for the packets of one side. A client that reconnects uses the same tap,
	// as does a callee that replaces another callee. Only audio is stored.
	Tap(s Side) Tap

	// Pause stops storing packets. Until Resume, the recording is silent. If skip is true, the
	// paused time is left out instead.
	Pause(skip bool)
	Resume()

	// Stop ends the recording. The file is made in the background. If a full or slow disk caused
	// gaps, the recording's error code reports the gaps.
	Stop()
}

// A Side is one of the two sides of a recorded call.
type Side int

// The sides of a call.
const (
	CallerSide Side = iota
	CalleeSide
)
