package store

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestEraseHeld shows that erasing a subscriber leaves a recording on hold unchanged. After the
// hold, another erasure deletes the recording.
func TestEraseHeld(t *testing.T) { EachDatabase(t, testEraseHeld) }

func testEraseHeld(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	owned := func() []recordings.Recording {
		t.Helper()
		filter := recordings.Filter{Owner: recordings.Owner{ProjectID: "p", SubscriberID: sub.ID}}
		found, err := s.ListRecordings(t.Context(), filter, page.Query{Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		return found.Items
	}

	before := owned()
	alone := slices.IndexFunc(before, func(r recordings.Recording) bool { return r.To == "+15550100000" })
	if alone < 0 {
		t.Fatalf("no recording of the subscriber alone: %+v", before)
	}
	held := before[alone]

	mark := func(hold string) {
		t.Helper()
		setHold := func(m *recordings.Marks) error {
			m.Hold = hold
			return nil
		}
		_, err := s.MarkRecording(t.Context(), "p", held.Sid, setHold, time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}

	erase := func() fabric.Erasure {
		t.Helper()
		erasure, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return erasure
	}

	mark("court")
	erasure := erase()
	if len(erasure.Media) != 0 {
		t.Errorf("erasing during the hold deletes the media %q, want none", erasure.Media)
	}
	if n := erasure.Deleted["recordings"]; n != 0 {
		t.Errorf("erasing during the hold deletes %d recordings, want none", n)
	}
	left := owned()
	if len(left) != 1 {
		t.Fatalf("the recordings after the erasure: %+v, want the one on hold", left)
	}
	if left[0].Sid != held.Sid {
		t.Errorf("the recording %s remains, want the one on hold, %s", left[0].Sid, held.Sid)
	}
	if left[0].From != held.From {
		t.Errorf("the recording on hold is from %q, want %q", left[0].From, held.From)
	}

	mark("")
	erasure = erase()
	if !slices.Equal(erasure.Media, []string{held.ID}) {
		t.Errorf("erasing after the hold deletes the media %q, want that of %s", erasure.Media, held.ID)
	}
	if n := erasure.Deleted["recordings"]; n != 1 {
		t.Errorf("erasing after the hold deletes %d recordings, want 1", n)
	}
	if left := owned(); len(left) != 0 {
		t.Errorf("recordings after the second erasure: %+v, want none", left)
	}
}
