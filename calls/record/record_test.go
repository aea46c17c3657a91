package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store/storetest"
)

// TestRecording follows a recording from its announcement to its file.
func TestRecording(t *testing.T) {
	w := newWorld(t)
	alice := storetest.AddSubscriber(t, w.store, w.project, "alice", time.Now())
	call := w.call(4 * time.Second)
	call.Subscribers = []string{alice}

	p := w.start(t, call)
	if again := w.start(t, call); again != p {
		t.Error("a second Start of the same call begins another recording")
	}
	announced := w.find(t, p.Sid())
	if announced.Status != recordings.InProgress {
		t.Errorf("the status of the announced recording is %s, want in-progress", announced.Status)
	}
	if announced.Channels != 2 {
		t.Errorf("the announced recording has %d channels, want 2", announced.Channels)
	}
	if announced.CallSid != "c" {
		t.Errorf("the announced recording belongs to call %q, want c", announced.CallSid)
	}
	if got := w.Stats().Recordings; got != 1 {
		t.Errorf("Stats counts %d recordings in progress, want 1", got)
	}

	speak(p, 0, 200)
	p.stopAt(4 * time.Second)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	rec := w.find(t, p.Sid())
	want := rec
	want.Status = recordings.Completed
	want.ErrorCode = ""
	want.Channels = 2
	want.SampleRate = 8000
	want.From = "/private/alice"
	want.To = "/private/bob"
	want.Direction = "inbound"
	want.StartTime = call.Started.Truncate(time.Microsecond)
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Errorf("the finished recording differs from the call (-want +got):\n%s", diff)
	}
	if d := rec.Duration(); d != 4*time.Second {
		t.Errorf("the recording lasts %v, want 4 s", d)
	}

	owner := recordings.Owner{ProjectID: w.project, SubscriberID: alice}
	if _, err := w.recordings.Find(t.Context(), owner, p.Sid()); err != nil {
		t.Errorf("alice cannot find the recording: %v", err)
	}
	w.wantSpools(t, 0)
	if _, err := w.Start(t.Context(), call); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Start after Close: %v, want %v", err, problem.Unavailable)
	}
}

// TestRoom shows that the recording of a room session has one channel, which is as loud as the sum
// of the room. The recording can be found by the id of the session.
func TestRoom(t *testing.T) {
	w := newWorld(t)
	room := calls.RecordedCall{
		Project:     w.project,
		RoomSession: "s",
		To:          "/public/lobby",
		Mono:        true,
		Started:     time.Now().Add(-4 * time.Second),
	}
	p := w.start(t, room)
	wanted, err := w.Wanted(t.Context(), room.Recorded())
	if err != nil {
		t.Fatal(err)
	}
	if len(wanted) != 1 {
		t.Fatalf("the session has %d wanted recordings, want 1", len(wanted))
	}
	if got := wanted[0].Sid; got != p.Sid() {
		t.Errorf("the wanted recording is %s, want %s", got, p.Sid())
	}
	if got := wanted[0].RoomSession; got != "s" {
		t.Errorf("the session of the wanted recording is %q, want s", got)
	}

	if recorded, err := w.Interrupt(t.Context(), room.Recorded()); err != nil || recorded {
		t.Errorf("Interrupt of a recording of this process = %v, %v, want false and no error", recorded, err)
	}
	for i := range 200 {
		packet := audio(p, i)
		packet.Payload = []byte(strings.Repeat("\x20", 80) + strings.Repeat("\xa0", 80))
		p.Tap(calls.CallerSide).Packet(packet)
	}

	p.Stop()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	rec := w.find(t, p.Sid())
	want := rec
	want.Status = recordings.Completed
	want.Channels = 1
	want.ConferenceSid = "s"
	want.CallSid = ""
	want.Source = "StartConferenceRecording"
	want.To = "/public/lobby"
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Errorf("the recording differs from the room session (-want +got):\n%s", diff)
	}
	loudest := int16(0)
	for _, v := range w.samples(t, p.Sid()) {
		loudest = max(loudest, v)
	}
	if loudest < 7000 { // the PCMU byte 0x20 decodes to 7932
		t.Errorf("the loudest sample is %d, want at least 7000", loudest)
	}
}

