package callstest

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
)

func always() (bool, error) { return true, nil }

// TestRecordTransferred shows that a recording that could only begin after a transfer names the
// parties after the transfer.
func TestRecordTransferred(t *testing.T) {
	recorder := &faultyRecorder{}
	m, archive := newRecordedMeeting(t, recorder, always)
	recorder.unstarted.Store(math.MaxInt32)
	p := m.talk("ada", "bob")
	eventually(t, "the recorder to fail", func() bool { return recorder.unstarted.Load() < math.MaxInt32 })
	p.transfers("carol")
	recorder.unstarted.Store(0)
	eventually(t, "the call to be recorded", func() bool { return p.call().Recorded })
	all := p.recordingsOf(archive)
	if len(all) != 1 {
		t.Fatalf("the call has %d recordings, want 1", len(all))
	}
	if got := all[0].To; got != "/private/carol" {
		t.Errorf("the recording is of a call to %s, want /private/carol", got)
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
}

// A losingStore is a store that records whether it has reported that another node carries a call.
type losingStore struct {
	*store.Store
	reported atomic.Bool
}

func (s *losingStore) FindCall(ctx context.Context, projectID, id string) (calls.Record, error) {
	r, err := s.Store.FindCall(ctx, projectID, id)
	if err == nil && r.Node != "node" {
		s.reported.Store(true)
	}
	return r, err
}

// TestRecordLost shows that a node does not begin a recording after another node has taken over its
// call. Otherwise, the new recording would end the other node's recording.
func TestRecordLost(t *testing.T) {
	recorder, rows := &faultyRecorder{}, &losingStore{}
	m, archive := newRecordedMeeting(t, recorder, always, func(c *calls.Config) {
		rows.Store = c.Store.(*store.Store)
		c.Store = rows
	})
	recorder.unstarted.Store(math.MaxInt32)
	p := m.talk("ada", "bob")
	if err := m.store.TakeCall(t.Context(), p.call(), "second"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node to find out that it has lost the call", rows.reported.Load)
	recorder.unstarted.Store(0)
	p.caller.do(calls.Command{Op: calls.Hangup})
	if got := len(p.recordingsOf(archive)); got != 0 {
		t.Errorf("the call has %d recordings, want none", got)
	}
}

// A fullRecorder is a recorder that cannot store packets when one recording first starts.
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
	eventually(t, "the call to be recorded", func() bool { return p.call().Recorded })
	if !full.failed.Load() {
		t.Error("the recorder stored the packets of both recordings, want it to fail for one")
	}
	for _, rec := range p.recordingsOf(archive) {
		if rec.Track == "both" && rec.Status != recordings.InProgress {
			t.Errorf("the recording of both sides is %s, want %s", rec.Status, recordings.InProgress)
		}
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
}
