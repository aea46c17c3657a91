package recordings_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// A switchboard is a fake that carries one call. It stores the status of each recording that Record
// receives.
type switchboard struct {
	call     recordings.Description
	statuses []recordings.Status
	fault    error
}

func (s *switchboard) FindCall(_ context.Context, _, callSid string) (recordings.Description, error) {
	if callSid != s.call.CallSid {
		return recordings.Description{}, problem.NoSuch("call")
	}
	return s.call, nil
}

func (s *switchboard) FindConference(_ context.Context, _, sid string) (recordings.Description, error) {
	if sid == "" || sid != s.call.ConferenceSid {
		return recordings.Description{}, problem.NoSuch("conference")
	}
	return s.call, nil
}

func (s *switchboard) Record(_ context.Context, rec recordings.Recording) error {
	if rec.CallSid != s.call.CallSid || rec.ConferenceSid != s.call.ConferenceSid {
		return problem.NoSuch("call")
	}
	s.statuses = append(s.statuses, rec.Status)
	return s.fault
}

// TestCarriedCall shows that a call carried by this deployment can be recorded immediately. Its
// recorder follows each change.
func TestCarriedCall(t *testing.T) {
	s := &switchboard{}
	w := newWorld(t, func(c *recordings.Config) { c.Calls = s })
	alice := w.addSubscriber(t, "alice")
	s.call = recordings.Description{
		Metadata: recordings.Metadata{
			CallSid:   "c",
			From:      "/private/alice",
			To:        "/private/bob",
			Direction: "inbound",
		},
		Subscribers: []string{alice, "deleted"},
	}

	rec, err := w.Start(t.Context(), w.project, "c", recordings.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Status != recordings.InProgress || rec.Channels != 2 {
		t.Errorf("the recording is %s with %d channels, want in-progress with 2", rec.Status, rec.Channels)
	}
	if rec.From != "/private/alice" {
		t.Errorf("the recording is from %q, want /private/alice", rec.From)
	}
	owner := recordings.Owner{ProjectID: w.project, SubscriberID: alice}
	if _, err := w.Find(t.Context(), owner, rec.Sid); err != nil {
		t.Errorf("alice's recording is not found as hers: %v", err)
	}

	for _, status := range []recordings.Status{recordings.Paused, recordings.InProgress} {
		rec, err = w.Move(t.Context(), rec, status, "skip")
		if err != nil {
			t.Fatal(err)
		}
	}

	rec, err = w.Start(t.Context(), w.project, "c", recordings.Start{Channels: "mono"})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Channels != 1 {
		t.Errorf("after a start in mono, the recording has %d channels, want 1", rec.Channels)
	}
	if _, err := w.Move(t.Context(), rec, recordings.Stopped, ""); err != nil {
		t.Fatal(err)
	}

	want := []recordings.Status{
		recordings.InProgress,
		recordings.Paused,
		recordings.InProgress,
		recordings.InProgress,
		recordings.Stopped,
	}
	if !slices.Equal(s.statuses, want) {
		t.Errorf("the recorder followed %q, want %q", s.statuses, want)
	}
}

// TestCarriedConference shows that a conference carried by this deployment is recorded in one
// channel.
func TestCarriedConference(t *testing.T) {
	s := &switchboard{call: recordings.Description{
		Channels: 1,
		Metadata: recordings.Metadata{ConferenceSid: "room", To: "/public/room", Track: "both"},
	}}
	w := newWorld(t, func(c *recordings.Config) { c.Calls = s })
	for name, start := range map[string]recordings.Start{
		"another track": {Track: "inbound"},
		"two channels":  {Channels: "dual"},
	} {
		if _, err := w.StartConference(t.Context(), w.project, "room", start); !errors.Is(err, problem.Invalid) {
			t.Errorf("starting with %s: %v, want %v", name, err, problem.Invalid)
		}
	}

	rec, err := w.StartConference(t.Context(), w.project, "room", recordings.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Channels != 1 {
		t.Errorf("the recording has %d channels, want 1", rec.Channels)
	}
	if rec.ConferenceSid != "room" || rec.CallSid != "" || rec.To != "/public/room" {
		t.Errorf("the recording is of conference %q, call %q, to %q, want room, none, /public/room",
			rec.ConferenceSid, rec.CallSid, rec.To)
	}
	if rec.Source != "StartConferenceRecording" || rec.Track != "both" {
		t.Errorf("the recording has the source %q and the track %q, want StartConferenceRecording and both",
			rec.Source, rec.Track)
	}

	if _, err := w.Move(t.Context(), rec, recordings.Stopped, ""); err != nil {
		t.Fatal(err)
	}
	want := []recordings.Status{recordings.InProgress, recordings.Stopped}
	if !slices.Equal(s.statuses, want) {
		t.Errorf("the recorder followed %q, want %q", s.statuses, want)
	}
}

// TestCarriedCallDeleted shows that a recorder stops if its recording is deleted during the call.
func TestCarriedCallDeleted(t *testing.T) {
	s := &switchboard{call: recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}}
	w := newWorld(t, func(c *recordings.Config) { c.Calls = s })
	rec, err := w.Start(t.Context(), w.project, "c", recordings.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
		t.Fatal(err)
	}
	want := []recordings.Status{recordings.InProgress, recordings.Stopped}
	if !slices.Equal(s.statuses, want) {
		t.Errorf("the recorder followed %q, want %q", s.statuses, want)
	}
}

// TestCarriedMember shows that the recording of a conference's member has the only track that can
// be recorded.
func TestCarriedMember(t *testing.T) {
	s := &switchboard{call: recordings.Description{
		Channels: 1,
		Metadata: recordings.Metadata{CallSid: "c", Track: "inbound"},
	}}
	w := newWorld(t, func(c *recordings.Config) { c.Calls = s })
	rec, err := w.Start(t.Context(), w.project, "c", recordings.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Track != "inbound" || rec.Channels != 1 {
		t.Errorf("the recording has the track %q and %d channels, want inbound and 1", rec.Track, rec.Channels)
	}
	if rec.Source != "StartCallRecordingApi" {
		t.Errorf("the recording has the source %q, want StartCallRecordingApi", rec.Source)
	}
}

// TestCarriedCallEnds shows that a call that ends before recording begins leaves no recording.
func TestCarriedCallEnds(t *testing.T) {
	for _, fault := range []error{problem.NoSuch("call"), errors.New("node lost")} {
		s := &switchboard{call: recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}, fault: fault}
		w := newWorld(t, func(c *recordings.Config) { c.Calls = s })
		rec, err := w.Start(t.Context(), w.project, "c", recordings.Start{})
		if err == nil || errors.Is(err, problem.NotFound) {
			t.Errorf("Start after %v: %v, want an error of a different kind than NotFound", fault, err)
		}
		_, err = w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("finding the recording after %v: %v, want %v", fault, err, problem.NotFound)
		}
	}
}

