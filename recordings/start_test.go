package recordings_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// A busyStore calls before once, ahead of the next update of a recording.
type busyStore struct {
	recordings.Store
	before func()
}

func (s *busyStore) UpdateRecording(ctx context.Context, r recordings.Recording, identity string, old time.Time) error {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.Store.UpdateRecording(ctx, r, identity, old)
}

// TestStartRevivesNothing shows that a recording remains stopped if it is stopped while Start is
// running.
func TestStartRevivesNothing(t *testing.T) {
	var busy *busyStore
	w := newWorld(t, func(c *recordings.Config) {
		busy = &busyStore{Store: c.Store}
		c.Store = busy
	})
	call := recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}
	rec, _, err := w.Announce(t.Context(), w.project, call)
	if err != nil {
		t.Fatal(err)
	}

	busy.before = func() {
		if _, err := w.Move(t.Context(), rec, recordings.Stopped, ""); err != nil {
			t.Error(err)
		}
	}

	if _, err := w.Start(t.Context(), w.project, "c", recordings.Start{}); !errors.Is(err, problem.Invalid) {
		t.Errorf("Start of a stopped recording: %v, want %v", err, problem.Invalid)
	}
	got, err := w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
	if err != nil || got.Status != recordings.Stopped {
		t.Errorf("afterwards, the recording is %s, %v, want %s", got.Status, err, recordings.Stopped)
	}
}

// TestStartLosesNothing shows that the parameters of two concurrent starts of a recording are both
// stored.
func TestStartLosesNothing(t *testing.T) {
	var busy *busyStore
	w := newWorld(t, func(c *recordings.Config) {
		busy = &busyStore{Store: c.Store}
		c.Store = busy
	})
	call := recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}
	rec, _, err := w.Announce(t.Context(), w.project, call)
	if err != nil {
		t.Fatal(err)
	}

	busy.before = func() {
		if _, err := w.Start(t.Context(), w.project, "c", recordings.Start{Trim: "trim-silence"}); err != nil {
			t.Error(err)
		}
	}

	if _, err := w.Start(t.Context(), w.project, "c", recordings.Start{Channels: "dual"}); err != nil {
		t.Error(err)
	}

	got, err := w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
	if err != nil {
		t.Fatal(err)
	}
	if got.Trim != "trim-silence" {
		t.Errorf("the recording has the trim %q, want trim-silence", got.Trim)
	}
	if got.Channels != 2 {
		t.Errorf("the recording has %d channels, want 2", got.Channels)
	}
}

// TestStartKeepsEventsOnce shows that an event is stored once, even if the request repeats it.
func TestStartKeepsEventsOnce(t *testing.T) {
	w := newWorld(t)
	call := recordings.Description{Metadata: recordings.Metadata{CallSid: "c"}}
	if _, _, err := w.Announce(t.Context(), w.project, call); err != nil {
		t.Fatal(err)
	}
	rec, err := w.Start(t.Context(), w.project, "c", recordings.Start{
		Callback: recordings.Callback{
			URL:    "https://x.example/",
			Events: strings.Fields(strings.Repeat("completed absent ", 1000)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"completed", "absent"}; !slices.Equal(rec.Callback.Events, want) {
		t.Errorf("the callback has %d events, want %q", len(rec.Callback.Events), want)
	}
}

// TestStartKeepsCallback shows that a recording keeps its callback if it is started again without
// one.
func TestStartKeepsCallback(t *testing.T) {
	w := newWorld(t)
	call := recordings.Description{
		Metadata: recordings.Metadata{CallSid: "c"},
		Callback: recordings.Callback{URL: "https://x.example/"},
	}
	if _, _, err := w.Announce(t.Context(), w.project, call); err != nil {
		t.Fatal(err)
	}
	rec, err := w.Start(t.Context(), w.project, "c", recordings.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Callback.URL != call.Callback.URL {
		t.Errorf("the callback is %q, want %q", rec.Callback.URL, call.Callback.URL)
	}
}
