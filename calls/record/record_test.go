package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	rec := w.find(t, p.Sid())
	if rec.Status != recordings.InProgress || rec.Channels != 2 || rec.CallSid != "c" {
		t.Errorf("the announced recording is %s, with %d channels of call %q, want in-progress, with 2 of c",
			rec.Status, rec.Channels, rec.CallSid)
	}
	if got := w.Stats(); got.Recordings != 1 {
		t.Errorf("Stats = %+v, want one recording", got)
	}

	speak(p, 0, 200)
	p.stopAt(4 * time.Second)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	rec = w.find(t, p.Sid())
	if rec.Status != recordings.Completed || rec.ErrorCode != "" || rec.Channels != 2 || rec.SampleRate != 8000 {
		t.Errorf("the result is %s %q, with %d channels of %d Hz, want completed, 2 of 8000", rec.Status, rec.ErrorCode,
			rec.Channels, rec.SampleRate)
	}
	if rec.From != "/private/alice" || rec.To != "/private/bob" || rec.Direction != "inbound" ||
		!rec.StartTime.Equal(call.Started.Truncate(time.Microsecond)) {
		t.Errorf("recorded from %q to %q, %s, at %v, want the call's", rec.From, rec.To, rec.Direction, rec.StartTime)
	}

	if d := rec.Duration(); d != 4*time.Second {
		t.Errorf("the recording lasts %v, want 4 s", d)
	}
	owner := recordings.Owner{ProjectID: w.project, SubscriberID: alice}
	if _, err := w.recordings.Find(t.Context(), owner, p.Sid()); err != nil {
		t.Errorf("alice cannot find the recording: %v", err)
	}

	if files := w.spoolFiles(t); len(files) != 0 {
		t.Errorf("the spools %q are left, want none", files)
	}
	if _, err := w.Start(t.Context(), call); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Start after Close: %v, want %v", err, problem.Unavailable)
	}
}

