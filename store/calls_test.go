package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// callAt returns a call from alice to bob that began at the given time.
func callAt(project string, at time.Time) calls.Record {
	key := calls.FirstKey(at)
	return calls.Record{
		Key:       key[:len(key)-12] + newID()[24:],
		ID:        newID(),
		ProjectID: project,
		Node:      "n",
		State:     calls.Created,
		Created:   at,
		From:      calls.Party{Name: "Alice", Address: "/private/alice", SubscriberID: "alice"},
		To:        calls.Party{Name: "Bob", Address: "/private/bob", SubscriberID: "bob"},
		Dialed:    "/private/bob?channel=audio",
		Lines:     1,
	}
}

// ended returns r as a call that ended with the given cause. If it was answered, it ended a minute
// after the answer.
func ended(r calls.Record, cause calls.Cause, answered bool) calls.Record {
	r.State, r.Cause = calls.Completed, cause
	r.Ended = r.Created.Add(10 * time.Second)
	if answered {
		r.Answered = r.Created.Add(5 * time.Second)
		r.Ended = r.Answered.Add(time.Minute)
	}
	return r
}

func saveCalls(t testing.TB, s *Store, records ...calls.Record) {
	t.Helper()
	for _, r := range records {
		if err := s.SaveCall(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPruneCalls(t *testing.T) { EachDatabase(t, testPruneCalls) }

func testPruneCalls(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	now := time.Now().Truncate(time.Microsecond)
	old := now.Add(-48 * time.Hour)
	running := callAt("p", old)
	recent := ended(callAt("p", now.Add(-time.Hour)), calls.NormalClearing, true)
	saveCalls(t, s, running, recent)
	for i := range sweepBatch + 1 {
		saveCalls(t, s, ended(callAt("p", old.Add(time.Duration(i)*time.Second)), calls.UserBusy, false))
	}

	if err := s.PruneCalls(t.Context(), now.Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := s.ListCalls(t.Context(), "p", calls.Filter{}, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := callIDs(left.Items), []string{recent.ID, running.ID}; !slices.Equal(got, want) {
		t.Errorf("after PruneCalls %q remain, want the recent and the running call %q", got, want)
	}
}

// TestDeleteProjectWithCalls shows that deleting a project deletes the records of its calls.
func TestDeleteProjectWithCalls(t *testing.T) { EachDatabase(t, testDeleteProjectWithCalls) }

func testDeleteProjectWithCalls(t *testing.T, c Config) {
	s := opened(t, c)
	now := time.Now()
	p := fabric.Project{ID: newID(), Name: "gone", MediaAuth: "public", Created: now, Updated: now}
	if err := s.CreateProject(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r := callAt(p.ID, now)
	saveCalls(t, s, r)
	filled(t, c, s, fmt.Sprintf(`DELETE FROM projects WHERE id = '%s'`, p.ID))
	if _, err := s.FindCall(t.Context(), p.ID, r.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindCall of a deleted project = %v, want not found", err)
	}
}

// TestRecordedCallEvents shows that no event is repeated if a recording begins or ends during a
// call.
func TestRecordedCallEvents(t *testing.T) { EachDatabase(t, testRecordedCallEvents) }

func testRecordedCallEvents(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	now := time.Now().UTC().Truncate(time.Second)
	hook := fabric.Webhook{
		ID:        newID(),
		ProjectID: "p",
		URL:       "https://example.com/",
		Enabled:   true,
		Events:    []fabric.EventName{fabric.AnyEvent},
		Created:   now,
		Updated:   now,
	}
	if err := s.CreateWebhook(t.Context(), hook, 50); err != nil {
		t.Fatal(err)
	}

	r := callAt("p", now)
	r.State, r.Answered = calls.InCall, now.Add(time.Second)
	saveCalls(t, s, r)
	for _, r.Recorded = range []bool{true, false} {
		r.RecordingSid = newID()
		if err := s.SaveRecorded(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	saveCalls(t, s, ended(r, calls.NormalClearing, true))
	if err := s.SaveRecorded(t.Context(), r); err != nil {
		t.Errorf("SaveRecorded of a call that has ended = %v, want nil", err)
	}

	sent, err := s.ListDeliveries(t.Context(), hook.ID, "", page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	var names []fabric.EventName
	for _, d := range slices.Backward(sent.Items) {
		names = append(names, d.Event)
	}
	if want := []fabric.EventName{fabric.CallAnswered, fabric.CallEnded}; !slices.Equal(names, want) {
		t.Errorf("the events are %v, want %v", names, want)
	}
}

// TestEndCall shows that the end of a call is written and audited only once, even if EndCall is called twice.
func TestEndCall(t *testing.T) { EachDatabase(t, testEndCall) }

func testEndCall(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	r := callAt("p", time.Now().UTC().Truncate(time.Second))
	saveCalls(t, s, r)
	for _, isFirst := range []bool{true, false} {
		written, err := s.EndCall(t.Context(), ended(r, calls.NodeLost, false))
		if err != nil {
			t.Fatal(err)
		}
		if written != isFirst {
			t.Errorf("EndCall reports %t, want %t", written, isFirst)
		}
	}

	trail, err := s.ListAudit(t.Context(), audit.Filter{Target: r.ID}, page.Query{Size: 9})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trail.Items); n != 1 {
		t.Errorf("the end of the call is audited %d times, want once", n)
	}
}

func TestTakeCall(t *testing.T) { EachDatabase(t, testTakeCall) }

func testTakeCall(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	r := callAt("p", time.Now().UTC().Truncate(time.Second))
	r.State, r.Answered = calls.InCall, r.Created.Add(time.Second)
	r.CalleeLeg = newID()
	saveCalls(t, s, r)
	r.Recorded = true
	if err := s.SaveRecorded(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, leg := range []string{r.ID, r.CalleeLeg} {
		found, err := s.FindLeg(t.Context(), "p", leg)
		if err != nil {
			t.Fatal(err)
		}
		if found.ID != r.ID {
			t.Errorf("FindLeg = the call %s, want %s", found.ID, r.ID)
		}
	}

	r.CallerControls, r.CalleeControls = calls.AudioMuted, calls.OnHold|calls.Deafened
	if err := s.SaveControls(t.Context(), r); err != nil {
		t.Fatal(err)
	}

	if err := s.TakeCall(t.Context(), r, "m"); err != nil {
		t.Fatal(err)
	}
	taken, err := s.FindLeg(t.Context(), "p", r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !taken.Recorded {
		t.Error("the taken call is not shown as recorded")
	}
	if taken.CallerControls != r.CallerControls {
		t.Errorf("the caller's controls of the taken call are %d, want %d", taken.CallerControls, r.CallerControls)
	}
	if taken.CalleeControls != r.CalleeControls {
		t.Errorf("the callee's controls of the taken call are %d, want %d", taken.CalleeControls, r.CalleeControls)
	}

	if err := s.SaveControls(t.Context(), r); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("the former node's SaveControls = %v, want ErrTaken", err)
	}
	if err := s.TakeCall(t.Context(), r, "o"); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a call that was taken = %v, want ErrTaken", err)
	}

	if err := s.SaveCall(t.Context(), ended(r, calls.NodeLost, true)); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("the former node's SaveCall = %v, want ErrTaken", err)
	}

	r.Node = "m"
	saveCalls(t, s, ended(r, calls.NormalClearing, true))
	if err := s.TakeCall(t.Context(), r, "o"); !errors.Is(err, calls.ErrTaken) {
		t.Errorf("taking a call that has ended = %v, want ErrTaken", err)
	}
	if _, err := s.FindLeg(t.Context(), "p", r.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLeg of a call that has ended = %v, want NotFound", err)
	}
}