// TestLateMedia shows that an upload marked as late completes the named recording once, even after
// the recording has stopped waiting for media. Other uploads do not complete it.
func TestLateMedia(t *testing.T) {
	w := newWorld(t)
	call := recordings.Metadata{CallSid: "c"}
	rec, _, err := w.Announce(t.Context(), w.project, recordings.Description{Metadata: call, Channels: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(recordings.DefaultWait + time.Hour)
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	d := recordings.Description{
		Sid:            rec.Sid,
		IdempotencyKey: "spool:" + rec.Sid,
		ErrorCode:      recordings.Incomplete,
	}
	if _, _, err := w.ingest(t, "speech_stereo_8k.wav", d); !errors.Is(err, problem.Invalid) {
		t.Errorf("media after the wait: %v, want %v", err, problem.Invalid)
	}

	d.Late = true
	for i, wantAdded := range []bool{true, false} {
		got, added, err := w.ingest(t, "speech_stereo_8k.wav", d)
		if err != nil {
			t.Fatal(err)
		}
		if added != wantAdded {
			t.Errorf("late media, time %d: added %v, want %v", i+1, added, wantAdded)
		}
		if got.Sid != rec.Sid || got.CallSid != "c" {
			t.Errorf("late media, time %d: recording %s of %q, want %s of c", i+1, got.Sid, got.CallSid, rec.Sid)
		}
		if got.Status != recordings.Completed || got.ErrorCode != recordings.Incomplete {
			t.Errorf("late media, time %d: %s with the error %s, want %s with %s",
				i+1, got.Status, got.ErrorCode, recordings.Completed, recordings.Incomplete)
		}
	}

	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys := w.keys(t); len(keys) != 1 {
		t.Errorf("the media of %d recordings are stored, want 1", len(keys))
	}

	d.IdempotencyKey = ""
	if _, _, err := w.ingest(t, "speech_s16_8k.wav", d); !errors.Is(err, problem.Invalid) {
		t.Errorf("other media of a completed recording: %v, want %v", err, problem.Invalid)
	}
}
