package store

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestEraseHeld shows that erasing a subscriber leaves a recording on hold unchanged. After the
// hold, another erasure deletes the recording.
func TestEraseHeld(t *testing.T) { EachDatabase(t, testEraseHeld) }

func testEraseHeld(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	owned := recordings.Filter{Owner: recordings.Owner{ProjectID: "p", SubscriberID: sub.ID}}
	list := func() []recordings.Recording {
		t.Helper()
		p, err := s.ListRecordings(t.Context(), owned, page.Query{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		return p.Items
	}

	before := list()
	i := slices.IndexFunc(before, func(r recordings.Recording) bool { return r.To == "+15550100000" })
	if i < 0 {
		t.Fatalf("no recording of the subscriber alone: %+v", before)
	}
	held := before[i]

	mark := func(hold string) {
		t.Helper()
		_, err := s.MarkRecording(t.Context(), "p", held.Sid, func(m *recordings.Marks) error {
			m.Hold = hold
			return nil
		}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}

	mark("court")
	e, err := s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now())
	if err != nil || len(e.Media) != 0 || e.Deleted["recordings"] != 0 {
		t.Errorf("erasing during the hold = %+v, %v, want no deleted recording", e, err)
	}
	if left := list(); len(left) != 1 || left[0].Sid != held.Sid || left[0].From != held.From {
		t.Errorf("the recordings after the erasure: %+v, want the one on hold, unchanged", left)
	}

	mark("")
	e, err = s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now())
	if err != nil || !slices.Equal(e.Media, []string{held.ID}) || e.Deleted["recordings"] != 1 {
		t.Errorf("erasing after the hold = %+v, %v, want the recording deleted", e, err)
	}
	if left := list(); len(left) != 0 {
		t.Errorf("recordings after the second erasure: %+v, want none", left)
	}
}
