package callstest

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A faultyRecorder is a recorder that fails several times before it works.
type faultyRecorder struct {
	calls.Recorder
	dir       string       // the directory of its spools
	failures  atomic.Int32 // how many more times reading the status of recordings fails
	unstarted atomic.Int32 // how many more times beginning a recording fails
}

func (r *faultyRecorder) Start(ctx context.Context, c calls.RecordedCall) (calls.Recording, error) {
	if r.unstarted.Add(-1) >= 0 {
		return nil, errors.New("the database is unavailable")
	}
	return r.Recorder.Start(ctx, c)
}

func (r *faultyRecorder) Wanted(ctx context.Context, of calls.Recorded) ([]calls.WantedRecording, error) {
	if r.failures.Add(-1) >= 0 {
		return nil, errors.New("the database is unavailable")
	}
	return r.Recorder.Wanted(ctx, of)
}

// An ender passes the end of a recording to the calls of a meeting, as the server does.
type ender struct{ *meeting }

func (e ender) FindCall(context.Context, string, string) (recordings.Description, error) {
	return recordings.Description{}, problem.NoSuch("call")
}

func (e ender) FindConference(context.Context, string, string) (recordings.Description, error) {
	return recordings.Description{}, problem.NoSuch("conference")
}

func (e ender) Record(ctx context.Context, rec recordings.Recording) error {
	if rec.Status != recordings.Stopped {
		return problem.NoSuch("call")
	}
	return e.calls.Record(ctx, rec.ProjectID, rec.CallSid)
}

// newRecordedMeeting returns a meeting whose calls can be recorded by the recorder, and the archive
// of recordings. isRecorded decides which calls are recorded from the beginning. The functions in
// change may modify the configuration of the calls.
func newRecordedMeeting(
	t *testing.T, recorder *faultyRecorder, isRecorded func() (bool, error), change ...func(*calls.Config),
) (m *meeting, archive *recordings.Recordings) {
	t.Helper()
	end := &ender{}
	m = newMeeting(t, func(c *calls.Config) {
		archive = recordings.New(recordings.Config{
			Store: c.Store.(*store.Store),
			Media: storetest.Media(t, filepath.Join(t.TempDir(), "media")),
			Calls: end,
		})
		recorder.dir = t.TempDir()
		spools := must[*record.Spools](t)(record.Open(record.Config{
			Dir:        recorder.dir,
			Recordings: archive,
			Log:        slog.New(slog.DiscardHandler),
		}))
		t.Cleanup(func() { _ = spools.Close(context.Background()) })
		recorder.Recorder = spools
		c.Recorder = recorder
		c.IsRecorded = func(context.Context, calls.Record) (bool, error) { return isRecorded() }
		for _, f := range change {
			f(c)
		}
	})
	end.meeting = m
	return m, archive
}

// isRecorded waits until the callee has been notified of a recording, and then ends the pair's call.
func (p pair) isRecorded() {
	m := p.callee.meeting
	m.t.Helper()
	eventually(m.t, "the callee to be notified of the recording", func() bool {
		updates := m.received(calls.RoomUpdated, p.callee)
		return len(updates) == 1 && updates[0].Room.Recording
	})
	p.caller.do(calls.Command{Op: calls.Hangup})
}

// announced announces a recording of the pair's call, and requests it from the call's node.
func (p pair) announced(archive *recordings.Recordings) {
	m := p.caller.meeting
	m.t.Helper()
	d := recordings.Description{Metadata: recordings.Metadata{CallSid: p.caller.leg}, Channels: 2}
	if _, _, err := archive.Announce(m.t.Context(), m.project, d); err != nil {
		m.t.Fatal(err)
	}
	if err := m.store.AskRecord(m.t.Context(), m.project, p.caller.leg); err != nil {
		m.t.Fatal(err)
	}
}

// TestRecordRequest shows that the request of a backend to record a call is carried out, even if the
// status of the recording cannot be read at first.
func TestRecordRequest(t *testing.T) {
	recorder := &faultyRecorder{}
	m, archive := newRecordedMeeting(t, recorder, func() (bool, error) { return false, nil })
	p := m.talk("ada", "bob")
	recorder.failures.Store(1)
	p.announced(archive)
	go m.calls.Run(t.Context())
	p.isRecorded()
}

