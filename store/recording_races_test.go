package store

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// TestAddRecordingAgainstDelete shows that each recording that concurrent uploads return was added
// exactly once, even while the recording is being deleted.
func TestAddRecordingAgainstDelete(t *testing.T) { EachDatabase(t, testAddRecordingAgainstDelete) }

func testAddRecordingAgainstDelete(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	for range rounds {
		var mu sync.Mutex
		added := map[string]int{} // how often each recording was added
		addAndDelete := func() {
			r := recordings.Recording{ID: newID(), Sid: newID(), ProjectID: "p", Created: time.Now()}
			arrival := recordings.Arrival{Identity: "same", SubscriberIDs: []string{"s"}}
			kept, isNew, err := s.AddRecording(ctx, r, arrival)
			expect(t, "AddRecording", err)
			mu.Lock()
			defer mu.Unlock()
			added[kept.ID] += 0
			if isNew {
				added[kept.ID]++
			}
			_, err = s.DeleteRecording(ctx, "p", kept.Sid, recordings.Removal{At: time.Now()})
			expect(t, "DeleteRecording", err, problem.NotFound)
		}

		together(slices.Repeat([]func(){addAndDelete}, 10)...)
		for id, n := range added {
			if n != 1 {
				t.Errorf("recording %s was added %d times, want once", id, n)
			}
		}
	}
}

// TestLegsAtOnce shows that if the legs of a call are uploaded concurrently, each upload completes
// a different waiting recording.
func TestLegsAtOnce(t *testing.T) { EachDatabase(t, testLegsAtOnce) }

func testLegsAtOnce(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	for range rounds {
		call := newID()
		var waiting sync.Map
		var uploads []func()
		for _, track := range recordings.Tracks {
			leg := recordings.Recording{
				ID:        newID(),
				Sid:       newID(),
				ProjectID: "p",
				Metadata:  recordings.Metadata{CallSid: call, Track: track},
				Created:   time.Now(),
			}
			leg.Waits = leg.Created.Add(time.Hour)
			if _, _, err := s.AddRecording(ctx, leg, recordings.Arrival{Identity: leg.ID}); err != nil {
				t.Fatal(err)
			}

			waiting.Store(leg.Sid, track)
			uploads = append(uploads, func() {
				r := recordings.Recording{
					ID:        newID(),
					Sid:       newID(),
					ProjectID: "p",
					Metadata:  recordings.Metadata{CallSid: call},
					Created:   time.Now(),
				}
				r.MediaKey = r.ID
				kept, _, err := s.AddRecording(ctx, r, recordings.Arrival{Identity: r.ID, Given: r.Metadata})
				expect(t, "AddRecording", err)
				if _, waited := waiting.LoadAndDelete(kept.Sid); !waited {
					t.Errorf("an upload created its own recording, or completed one that another upload had completed")
				}
			})
		}

		together(uploads...)
	}
}

// TestUploadForOwnCall shows that an upload for a call of this installation does not complete the
// recording that the installation makes itself. The upload becomes another recording.
func TestUploadForOwnCall(t *testing.T) { EachDatabase(t, testUploadForOwnCall) }

func testUploadForOwnCall(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	call := callAt("p", time.Now())
	saveCalls(t, s, call)
	add := func(r recordings.Recording, a recordings.Arrival) recordings.Recording {
		r.ID = newID()
		r.Sid = cmp.Or(a.Sid, newID())
		r.ProjectID = "p"
		r.Created = time.Now()
		r.MediaKey = r.ID
		a.Identity = r.ID
		if r.Waits.IsZero() {
			r.Status = recordings.Completed
		}
		kept, _, err := s.AddRecording(t.Context(), r, a)
		expect(t, "AddRecording", err)
		return kept
	}

	about := recordings.Metadata{CallSid: call.ID, Track: "both"}
	live := recordings.Live{Waits: time.Now().Add(time.Hour)}
	own := add(recordings.Recording{Metadata: about, Live: live}, recordings.Arrival{})
	uploaded := add(recordings.Recording{Metadata: about}, recordings.Arrival{Given: about})
	if uploaded.Sid == own.Sid {
		t.Error("an upload for the call replaced the recording that the server makes")
	}

	recorded := add(recordings.Recording{}, recordings.Arrival{Sid: own.Sid, Late: true})
	if recorded.Sid != own.Sid {
		t.Errorf("the upload of the server's recorder went to the recording %s, want %s", recorded.Sid, own.Sid)
	}
	if !recorded.Waits.IsZero() {
		t.Errorf("the uploaded recording waits until %v, want no time", recorded.Waits)
	}
}
