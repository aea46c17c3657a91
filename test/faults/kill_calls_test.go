package faults

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// recordedCalls is the number of calls that are being recorded when their server is killed.
const recordedCalls = 20

// These constants are the tones of callers and callees, in Hz.
const (
	aliceHz = 500
	bobHz   = 400
)

// TestKillDuringRecordedCalls kills the server while people talk and are recorded. After the next
// start, each recording lacks at most its last second, and has the caller on the left channel.
func TestKillDuringRecordedCalls(t *testing.T) {
	harness.Rows(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	p.Command(t, "", "project", "update", p.ID, "--record-calls", "on")

	answered := make(map[string]time.Time) // when each call was answered, by the call's ID
	var last *phone.Call
	for range recordedCalls {
		two := newPair(t, p)
		alice, bob := phone.Talk(two.loud())
		answered[alice.ID] = time.Now()
		alice.Speak(aliceHz)
		bob.Speak(bobHz)
		last = bob
	}

	harness.Eventually(t, time.Minute, "three seconds of the last call", func() error {
		if n := last.Spoken(); n < 3*phone.PerSecond {
			return fmt.Errorf("only %d packets were sent", n)
		}
		return nil
	})
	killed := time.Now()
	// On a busy disk, more than the last second is lost.
	killed = killed.Add(-max(0, recordingLag(t, s)-time.Second))
	s.Kill()
	s.Restart(t)

	var found []recording
	harness.Eventually(t, time.Minute, "the recordings", func() error {
		found = recordingsOf(t, p)
		return checkEnded(found)
	})
	for _, r := range found {
		began, ok := answered[r.CallSid]
		if !ok {
			t.Errorf("there is a recording of the unknown call %q", r.CallSid)
		}
		delete(answered, r.CallSid)
		r.check(t, p, killed.Sub(began))
	}
}

// recordingLag returns how much audio may not be on disk yet, according to the metrics.
func recordingLag(t *testing.T, s *harness.Server) time.Duration {
	t.Helper()
	const metric = "selvage_call_recording_lag_seconds "
	for line := range strings.Lines(string(fetchOps(t, s, "/metrics"))) {
		if text, ok := strings.CutPrefix(line, metric); ok {
			seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return time.Duration(seconds * float64(time.Second))
		}
	}
	t.Fatalf("there is no metric %s", metric)
	return 0
}

// A recording is a recording as the LaML API lists it.
type recording struct {
	Sid, Status string
	CallSid     string `json:"call_sid"`
	ErrorCode   string `json:"error_code"`
}

func recordingsOf(t *testing.T, p *harness.Project) []recording {
	t.Helper()
	var list struct{ Recordings []recording }
	p.Get(t, p.LaML("/Recordings.json"), p.Basic()).Want(t, 200).Read(t, &list)
	return list.Recordings
}

// checkEnded returns an error unless there is a recording for each call, and all recordings are
// completed.
func checkEnded(all []recording) error {
	for _, r := range all {
		if r.Status != "completed" {
			return fmt.Errorf("recording %.8s is %s", r.Sid, r.Status)
		}
	}
	if len(all) != recordedCalls {
		return fmt.Errorf("there are %d recordings, want %d", len(all), recordedCalls)
	}
	return nil
}

// check fails the test unless each channel of a recording has its own tone until the end, and the
// recording is at most a second shorter than the call.
func (r recording) check(t *testing.T, p *harness.Project, lasted time.Duration) {
	t.Helper()
	sound := harness.ReadWAV(t, p.Get(t, p.LaML("/Recordings/"+r.Sid+".wav"), p.Basic()).Want(t, 200).Body)
	if got := sound.Seconds(); got < lasted.Seconds()-1 {
		t.Errorf("the recording of a call of %v lasts %.2f s, want at most a second less than the call",
			lasted, got)
	}
	if r.ErrorCode == "" {
		t.Error("the recording does not say that it is incomplete")
	}

	for channel, hz := range []int{aliceHz, bobHz} {
		other := aliceHz + bobHz - hz
		mine, theirs := sound.Power(channel, hz, -1), sound.Power(channel, other, -1)
		if mine < 1e6 || theirs > mine/100 {
			t.Errorf("channel %d ends with the power %.0f at %d Hz and %.0f at %d Hz, want only the first tone",
				channel, mine, hz, theirs, other)
		}
	}
}
