package callstest

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A faultyRecorder is a recorder that cannot read the status of recordings while failures are left.
type faultyRecorder struct {
	calls.Recorder
	failures atomic.Int32
}

func (r *faultyRecorder) Wanted(ctx context.Context, of calls.Recorded) ([]calls.WantedRecording, error) {
	if r.failures.Add(-1) >= 0 {
		return nil, errors.New("the database is away")
	}
	return r.Recorder.Wanted(ctx, of)
}

// newRecordedMeeting returns a meeting whose calls can be recorded by the recorder, and the archive
// of recordings. isRecorded decides which calls are recorded from the beginning.
func newRecordedMeeting(
	t *testing.T, recorder *faultyRecorder, isRecorded func() (bool, error),
) (m *meeting, archive *recordings.Recordings) {
	t.Helper()
	m = newMeeting(t, func(c *calls.Config) {
		archive = recordings.New(recordings.Config{
			Store: c.Store.(*store.Store),
			Media: storetest.Media(t, filepath.Join(t.TempDir(), "media")),
		})
		spools := must[*record.Spools](t)(record.Open(record.Config{
			Dir:        t.TempDir(),
			Recordings: archive,
			Log:        slog.New(slog.DiscardHandler),
		}))
		t.Cleanup(func() { _ = spools.Close(context.Background()) })
		recorder.Recorder = spools
		c.Recorder = recorder
		c.IsRecorded = func(context.Context, calls.Record) (bool, error) { return isRecorded() }
	})
	return m, archive
}

// isRecorded ends the call of a pair once its callee was notified of a recording.
func (p pair) isRecorded() {
	m := p.callee.meeting
	m.t.Helper()
	eventually(m.t, "the callee to be notified of the recording", func() bool {
		updates := m.received(calls.RoomUpdated, p.callee)
		return len(updates) == 1 && updates[0].Room.Recording
	})
	p.caller.do(calls.Command{Op: calls.Hangup})
}

// TestRecordRequest shows that the request of a backend to record a call is carried out, even if the
// status of the recording cannot be read at first.
func TestRecordRequest(t *testing.T) {
	recorder := &faultyRecorder{}
	m, archive := newRecordedMeeting(t, recorder, func() (bool, error) { return false, nil })
	p := m.talk("ada", "bob")
	d := recordings.Description{Metadata: recordings.Metadata{CallSid: p.caller.leg}, Channels: 2}
	if _, _, err := archive.Announce(t.Context(), m.project, d); err != nil {
		t.Fatal(err)
	}
	recorder.failures.Store(1)
	if err := m.store.AskRecord(t.Context(), m.project, p.caller.leg); err != nil {
		t.Fatal(err)
	}
	go m.calls.Run(t.Context())
	p.isRecorded()
}

// TestRecordSetting shows that a call is recorded if its project wants it, even if the setting
// cannot be read at first.
func TestRecordSetting(t *testing.T) {
	var asked atomic.Int32
	m, _ := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) {
		if asked.Add(1) == 1 {
			return false, errors.New("the database is away")
		}
		return true, nil
	})
	m.talk("ada", "bob").isRecorded()
}