// TestRoom shows that the recording of a room session has one channel, which is as loud as the sum
// of the room. The recording can be found by the id of the session.
func TestRoom(t *testing.T) {
	w := newWorld(t)
	room := calls.RecordedCall{Project: w.project, RoomSession: "s", To: "/public/lobby", Mono: true,
		Started: time.Now().Add(-4 * time.Second)}
	p := w.start(t, room)
	wanted, err := w.Wanted(t.Context(), room.Recorded())
	if err != nil || len(wanted) != 1 || wanted[0].Sid != p.Sid() || wanted[0].RoomSession != "s" {
		t.Errorf("the wanted recordings of the session are %+v, %v, want the one in progress", wanted, err)
	}

	if recorded, err := w.Interrupt(t.Context(), room.Recorded()); err != nil || recorded {
		t.Errorf("Interrupt of a recording of this process = %v, %v, want false", recorded, err)
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
	if rec.Status != recordings.Completed || rec.Channels != 1 || rec.ConferenceSid != "s" || rec.CallSid != "" ||
		rec.Source != "StartConferenceRecording" || rec.To != "/public/lobby" {
		t.Errorf("the recording is %+v, want a completed one of the room with one channel", rec)
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
	if rec.Status != recordings.Completed || rec.ErrorCode != recordings.Incomplete ||
		rec.Duration() != 2980*time.Millisecond {
		t.Errorf("the interrupted recording is %s %q of %v, want completed, %s, 2.98 s", rec.Status, rec.ErrorCode,
			rec.Duration(), recordings.Incomplete)
	}
	p.Stop()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.all(t)); n != 2 || len(w.spoolFiles(t)) != 0 {
		t.Errorf("there are %d recordings and the spools %q, want 2 and none", n, w.spoolFiles(t))
	}
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
	if err := os.WriteFile(spool, content, 0o600); err != nil { // as if it had not been deleted
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

	if now := w.find(t, sid); len(w.all(t)) != 1 || now.MediaKey != first.MediaKey || now.SHA256 != first.SHA256 {
		t.Errorf("there are %d recordings, want the first one unchanged", len(w.all(t)))
	}
}

// TestSpoolOutlives shows what happens to a spool if its recording changed while no process was
// running. A deleted recording stays deleted. An abandoned recording is completed.
func TestSpoolOutlives(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		w := newWorld(t)
		sid := w.interrupted(t, w.call(time.Hour), 50)
		if err := w.recordings.Delete(t.Context(), w.project, sid); err != nil {
			t.Fatal(err)
		}
		w.recover(t)
		if len(w.all(t)) != 0 || len(w.spoolFiles(t)) != 0 {
			t.Errorf("there are %d recordings and the spools %q, want none", len(w.all(t)), w.spoolFiles(t))
		}
	})

	t.Run("given up", func(t *testing.T) {
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
		if files := w.spoolFiles(t); len(files) != 0 {
			t.Errorf("the spools %q are left, want none", files)
		}
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
	if len(w.spoolFiles(t)) != 1 || w.isDue(sid) {
		t.Fatalf("the spools are %q, due %v, want one that waits", w.spoolFiles(t), w.isDue(sid))
	}

	if err := os.MkdirAll(filepath.Join(w.media, "incoming"), 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Config{Dir: w.dir.Name(), Recordings: newWorldAt(t, w)})
	if err != nil {
		t.Fatal(err)
	}
	w.Spools = again
	w.recover(t)
	if got := w.find(t, sid).Status; got != recordings.Completed || len(w.spoolFiles(t)) != 0 {
		t.Errorf("after the retry, it is %s, and the spools are %q, want completed and none", got, w.spoolFiles(t))
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

	if err := errors.Join(other.enqueueUnlocked(t.Context()), other.renders.Wait(t.Context())); err != nil {
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

// TestForms shows the format of the file for each kind of recording.
func TestForms(t *testing.T) {
	none, start := func(*calls.RecordedCall) {}, recordings.Start{}
	tests := []struct {
		name   string
		change func(c *calls.RecordedCall)
		start  recordings.Start
		check  func(samples []int16) string
	}{
		{"two channels", none, start, func(samples []int16) string {
			if n := len(samples); n < 2*8000 || samples[0] == samples[10] || samples[1] != samples[11] {
				return "the caller is not left or the callee not right"
			}
			return ""
		}},

		{"caller", func(c *calls.RecordedCall) { c.Track = "inbound" }, start, func(samples []int16) string {
			if samples[4] == samples[5] {
				return "it is not the caller alone"
			}
			return ""
		}},
		{"callee", func(c *calls.RecordedCall) { c.Track = "outbound" }, start, func(samples []int16) string {
			if samples[4] != samples[5] {
				return "it is not the callee alone"
			}
			return ""
		}},

		{"mono", func(c *calls.RecordedCall) { c.Mono = true }, start, func(samples []int16) string {
			if samples[0] == samples[5] || samples[7] != 0 {
				return "it is not the mix"
			}
			return ""
		}},
		{"trimmed", none, recordings.Start{Channels: "dual", Trim: "trim-silence"}, func(samples []int16) string {
			if len(samples) != 2*50*160 {
				return "silence is left at its ends"
			}
			return ""
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			call := w.call(2 * time.Second)
			tt.change(&call)
			p := w.start(t, call)
			if tt.start.Channels != "" {
				if _, err := w.recordings.Start(t.Context(), w.project, "c", tt.start); err != nil {
					t.Fatal(err)
				}
			}

			from := 0
			if tt.start.Trim != "" {
				from = 30
			}
			speak(p, from, from+50)
			p.Stop()
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}

			if fault := tt.check(w.samples(t, p.Sid())); fault != "" {
				t.Error(fault)
			}
		})
	}
}

// TestPause shows that a pause is silent or cut out, and that no audio is stored during a pause.
func TestPause(t *testing.T) {
	for _, skip := range []bool{false, true} {
		said := stream{codec: "PCMU", samples: voice(1, 30)}.packets(t, calls.CallerSide)
		p := spoolOf(t, func(p *spool, at time.Duration) {
			switch {
			case at >= 20*time.Second:
				p.resumeAt(20 * time.Second)
			case at >= 10*time.Second && !p.paused:
				p.pauseAt(10*time.Second, skip)
			}
		}, said)
		left, _, rate := rendered(t, p)
		all, err := readAll(p.file)
		if err != nil {
			t.Fatal(err)
		}

		for _, e := range all {
			if e.kind == packetKind && e.at >= 10*time.Second && e.at < 20*time.Second {
				t.Fatalf("the spool has a packet of %v, in the pause", e.at)
			}
		}

		want := voice(1, 30)
		if skip {
			want = append(want[:10*16000:10*16000], want[20*16000:]...)
		} else {
			clear(want[10*16000 : 20*16000])
			if !isSilent(left[10*rate+100 : 20*rate-100]) {
				t.Error("the pause is not silent")
			}
		}

		if got := time.Duration(len(left)) * time.Second / time.Duration(rate); abs(
			got-time.Duration(len(want))*time.Second/16000) > 200*time.Millisecond {
			t.Errorf("skip %v: the length is %v, want 30 s, or 20 s with skip", skip, got)
		}

		sounds(t, "left", left[:10*rate], rate, want, 100*time.Millisecond)
		sounds(t, "left after the pause", left[len(left)-10*rate:], rate, want[len(want)-10*16000:],
			100*time.Millisecond)
	}
}

func isSilent(samples []int16) bool {
	for _, v := range samples {
		if v != 0 {
			return false
		}
	}
	return true
}

// TestLimit shows that a recording is cut off at the maximum length of an upload, and that it is
// marked as cut off.
func TestLimit(t *testing.T) {
	p := newTestSpool(t)
	speak(p, 0, 100)
	p.Stop()
	p.write()
	plan, err := survey(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if !plan.whole || plan.limit(8000) || plan.frames != 8000 {
		t.Errorf("a second of two is whole: %v, with %d frames, want false and 8000", plan.whole, plan.frames)
	}
}

// TestStartFails shows that a recording that cannot begin leaves no trace.
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
	if len(w.all(t)) != 0 || len(w.spoolFiles(t)) != 0 || w.Stats().Recordings != 0 {
		t.Errorf("left: %d recordings, %q, %d running; want none", len(w.all(t)), w.spoolFiles(t), w.Stats().Recordings)
	}

	if err := os.RemoveAll(w.dir.Name()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(t.Context(), w.call(0)); err == nil {
		t.Error("Start without a directory succeeds")
	}
	if all := w.all(t); len(all) != 1 || all[0].Status != recordings.Stopped {
		t.Errorf("without a directory, there are the recordings %+v, want one that is stopped", all)
	}
}
