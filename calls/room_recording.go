package calls

import (
	"context"
	"time"

	"github.com/selvage/selvage/fabric"
)

// A recording of a room contains the sum of the audio of all members. A recording of a single
// member belongs to the member's call instead.

var _ recorded = (*room)(nil)

// recordFromStart starts the recording that the settings of the room require.
func (r *room) recordFromStart() {
	if r.calls.recorder != nil {
		go r.recordings.start(0, r.session.recorded(time.Now()))
	}
}

// recorded returns the description of a recording of the session. The recording begins at started.
func (s RoomSession) recorded(started time.Time) RecordedCall {
	return RecordedCall{Project: s.ProjectID, RoomSession: s.ID, To: s.Address, Mono: true, Started: started}
}

// A RoomRecordingReport is the data of [fabric.RoomRecordingCompleted].
type RoomRecordingReport struct {
	RoomDocument
	Recording ReportedRecording `json:"recording"`
}

// RecordingEvent returns the webhook event for a recording of the session. The recording was
// completed at the given time.
func (s RoomSession) RecordingEvent(sid string, length time.Duration, at time.Time) (fabric.Event, error) {
	return fabric.NewEvent(fabric.RoomRecordingCompleted, s.ProjectID, s.ID, at,
		RoomRecordingReport{s.Document(), ReportedRecording{fabric.HideSid(sid), length.Seconds()}})
}

func (r *room) canBeRecorded() bool { return !r.ended }

func (r *room) setTaps() { r.mixer.Record(r.recordings.tap(CallerSide)) }

func (r *room) people() []*leg { return peopleIn(r.legs()) }

func (r *room) tellRecorded() { r.tellUpdated() }

// saveRecorded records in the session whether it is being recorded.
func (r *room) saveRecorded(listening, isRetry bool) error {
	if r.session.Recorded == listening && !r.unnoted {
		return nil
	}
	r.session.Recorded = listening
	err := r.calls.slowness.write(r.unnoted && isRetry, r.write)
	r.unnoted = err != nil
	return err
}

// RecordRoom makes the recorder of a running room session match the stored status of the session's
// recordings. If this node carries the session, RecordRoom returns when the recorder matches. If
// another node carries it, the recorder there matches within a second. If the session is unknown or
// has ended, RecordRoom returns problem.NotFound.
func (c *Calls) RecordRoom(ctx context.Context, projectID, id string) error {
	r := c.rooms.findSession(projectID, id)
	if r == nil || c.recorder == nil {
		return c.rooms.store.AskRecordRoom(ctx, projectID, id)
	}
	return r.recordings.change(nil)
}
