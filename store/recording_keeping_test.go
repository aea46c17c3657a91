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

// TestRecordingKeeping shows marks, retention rules, usage and accesses on both databases.
func TestRecordingKeeping(t *testing.T) { EachDatabase(t, testRecordingKeeping) }

func testRecordingKeeping(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, now := t.Context(), time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
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
		m.Hold, m.Tags = "court", []string{"a", "b"}
		return nil
	}, now)
	if err != nil || marked.Hold != "court" || !marked.Updated.After(now) {
		t.Fatalf("MarkRecording = %+v, %v, want a hold and a later change", marked, err)
	}

	found, err := s.ListRecordings(ctx, recordings.Filter{
		Owner: recordings.Owner{ProjectID: "p"},
		Tag:   "b",
		Held:  true,
	}, page.Query{Size: 10})
	if err != nil || len(found.Items) != 1 || !slices.Equal(found.Items[0].Tags, []string{"a", "b"}) {
		t.Errorf("recordings with the tag = %+v, %v, want one with both tags", found.Items, err)
	}

	if _, err := s.DeleteRecording(ctx, "p", r.Sid, recordings.Removal{At: now}); !errors.Is(err, problem.Conflict) {
		t.Errorf("deleting a recording on hold: %v, want Conflict", err)
	}
	if kept, err := s.ListKept(ctx, "p", "", uuid7.First(now.Add(time.Hour)), 10); err != nil || len(kept) != 0 {
		t.Errorf("a rule may delete %+v, %v, want none on hold", kept, err)
	}

	release := func(m *recordings.Marks) error { m.Hold = ""; return nil }
	if marked, err = s.MarkRecording(ctx, "p", r.Sid, release, now); err != nil {
		t.Fatal(err)
	}
	kept, err := s.ListKept(ctx, "p", "", uuid7.First(now.Add(time.Hour)), 10)
	if err != nil || len(kept) != 1 || !slices.Equal(kept[0].SubscriberIDs, []string{"s"}) ||
		!slices.Equal(kept[0].Tags, []string{"a", "b"}) || kept[0].Bytes != 1000 {
		t.Errorf("ListKept = %+v, %v, want the recording", kept, err)
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
	if err != nil || len(accesses.Items) != 1 || accesses.Items[0].Requests != 4 || accesses.Items[0].Bytes != 14 {
		t.Errorf("accesses = %+v, %v, want one with 4 requests", accesses.Items, err)
	}
	testRemoval(t, s, r, marked)
}

// testRemoval shows that a rule deletes only an unchanged recording, and that the recording's usage
// remains.
func testRemoval(t *testing.T, s *Store, r, marked recordings.Recording) {
	t.Helper()
	ctx, now := t.Context(), r.Created
	rule := recordings.Rule{ID: newID(), ProjectID: "p", Days: 3, Created: now}
	if err := s.AddRule(ctx, rule, 1); err != nil {
		t.Fatal(err)
	}

	more := recordings.Rule{ID: newID(), ProjectID: "p", Tag: "a", Days: 4, Created: now}
	if err := s.AddRule(ctx, more, 1); !errors.Is(err, problem.Invalid) {
		t.Errorf("one rule too many: %v, want Invalid", err)
	}

	same := recordings.Rule{ID: newID(), ProjectID: "p", Days: 4, Created: now}
	if err := s.AddRule(ctx, same, 9); !errors.Is(err, problem.Conflict) {
		t.Errorf("a rule for the same recordings: %v, want Conflict", err)
	}

	if all, err := s.ListRules(ctx, ""); err != nil || len(all) != 1 || all[0] != rule {
		t.Errorf("rules = %+v, %v, want %+v", all, err, rule)
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
	for _, name := range []string{"a stub", "the sum"} {
		all, err := s.ListUsage(ctx, "p", day, day.AddDate(0, 0, 1))
		want := recordings.Usage{Day: day, Recordings: 1, Seconds: 90, Bytes: 1000, Price: 5000}
		if err != nil || len(all) != 1 || all[0] != want {
			t.Errorf("the usage of %s = %+v, %v, want %+v", name, all, err, want)
		}
		if err := s.SweepRecordings(ctx, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}