// TestRecordNotStored shows that a request to record a call returns an error and ends the recording if
// its packets cannot be stored. Later requests succeed.
func TestRecordNotStored(t *testing.T) {
	recorder := &faultyRecorder{}
	m, archive := newRecordedMeeting(t, recorder, func() (bool, error) { return false, nil })
	p := m.talk("ada", "bob")
	p.announced(archive)
	if err := os.Remove(recorder.dir); err != nil {
		t.Fatal(err)
	}

	done := make(chan error, 1)
	go func() { done <- m.calls.Record(context.Background(), m.project, p.caller.leg) }()
	eventually(t, "the request to be answered", func() bool { return len(done) > 0 })
	if err := <-done; !errors.Is(err, calls.ErrNotStored) {
		t.Errorf("Record without a directory of spools = %v, want ErrNotStored", err)
	}
	if got := p.recordingsOf(archive)[0].Status; got != recordings.Stopped {
		t.Errorf("the recording is %s, want stopped", got)
	}
	if err := m.calls.Record(t.Context(), m.project, p.caller.leg); err != nil {
		t.Errorf("Record after the recording has ended = %v", err)
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
}

// TestRecordStart shows that a call is recorded, even if the first attempt to begin the recording fails
// and its status cannot be read at first. The recording ends with the call.
func TestRecordStart(t *testing.T) {
	recorder := &faultyRecorder{}
	m, archive := newRecordedMeeting(t, recorder, func() (bool, error) { return true, nil })
	recorder.unstarted.Store(1)
	recorder.failures.Store(1)
	p := m.talk("ada", "bob")
	p.isRecorded()
	eventually(t, "the recording to end", func() bool {
		all := p.recordingsOf(archive)
		return len(all) == 1 && all[0].Status != recordings.InProgress
	})
}

// TestRecordStartEnded shows that a recording whose status cannot be read ends with its call.
func TestRecordStartEnded(t *testing.T) {
	recorder := &faultyRecorder{}
	m, archive := newRecordedMeeting(t, recorder, func() (bool, error) { return true, nil })
	recorder.failures.Store(math.MaxInt32)
	p := m.talk("ada", "bob")
	eventually(t, "the recording to begin", func() bool { return len(p.recordingsOf(archive)) == 1 })
	p.caller.do(calls.Command{Op: calls.Hangup})
	eventually(t, "the recording to end", func() bool {
		return p.recordingsOf(archive)[0].Status != recordings.InProgress
	})
}

// TestRecordTakenOver shows that a call of a lost node is recorded again, even if the recording of
// the lost node cannot be ended at first.
func TestRecordTakenOver(t *testing.T) {
	var second calls.Config
	m, archive := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) { return true, nil },
		func(c *calls.Config) {
			second = *c
			second.Node = "second"
		})
	p := m.talk("ada", "bob")
	eventually(t, "the call to be recorded", func() bool { return p.call().Recorded })

	spools := must[*record.Spools](t)(record.Open(record.Config{
		Dir:        t.TempDir(),
		Recordings: archive,
		Log:        slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(func() { _ = spools.Close(context.Background()) })
	second.Recorder = &uninterruptible{Recorder: spools}
	m.calls = calls.New(second)
	p.caller.do(calls.Command{Op: calls.Invite, Attach: true, SDP: offer})
	eventually(t, "the call to be recorded again", func() bool { return len(p.recordingsOf(archive)) == 2 })
	p.caller.do(calls.Command{Op: calls.Hangup})
}

// An uninterruptible is a recorder whose first attempt to end the recordings of a lost node fails.
type uninterruptible struct {
	calls.Recorder
	asked atomic.Int32
}

func (r *uninterruptible) Interrupt(ctx context.Context, of calls.Recorded) (bool, error) {
	if r.asked.Add(1) == 1 {
		return false, errors.New("the database is unavailable")
	}
	return r.Recorder.Interrupt(ctx, of)
}

// An unrecordedStore is a store whose first attempt to write that a call is being recorded fails.
type unrecordedStore struct {
	*store.Store
	asked atomic.Int32
}

func (s *unrecordedStore) SaveRecorded(ctx context.Context, r calls.Record) error {
	if s.asked.Add(1) == 1 {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveRecorded(ctx, r)
}

// TestSaveRecorded shows that the record of a call names the call's recording, even if the first
// attempt to write this fails.
func TestSaveRecorded(t *testing.T) {
	m, archive := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) { return false, nil },
		func(c *calls.Config) { c.Store = &unrecordedStore{Store: c.Store.(*store.Store)} })
	p := m.talk("ada", "bob")
	p.announced(archive)
	go m.calls.Run(t.Context())
	eventually(t, "the record to name the recording", func() bool { return p.call().RecordingSid != "" })
	if !p.call().Recorded {
		t.Error("the record does not say that the call is being recorded")
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
}

// TestSaveRecordedAtEnd shows that the record of an ended call names the call's recording, even if this
// could not be written when the recording began.
func TestSaveRecordedAtEnd(t *testing.T) {
	m, _ := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) { return true, nil },
		func(c *calls.Config) { c.Store = &unrecordedStore{Store: c.Store.(*store.Store)} })
	p := m.talk("ada", "bob")
	p.isRecorded()
	eventually(t, "the call to end", func() bool { return p.call().State == calls.Completed })
	if p.call().RecordingSid == "" {
		t.Error("the record does not name the recording")
	}
}

