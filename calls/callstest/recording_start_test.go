package callstest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings"
)

func always() (bool, error) { return true, nil }

// A fullRecorder is a recorder that fails once to store the packets of one recording.
type fullRecorder struct {
	calls.Recorder
	sid    string
	failed atomic.Bool
}

func (r *fullRecorder) Start(ctx context.Context, c calls.RecordedCall) (calls.Recording, error) {
	if c.Sid == r.sid && r.failed.CompareAndSwap(false, true) {
		return nil, calls.ErrNotStored
	}
	return r.Recorder.Start(ctx, c)
}

// TestRecordBesideFull shows that a call is recorded even if the packets of another recording of the
// call cannot be stored.
func TestRecordBesideFull(t *testing.T) {
	full := &fullRecorder{}
	m, archive := newRecordedMeeting(t, &faultyRecorder{}, always, func(c *calls.Config) {
		full.Recorder = c.Recorder
		c.Recorder = full
	})
	p := m.ring("ada", "bob")
	other := recordings.Metadata{CallSid: p.caller.leg, Track: "inbound"}
	rec, _, err := archive.Announce(t.Context(), m.project, recordings.Description{Metadata: other})
	if err != nil {
		t.Fatal(err)
	}
	full.sid = rec.Sid
	p.callee.do(calls.Command{Op: calls.Answer, SDP: offer})
	p.isRecorded()
	if !full.failed.Load() {
		t.Error("the recorder stored the packets of both recordings")
	}
}
