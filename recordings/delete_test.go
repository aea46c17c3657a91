package recordings_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/recordings"
)

func (w *world) list(t *testing.T, f recordings.Filter) (sids []string) {
	t.Helper()
	if f.ProjectID == "" {
		f.ProjectID = w.project
	}
	p, err := w.List(t.Context(), f, page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Items {
		sids = append(sids, r.Sid)
	}
	return sids
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	other := w.addProject(t)
	if err := w.Delete(t.Context(), other, rec.Sid); !errors.Is(err, problem.NotFound) {
		t.Errorf("Delete by another project: %v, want NotFound", err)
	}

	owner := recordings.Owner{ProjectID: w.project}
	_, open, err := w.Open(t.Context(), owner, rec.Sid)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	w.now = w.now.Add(time.Hour)
	if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
		t.Fatal(err)
	}

	if left := w.mediaFiles(t); len(left) != 0 {
		t.Errorf("remaining files: %q, want none", left)
	}
	if n, err := open.Read(make([]byte, 100)); n != 100 {
		t.Errorf("reading on after Delete = %d bytes, %v, want 100", n, err)
	}

	if err := w.Delete(t.Context(), w.project, rec.Sid); !errors.Is(err, problem.NotFound) {
		t.Errorf("second Delete: %v, want NotFound", err)
	}
	if _, _, err := w.Open(t.Context(), owner, rec.Sid); !errors.Is(err, problem.NotFound) {
		t.Errorf("Open after Delete: %v, want NotFound", err)
	}

	if got := w.list(t, recordings.Filter{}); len(got) != 0 {
		t.Errorf("List after Delete: %q, want none", got)
	}
}

func TestStubsLiveFortyDays(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
		t.Fatal(err)
	}

	w.now = w.now.Add(recordings.StubLife)
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.list(t, recordings.Filter{IncludeDeleted: true}); len(got) != 1 {
		t.Errorf("stubs after forty days: %q, want one", got)
	}

	w.now = w.now.Add(time.Second)
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.list(t, recordings.Filter{IncludeDeleted: true}); len(got) != 0 {
		t.Errorf("stubs a second later: %q, want none", got)
	}
}

// TestSweepAfterDeletedProject shows that deleting a project deletes its recordings, and that the
// next sweep removes their files.
func TestSweepAfterDeletedProject(t *testing.T) {
	w := newWorld(t)
	home := w.project
	kept, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}

	w.project = w.addProject(t)
	if _, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{}); err != nil {
		t.Fatal(err)
	}

	deletion := revocation.Revocation{Kind: revocation.Project, ID: w.project, Until: w.now, Expires: w.now}
	if err := w.store.DeleteProject(t.Context(), deletion); err != nil {
		t.Fatal(err)
	}
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.mediaFiles(t), []string{kept.ID, kept.ID + ".peaks"}; !slices.Equal(got, want) {
		t.Errorf("files after the sweep: %q, want %q", got, want)
	}

	w.project = home
	if got := len(w.read(t, kept.Sid)); int64(got) != kept.Bytes {
		t.Errorf("the other project's recording has %d bytes, want %d", got, kept.Bytes)
	}
}

func TestOwners(t *testing.T) {
	w := newWorld(t)
	alice := w.addSubscriber(t, "alice")
	bob := w.addSubscriber(t, "bob")
	upload := func(d recordings.Description) string {
		t.Helper()
		w.now = w.now.Add(time.Second)
		rec, _, err := w.ingest(t, "canonical_44.wav", d)
		if err != nil {
			t.Fatal(err)
		}
		return rec.Sid
	}

	between := func(from, to string) recordings.Description {
		return recordings.Description{Metadata: recordings.Metadata{From: from, To: to}}
	}
	both := upload(between("/private/alice", "/private/bob?channel=audio"))
	toBob := upload(between("+15551234", "/private/bob"))
	explicit := between("/private/bob", "/private/bob")
	explicit.SubscriberID = alice
	toAlice := upload(explicit)
	upload(between("/public/alice", "/private/nobody"))
	upload(between("private/alice", "/private/alice/x"))

	tests := []struct {
		subscriber string
		want       []string
	}{
		{alice, []string{toAlice, both}},
		{bob, []string{toBob, both}},
		{"7f2c3a52-0000-4000-8000-000000000000", nil},
	}
	for _, tt := range tests {
		owner := recordings.Owner{ProjectID: w.project, SubscriberID: tt.subscriber}
		if got := w.list(t, recordings.Filter{Owner: owner}); !slices.Equal(got, tt.want) {
			t.Errorf("List of %s = %q, want %q", tt.subscriber, got, tt.want)
		}
		for _, sid := range []string{both, toBob, toAlice} {
			_, err := w.Find(t.Context(), owner, sid)
			if want := slices.Contains(tt.want, sid); (err == nil) != want {
				t.Errorf("Find(%s, %s): %v, want it found: %v", tt.subscriber, sid, err, want)
			}
		}
	}

	deletion := revocation.Revocation{Kind: revocation.Subscriber, ID: alice, Until: w.now, Expires: w.now}
	if err := w.store.DeleteSubscriber(t.Context(), w.project, deletion); err != nil {
		t.Fatal(err)
	}

	if _, err := w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, toAlice); err != nil {
		t.Errorf("the recording of a deleted subscriber: %v, want it to remain", err)
	}
}

func TestPriceIsFrozen(t *testing.T) {
	w := newWorld(t)
	rec, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
	if err != nil {
		t.Fatal(err)
	}

	rate := int64(9000)
	change := fabric.ProjectChange{RecordRate: &rate}
	if _, err := w.store.UpdateProject(t.Context(), w.project, change, w.now); err != nil {
		t.Fatal(err)
	}

	again, err := w.Find(t.Context(), recordings.Owner{ProjectID: w.project}, rec.Sid)
	if err != nil || again.Price != 2500 {
		t.Errorf("price after the rate has changed = %d, %v, want 2500", again.Price, err)
	}
	dearer, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{})
	if err != nil || dearer.Price != 9000 {
		t.Errorf("price of a new recording = %d, %v, want 9000", dearer.Price, err)
	}
}