// An unsavedRooms is a store whose first attempt to write a room session fails.
type unsavedRooms struct {
	*store.Store
	asked atomic.Int32
}

func (s *unsavedRooms) SaveRoom(ctx context.Context, r calls.RoomSession) error {
	if s.asked.Add(1) == 1 {
		return errors.New("the database is unavailable")
	}
	return s.Store.SaveRoom(ctx, r)
}

// TestSaveRecordedRoom shows that a stored room session is marked as recorded, even if the first attempt
// to write the mark fails.
func TestSaveRecordedRoom(t *testing.T) {
	m, archive := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) { return false, nil },
		func(c *calls.Config) { c.Rooms = &unsavedRooms{Store: c.Store.(*store.Store)} })
	guest := m.guest().join()
	session := func() calls.RoomSession {
		t.Helper()
		running := must[[]calls.RoomSession](t)(m.store.RunningRooms(t.Context(), "node"))
		if len(running) != 1 {
			t.Fatalf("%d room sessions are running, want 1", len(running))
		}
		return running[0]
	}

	id := session().ID
	d := recordings.Description{Metadata: recordings.Metadata{ConferenceSid: id}, Channels: 1}
	if _, _, err := archive.Announce(t.Context(), m.project, d); err != nil {
		t.Fatal(err)
	}
	if err := m.store.AskRecordRoom(t.Context(), m.project, id); err != nil {
		t.Fatal(err)
	}
	go m.calls.Run(t.Context())
	eventually(t, "the session to be marked as recorded", func() bool { return session().Recorded })
	guest.do(calls.Command{Op: calls.Hangup})
}

// TestRecordSetting shows that a call is recorded if its project wants it, even if the setting
// cannot be read at first.
func TestRecordSetting(t *testing.T) {
	var asked atomic.Int32
	m, _ := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) {
		if asked.Add(1) == 1 {
			return false, errors.New("the database is unavailable")
		}
		return true, nil
	})
	m.talk("ada", "bob").isRecorded()
}

// transfers transfers the call of a pair to a new subscriber, who answers. It returns the new client.
func (p pair) transfers(to string) *member {
	m := p.caller.meeting
	m.t.Helper()
	third := m.online(to)
	p.callee.do(calls.Command{Op: calls.TransferTo, To: "/private/" + to})
	third.rings()
	third.do(calls.Command{Op: calls.Answer, SDP: offer})
	return third
}

// recordingsOf returns the recordings of a pair's call.
func (p pair) recordingsOf(archive *recordings.Recordings) []recordings.Recording {
	m := p.caller.meeting
	m.t.Helper()
	filter := recordings.Filter{Owner: recordings.Owner{ProjectID: m.project}, CallSid: p.caller.leg}
	return must[page.Page[recordings.Recording]](m.t)(
		archive.List(context.Background(), filter, page.Query{Size: 10})).Items
}

// TestTransferEndsRecording shows that the recording of a call ends when a party leaves by a
// transfer, even if the setting of the new parties cannot be read. A new recording begins once it
// can be read.
func TestTransferEndsRecording(t *testing.T) {
	var unavailable atomic.Bool
	m, archive := newRecordedMeeting(t, &faultyRecorder{}, func() (bool, error) {
		if unavailable.Load() {
			return false, errors.New("the database is unavailable")
		}
		return true, nil
	})
	p := m.talk("ada", "bob")
	eventually(t, "the call to be recorded", func() bool { return p.call().Recorded })

	unavailable.Store(true)
	p.transfers("carol")
	eventually(t, "the recording to end with bob", func() bool { return !p.call().Recorded })
	if got := p.recordingsOf(archive); len(got) != 1 {
		t.Errorf("the call has %d recordings, want 1", len(got))
	}

	unavailable.Store(false)
	eventually(t, "the call with carol to be recorded", func() bool { return p.call().Recorded })
	if got := p.recordingsOf(archive); len(got) != 2 {
		t.Errorf("the call has %d recordings, want 2", len(got))
	}
	p.caller.do(calls.Command{Op: calls.Hangup})
}
