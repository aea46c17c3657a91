package store

import (
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestTwinAgainstDelete shows that no recording gets the media of another recording once that media
// may be removed, regardless of the order of uploads and deletions.
func TestTwinAgainstDelete(t *testing.T) { EachDatabase(t, testTwinAgainstDelete) }

func testTwinAgainstDelete(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	add := func(twin recordings.Twin) recordings.Recording {
		r := recordings.Recording{
			ID:        newID(),
			Sid:       newID(),
			ProjectID: "p",
			Created:   time.Now(),
			Bytes:     1,
			SHA256:    "same",
		}
		r.MediaKey = r.ID
		kept, added, err := s.AddRecording(ctx, r, recordings.Arrival{Identity: r.ID, Twin: twin})
		expect(t, "AddRecording", err)
		if !added {
			t.Errorf("recording %s was not added", r.ID)
		}
		return kept
	}

	for range rounds {
		first := add(recordings.Twin{})
		twin, err := s.FindTwin(ctx, first)
		if err != nil {
			t.Fatal(err)
		}
		if want := (recordings.Twin{ID: first.ID, MediaKey: first.ID}); twin != want {
			t.Fatalf("FindTwin = %+v, want %+v", twin, want)
		}

		var mu sync.Mutex
		var removed bool
		var sharing []recordings.Recording
		remove := func(r recordings.Recording) {
			key, err := s.DeleteRecording(ctx, "p", r.Sid, recordings.Removal{At: time.Now()})
			expect(t, "DeleteRecording", err)
			used, err := s.MediaInUse(ctx, key, key)
			expect(t, "MediaInUse", err)
			mu.Lock()
			defer mu.Unlock()
			removed = removed || key == first.ID && len(used) == 0
		}

		upload := func() {
			r := add(twin)
			mu.Lock()
			defer mu.Unlock()
			if r.MediaKey == first.ID {
				sharing = append(sharing, r)
			}
		}

		together(upload, upload, func() { remove(first) }, upload, upload)
		if removed && len(sharing) > 0 {
			t.Fatalf("%d recordings have media that was removed", len(sharing))
		}

		for i, r := range sharing {
			remove(r)
			left := len(sharing) - 1 - i
			if removed && left > 0 {
				t.Errorf("the media was removed while %d recordings used it", left)
			}
		}
		if !removed {
			t.Error("the media remains without a recording")
		}
		ofProject := recordings.Filter{Owner: recordings.Owner{ProjectID: "p"}}
		left := listRecordings(t, s, ofProject, page.Query{Size: 50})
		for _, r := range left.Items {
			remove(r)
		}
	}
}
