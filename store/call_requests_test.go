package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

func TestAskCalls(t *testing.T) { EachDatabase(t, testAskCalls) }

func testAskCalls(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	running := callAt("p", time.Now())
	over := ended(callAt("p", time.Now()), calls.UserBusy, false)
	saveCalls(t, s, running, over)
	for _, tt := range []struct {
		name, project, id string
	}{
		{name: "a call that has ended", project: "p", id: over.ID},
		{name: "a call of another project", project: "q", id: running.ID},
		{name: "an unknown call", project: "p", id: newID()},
	} {
		if err := s.AskHangUp(t.Context(), tt.project, tt.id); !errors.Is(err, problem.NotFound) {
			t.Errorf("AskHangUp of %s = %v, want not found", tt.name, err)
		}
	}
	if err := s.AskHangUp(t.Context(), "p", running.ID); err != nil {
		t.Errorf("AskHangUp of a running call = %v", err)
	}

	for range 2 {
		if err := s.AskRecord(t.Context(), "p", running.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AskRecord(t.Context(), "p", over.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("AskRecord of a past call = %v, want not found", err)
	}

	hangUpAndRecord := calls.Request{ProjectID: "p", CallID: running.ID, HangUp: true, Record: true}
	wantRequests(t, s, "n", hangUpAndRecord)
	hangUp := calls.Request{ProjectID: "p", CallID: running.ID, HangUp: true}
	wantRequests(t, s, "n", hangUp)
	askMutes(t, s, running)
	wantRequests(t, s, "another")
}

// TestCallRequestMeanwhile shows that a request for a call remains if another node takes the call over
// while the marks of the call are deleted.
func TestCallRequestMeanwhile(t *testing.T) { EachDatabase(t, testCallRequestMeanwhile) }

func testCallRequestMeanwhile(t *testing.T, c Config) {
	db := new(interruptedDB)
	c.Wrap = func(d database.DB) database.DB {
		db.DB = d
		return db
	}
	s, _, _ := grantRows(t, c)
	r := callAt("p", time.Now())
	r.State, r.Answered = calls.InCall, r.Created
	saveCalls(t, s, r)
	if err := s.AskRecord(t.Context(), "p", r.ID); err != nil {
		t.Fatal(err)
	}

	db.before = func() {
		if err := s.TakeCall(t.Context(), r, "other"); err != nil {
			t.Error(err)
		}
	}
	for _, node := range []string{r.Node, "other"} {
		wantRequests(t, s, node, calls.Request{ProjectID: "p", CallID: r.ID, Record: true})
	}
}

// wantRequests takes the requests for a node, and fails the test unless they equal want.
func wantRequests(t *testing.T, s *Store, node string, want ...calls.Request) {
	t.Helper()
	got, err := s.TakeRequests(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("TakeRequests of node %q = %+v, want %+v", node, got, want)
	}
}

// askMutes shows that only members of rooms can be muted, and that the last of several requests
// counts. A node that takes the call over learns of a mute that the former node has read.
func askMutes(t *testing.T, s *Store, outside calls.Record) {
	t.Helper()
	if err := s.AskMute(t.Context(), "p", outside.ID, true); !errors.Is(err, problem.NotFound) {
		t.Errorf("AskMute outside a room = %v, want not found", err)
	}

	member := callAt("p", time.Now())
	member.Node, member.RoomSession = "room", newID()
	member.State, member.Answered = calls.InCall, member.Created
	saveCalls(t, s, member)
	for _, muted := range []bool{true, false} {
		if err := s.AskMute(t.Context(), "p", member.ID, muted); err != nil {
			t.Fatal(err)
		}
	}

	wantRequests(t, s, "room", calls.Request{ProjectID: "p", CallID: member.ID, Unmute: true})
	wantRequests(t, s, "room") // nothing a second time

	if err := s.AskMute(t.Context(), "p", member.ID, true); err != nil {
		t.Fatal(err)
	}
	wantRequests(t, s, "room", calls.Request{ProjectID: "p", CallID: member.ID, Mute: true})
	taken, err := s.FindCall(t.Context(), "p", member.ID)
	if err != nil {
		t.Fatal(err)
	}
	if taken.CallerControls != calls.AudioMuted {
		t.Errorf("the member has the controls %b, want %b", taken.CallerControls, calls.AudioMuted)
	}
}
