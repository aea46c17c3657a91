package recordings_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// TestAccesses shows that the requests of one client within an hour are combined into one access.
func TestAccesses(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", recordings.MarkInput{})
	note := func(actor string, bytes int64) {
		w.NoteAccess(t.Context(), recordings.Access{
			RecordingID: rec.ID,
			Actor:       actor,
			Address:     "192.0.2.1",
			Format:      recordings.MP3,
			Bytes:       bytes,
		})
	}

	note("key:1", 10)
	note("key:1", 20)
	note(recordings.Anyone, 5)
	if err := w.FlushAccesses(t.Context()); err != nil {
		t.Fatal(err)
	}

	note("key:1", 30)
	w.now = w.now.Add(time.Hour)
	note("key:1", 40)

	found, err := w.ListAccesses(t.Context(), w.project, rec.Sid, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, a := range found.Items {
		got = append(got, fmt.Sprintf("%s: %d requests, %d bytes", a.Actor, a.Requests, a.Bytes))
	}
	slices.Sort(got)
	want := []string{
		"key:1: 1 requests, 40 bytes",
		"key:1: 3 requests, 60 bytes",
		"public: 1 requests, 5 bytes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the accesses differ (-want +got):\n%s", diff)
	}
	latest := found.Items[0]
	if latest.Bytes != 40 {
		t.Errorf("the first access has %d bytes, want the latest, which has 40", latest.Bytes)
	}
	if !latest.First.Equal(w.now) {
		t.Errorf("the latest access began at %v, want %v", latest.First, w.now)
	}

	_, err = w.ListAccesses(t.Context(), w.addProject(t), rec.Sid, page.Query{Size: 10})
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("accesses for another project: %v, want NotFound", err)
	}
}

// TestAccessesOfStrangers shows that a client with several IPv6 addresses in one network causes only
// one entry, unless it has authenticated.
func TestAccessesOfStrangers(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", recordings.MarkInput{})
	for i := range 50 {
		for _, actor := range []string{recordings.Anyone, "key:1"} {
			w.NoteAccess(t.Context(), recordings.Access{
				RecordingID: rec.ID,
				Actor:       actor,
				Address:     fmt.Sprintf("2001:db8::%x", 1+i%2),
				Format:      recordings.MP3,
				Bytes:       1,
			})
		}
	}

	found, err := w.ListAccesses(t.Context(), w.project, rec.Sid, page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}

	got := make(map[string]int64)
	for _, a := range found.Items {
		got[a.Actor+" "+a.Address] = a.Requests
	}

	want := map[string]int64{
		"public 2001:db8::/64": 50,
		"key:1 2001:db8::1":    25,
		"key:1 2001:db8::2":    25,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the accesses are %v, want %v", got, want)
	}
}

// TestAccessesWithoutDatabase shows that pending accesses use limited memory while they cannot be
// written.
func TestAccessesWithoutDatabase(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", recordings.MarkInput{})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range recordings.MaxPending + 100 {
		w.NoteAccess(t.Context(), recordings.Access{RecordingID: rec.ID, Actor: fmt.Sprint("key:", i)})
	}
	if n := w.PendingAccesses(); n != recordings.MaxPending {
		t.Errorf("%d accesses wait, want %d", n, recordings.MaxPending)
	}
}

// A writingStore calls its function during when accesses are about to be written.
type writingStore struct {
	recordings.Store
	during func() error
}

func (s *writingStore) AddAccesses(ctx context.Context, all []recordings.Access) error {
	if err := s.during(); err != nil {
		return err
	}
	return s.Store.AddAccesses(ctx, all)
}

// TestAccessesDuringWrite shows that accesses can be noted while others are written, and that no
// access is lost if writing fails.
func TestAccessesDuringWrite(t *testing.T) {
	var writing *writingStore
	w := newWorld(t, func(c *recordings.Config) {
		writing = &writingStore{Store: c.Store}
		c.Store = writing
	})
	rec := w.add(t, "a", recordings.MarkInput{})
	note := func(actor string) {
		w.NoteAccess(t.Context(), recordings.Access{RecordingID: rec.ID, Actor: actor, Format: recordings.MP3})
	}

	failed := errors.New("the database is unavailable")
	writing.during = func() error {
		note("key:1")
		note("key:2")
		return failed
	}
	note("key:1")
	if err := w.FlushAccesses(t.Context()); !errors.Is(err, failed) {
		t.Fatalf("FlushAccesses without a database: %v, want %v", err, failed)
	}

	writing.during = func() error { return nil }
	found, err := w.ListAccesses(t.Context(), w.project, rec.Sid, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, a := range found.Items {
		got[a.Actor] = a.Requests
	}
	if want := map[string]int64{"key:1": 2, "key:2": 1}; !maps.Equal(got, want) {
		t.Errorf("the accesses are %v, want %v", got, want)
	}
}