// TestInterrupted shows that a recording ends at its last packet if its process is killed. The call
// can then be recorded again.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	sid := w.interrupted(t, w.call(time.Hour), 150)

	p := w.start(t, w.call(time.Second))
	if p.Sid() == sid {
		t.Fatal("the recording of a killed process has not ended")
	}
	if got := w.find(t, sid).Status; got != recordings.Stopped {
		t.Errorf("the interrupted recording is %s, want stopped", got)
	}
	w.recover(t)

	rec := w.find(t, sid)
	if rec.Status != recordings.Completed {
		t.Errorf("after the recovery, the interrupted recording is %s, want completed", rec.Status)
	}
	if rec.ErrorCode != recordings.Incomplete {
		t.Errorf("the interrupted recording has the error %q, want %s", rec.ErrorCode, recordings.Incomplete)
	}
	if got, want := rec.Duration(), 2980*time.Millisecond; got != want {
		t.Errorf("the interrupted recording lasts %v, want %v", got, want)
	}

	p.Stop()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRecordings(t, 2)
	w.wantSpools(t, 0)
}

// TestOnce shows that a spool becomes only one recording, no matter when its process is killed.
func TestOnce(t *testing.T) {
	w := newWorld(t)
	sid := w.interrupted(t, w.call(time.Hour), 50)
	spool := filepath.Join(w.dir.Name(), sid+extension)
	content, err := os.ReadFile(spool)
	if err != nil {
		t.Fatal(err)
	}

	w.recover(t)
	first := w.find(t, sid)
	if err := os.WriteFile(spool, content, 0o600); err != nil { // as if the spool had not been deleted
		t.Fatal(err)
	}
	w.recover(t)

	// An attempt that began before the recording was completed ingests the same spool again.
	if err := os.WriteFile(spool, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(spool)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := w.ingest(t.Context(), file, first); err != nil {
		t.Errorf("ingesting the same spool again: %v", err)
	}

	w.wantRecordings(t, 1)
	now := w.find(t, sid)
	if now.MediaKey != first.MediaKey {
		t.Errorf("the media key has changed to %q, want %q", now.MediaKey, first.MediaKey)
	}
	if now.SHA256 != first.SHA256 {
		t.Errorf("the hash of the audio has changed to %s, want %s", now.SHA256, first.SHA256)
	}
}

// TestSpoolOutlives shows what happens to a spool if its recording changed while no process was
// running. A deleted recording stays deleted. An abandoned recording is completed. A spool without
// a header is deleted, and a spool of a later version is kept.
func TestSpoolOutlives(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		w := newWorld(t)
		sid := w.interrupted(t, w.call(time.Hour), 50)
		if err := w.recordings.Delete(t.Context(), w.project, sid); err != nil {
			t.Fatal(err)
		}
		w.recover(t)
		w.wantRecordings(t, 0)
		w.wantSpools(t, 0)
	})

	t.Run("abandoned", func(t *testing.T) {
		w := newWorld(t)
		sid := w.interrupted(t, w.call(time.Hour), 50)
		w.ahead = 48 * time.Hour
		if err := w.recordings.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.find(t, sid).Status; got != recordings.Absent {
			t.Fatalf("after two days, the recording is %s, want absent", got)
		}
		w.recover(t)
		if got := w.find(t, sid).Status; got != recordings.Completed {
			t.Errorf("after the recovery, the recording is %s, want completed", got)
		}
	})

	t.Run("without a header", func(t *testing.T) {
		w := newWorld(t)
		if err := os.WriteFile(filepath.Join(w.dir.Name(), "x"+extension), []byte(magic+"torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.recover(t)
		w.wantSpools(t, 0)
	})

	t.Run("of a later version", func(t *testing.T) {
		w := newWorld(t)
		spool := []byte(anyMagic + "2\nother blocks")
		if err := os.WriteFile(filepath.Join(w.dir.Name(), "x"+extension), spool, 0o600); err != nil {
			t.Fatal(err)
		}
		w.recover(t)
		w.wantSpools(t, 1)
	})
}

// TestRetry shows that a spool is kept until its recording is safe.
func TestRetry(t *testing.T) {
	w := newWorld(t)
	sid := w.interrupted(t, w.call(time.Hour), 50)
	if err := os.RemoveAll(w.media); err != nil {
		t.Fatal(err)
	}
	w.recover(t)
	w.wantSpools(t, 1)
	if w.isDue(sid) {
		t.Fatal("after a failed attempt, the spool is due at once, want it to wait")
	}

	if err := os.MkdirAll(filepath.Join(w.media, "incoming"), 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Config{Dir: w.dir.Name(), Recordings: reopenRecordings(t, w)})
	if err != nil {
		t.Fatal(err)
	}
	w.Spools = again
	w.recover(t)
	if got := w.find(t, sid).Status; got != recordings.Completed {
		t.Errorf("after the retry, the recording is %s, want completed", got)
	}
	w.wantSpools(t, 0)
}

// TestUnreadableSpool shows that a spool that cannot be opened does not keep the others from being
// rendered.
func TestUnreadableSpool(t *testing.T) {
	w := newWorld(t)
	sid := w.interrupted(t, w.call(time.Hour), 50)
	if err := os.Mkdir(filepath.Join(w.dir.Name(), "0"+extension), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.enqueueUnlocked(t.Context()); err == nil {
		t.Error("the spool that cannot be opened causes no error")
	}
	if err := w.renders.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.find(t, sid).Status; got != recordings.Completed {
		t.Errorf("after the recovery, the recording is %s, want completed", got)
	}
}

// TestLock shows that a process does not touch the spools of other processes.
func TestLock(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, w.call(time.Second))
	other, err := Open(Config{Dir: w.dir.Name(), Recordings: w.recordings})
	if err != nil {
		t.Fatal(err)
	}

	if err := other.enqueueUnlocked(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.renders.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.find(t, p.Sid()).Status; got != recordings.InProgress {
		t.Errorf("after another process has looked, the recording is %s, want in-progress", got)
	}

	p.Stop()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLongAddress shows that a call is recorded even if the address of its caller is longer than a
// recording may name.
func TestLongAddress(t *testing.T) {
	w := newWorld(t)
	call := w.call(0)
	call.From = "sip:" + strings.Repeat("€", 100)
	p := w.start(t, call)
	defer p.Stop()
	if got, want := w.find(t, p.Sid()).From, "sip:"+strings.Repeat("€", 83); got != want {
		t.Errorf("the recording is from %q, want %q", got, want)
	}
}

// TestStartFails shows that a recording that cannot begin leaves no trace, or is stopped if only
// its spool cannot be created.
func TestStartFails(t *testing.T) {
	w := newWorld(t)
	call := w.call(0)
	call.CallID = strings.Repeat("c", 300)
	if _, err := w.Start(t.Context(), call); !errors.Is(err, problem.Invalid) {
		t.Errorf("Start of a call with a long id: %v, want %v", err, problem.Invalid)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Start(ended, w.call(0)); err == nil {
		t.Error("Start with a canceled context succeeds")
	}
	w.wantRecordings(t, 0)
	w.wantSpools(t, 0)
	if got := w.Stats().Recordings; got != 0 {
		t.Errorf("Stats counts %d recordings in progress, want 0", got)
	}

	if err := os.RemoveAll(w.dir.Name()); err != nil {
		t.Fatal(err)
	}
	_, err := w.Start(t.Context(), w.call(0))
	if err == nil {
		t.Fatal("Start without a directory succeeds")
	}
	w.wantRecordings(t, 1)
	if sid := w.all(t)[0].Sid; strings.Contains(err.Error(), sid) {
		t.Errorf("the error %q contains the Sid %s, want no Sid", err, sid)
	}
	if got := w.all(t)[0].Status; got != recordings.Stopped {
		t.Errorf("without a directory, the recording is %s, want stopped", got)
	}
}
