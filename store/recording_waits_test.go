package store

import (
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings"
)

// TestGiveUpRecordings shows that a recording is not given up while its call or room session runs, or
// shortly after it has ended, however long the recording has waited for its media. A call or session
// without an end counts as running only for longestRun.
func TestGiveUpRecordings(t *testing.T) { EachDatabase(t, testGiveUpRecordings) }

func testGiveUpRecordings(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	const wait = 24 * time.Hour
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

	call := callAt("p", at)
	call.State, call.Answered = calls.InCall, at
	saveCalls(t, s, call)
	session := calls.RoomSession{ID: newID(), ProjectID: "p", RoomID: "r", Node: "n", Started: at}
	if err := s.OpenRoom(t.Context(), session); err != nil {
		t.Fatal(err)
	}

	ofCall := addWaiting(t, s, recordings.Metadata{CallSid: call.ID}, at, wait)
	ofSession := addWaiting(t, s, recordings.Metadata{ConferenceSid: session.ID}, at, wait)
	ofSwitch := addWaiting(t, s, recordings.Metadata{CallSid: "elsewhere"}, at, wait)
	wantGivenUp := func(now time.Time, want map[string]bool) {
		t.Helper()
		if err := s.GiveUpRecordings(t.Context(), now, wait); err != nil {
			t.Fatal(err)
		}
		for sid, givenUp := range want {
			r, err := s.FindRecording(t.Context(), recordings.Owner{ProjectID: "p"}, sid)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Status == recordings.Absent; got != givenUp {
				t.Errorf("%v after the start, the recording of the call %q and the session %q is given up: %t, want %t",
					now.Sub(at), r.CallSid, r.ConferenceSid, got, givenUp)
			}
		}
	}

	end := at.Add(3 * wait)
	for _, sid := range []string{ofCall, ofSession} { // a change of marks does not shorten the wait
		addTag := func(m *recordings.Marks) error { m.Tags = []string{"late"}; return nil }
		if _, err := s.MarkRecording(t.Context(), "p", sid, addTag, end.Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	wantGivenUp(end, map[string]bool{ofCall: false, ofSession: false, ofSwitch: true})

	call.State, call.Cause, call.Ended = calls.Completed, calls.NormalClearing, end
	saveCalls(t, s, call)
	session.Ended = end
	if err := s.EndRoom(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	wantGivenUp(end.Add(wait-time.Minute), map[string]bool{ofCall: false, ofSession: false})
	wantGivenUp(end.Add(wait+time.Minute), map[string]bool{ofCall: true, ofSession: true})

	forgotten := callAt("p", at)
	forgotten.State, forgotten.Answered = calls.InCall, at
	saveCalls(t, s, forgotten)
	ofForgotten := addWaiting(t, s, recordings.Metadata{CallSid: forgotten.ID}, at, wait)
	wantGivenUp(at.Add(longestRun), map[string]bool{ofForgotten: false})
	wantGivenUp(at.Add(longestRun+wait+time.Minute), map[string]bool{ofForgotten: true})
}

// addWaiting stores a recording that has just begun, and returns its Sid.
func addWaiting(t *testing.T, s *Store, m recordings.Metadata, at time.Time, wait time.Duration) (sid string) {
	t.Helper()
	r := recordings.Recording{
		ID:        newID(),
		Sid:       newID(),
		ProjectID: "p",
		Metadata:  m,
		Status:    recordings.InProgress,
		Live:      recordings.Live{Waits: at.Add(wait)},
		Created:   at,
		Updated:   at,
	}
	_, added, err := s.AddRecording(t.Context(), r, recordings.Arrival{})
	if err != nil || !added {
		t.Fatalf("AddRecording = %t, %v, want true", added, err)
	}
	return r.Sid
}
