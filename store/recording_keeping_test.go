package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/recordings"
)

// TestRecordingKeeping shows how the marks and accesses of a recording, retention rules and usage are stored.
func TestRecordingKeeping(t *testing.T) { EachDatabase(t, testRecordingKeeping) }

func testRecordingKeeping(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := recordings.Recording{
		ID:         uuid7.First(now),
		Sid:        newID(),
		ProjectID:  "p",
		Created:    now,
		Updated:    now,
		Status:     recordings.Completed,
		Frames:     8000 * 90,
		SampleRate: 8000,
		Bytes:      1000,
		Price:      5000,
	}
	if _, _, err := s.AddRecording(ctx, r, recordings.Arrival{SubscriberIDs: []string{"s"}}); err != nil {
		t.Fatal(err)
	}

	marked, err := s.MarkRecording(ctx, "p", r.Sid, func(m *recordings.Marks) error {
		m.Hold = "court"
		m.Tags = []string{"a", "b"}
		return nil
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	if marked.Hold != "court" {
		t.Fatalf("MarkRecording returns the hold %q, want %q", marked.Hold, "court")
	}
	if !marked.Updated.After(now) {
		t.Fatalf("MarkRecording returns the time of change %v, want a time after %v", marked.Updated, now)
	}

	heldWithTag := recordings.Filter{
		Owner: recordings.Owner{ProjectID: "p"},
		Tag:   "b",
		Held:  true,
	}
	found, err := s.ListRecordings(ctx, heldWithTag, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(found.Items); n != 1 {
		t.Fatalf("%d recordings are on hold and have the tag, want 1", n)
	}
	if got := found.Items[0].Tags; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the tags are %q, want a and b", got)
	}

	_, err = s.DeleteRecording(ctx, "p", r.Sid, recordings.Removal{At: now})
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("deleting a recording on hold: %v, want Conflict", err)
	}
	if kept := listKept(t, s, now.Add(time.Hour)); len(kept) != 0 {
		t.Errorf("a rule may delete %+v, want none on hold", kept)
	}

	release := func(m *recordings.Marks) error { m.Hold = ""; return nil }
	if marked, err = s.MarkRecording(ctx, "p", r.Sid, release, now); err != nil {
		t.Fatal(err)
	}
	kept := listKept(t, s, now.Add(time.Hour))
	if len(kept) != 1 {
		t.Fatalf("a rule may delete %+v, want one recording", kept)
	}
	if got := kept[0].SubscriberIDs; !slices.Equal(got, []string{"s"}) {
		t.Errorf("the subscribers of the recording are %q, want s", got)
	}
	if got := kept[0].Tags; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the tags of the recording are %q, want a and b", got)
	}
	if got := kept[0].Bytes; got != 1000 {
		t.Errorf("the recording has %d bytes, want 1000", got)
	}

	access := recordings.Access{
		ID:          newID(),
		RecordingID: r.ID,
		Actor:       "key:1",
		Address:     "192.0.2.1",
		Format:      recordings.WAV,
		Requests:    2,
		Bytes:       7,
		First:       now,
		Last:        now,
	}
	lost := access
	lost.RecordingID = newID()
	for range 2 {
		if err := s.AddAccesses(ctx, []recordings.Access{access, lost}); err != nil {
			t.Fatal(err)
		}
	}

	accesses, err := s.ListAccesses(ctx, r.ID, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(accesses.Items); n != 1 {
		t.Fatalf("the recording has %d accesses, want 1", n)
	}
	if got := accesses.Items[0].Requests; got != 4 {
		t.Errorf("the access has %d requests, want 4", got)
	}
	if got := accesses.Items[0].Bytes; got != 14 {
		t.Errorf("the access has %d bytes, want 14", got)
	}
	testRemoval(t, s, r, marked)
}

// listKept returns the recordings of the project p that a retention rule may delete, and that were
// created before the given time.
func listKept(t *testing.T, s *Store, before time.Time) []recordings.Kept {
	t.Helper()
	kept, err := s.ListKept(t.Context(), "p", "", uuid7.First(before), 10)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// testRemoval shows that a rule deletes only an unchanged recording, and that the recording's usage
// remains.
func testRemoval(t *testing.T, s *Store, r, marked recordings.Recording) {
	t.Helper()
	ctx := t.Context()
	now := r.Created
	rule := recordings.Rule{ID: newID(), ProjectID: "p", Days: 3, Created: now}
	if err := s.AddRule(ctx, rule, 1); err != nil {
		t.Fatal(err)
	}

	more := recordings.Rule{ID: newID(), ProjectID: "p", Tag: "a", Days: 4, Created: now}
	if err := s.AddRule(ctx, more, 1); !errors.Is(err, problem.Invalid) {
		t.Errorf("adding one rule too many: %v, want Invalid", err)
	}

	same := recordings.Rule{ID: newID(), ProjectID: "p", Days: 4, Created: now}
	if err := s.AddRule(ctx, same, 9); !errors.Is(err, problem.Conflict) {
		t.Errorf("adding a rule for the same recordings: %v, want Conflict", err)
	}

	rules, err := s.ListRules(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rules, []recordings.Rule{rule}) {
		t.Errorf("the rules are %+v, want only %+v", rules, rule)
	}

	how := recordings.Removal{At: now, Why: "retention", Unchanged: now}
	if _, err := s.DeleteRecording(ctx, "p", r.Sid, how); !errors.Is(err, problem.Conflict) {
		t.Errorf("deleting a recording that has changed: %v, want Conflict", err)
	}
	how.Unchanged = marked.Updated
	if _, err := s.DeleteRecording(ctx, "p", r.Sid, how); err != nil {
		t.Fatal(err)
	}

	day := now.Truncate(24 * time.Hour)
	want := recordings.Usage{Day: day, Recordings: 1, Seconds: 90, Bytes: 1000, Price: 5000}
	for _, name := range []string{"a stub", "the sum"} {
		days, err := s.ListUsage(ctx, "p", day, day.AddDate(0, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(days, []recordings.Usage{want}) {
			t.Errorf("the usage according to %s is %+v, want %+v", name, days, want)
		}
		if err := s.SweepRecordings(ctx, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}
