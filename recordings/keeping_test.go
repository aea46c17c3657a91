package recordings_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// add ingests a file as the recording of a call.
func (w *world) add(t *testing.T, call string, m recordings.MarkInput) recordings.Recording {
	t.Helper()
	w.now = w.now.Add(time.Second) // ids from the same time have no order
	rec, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{
		Metadata: recordings.Metadata{CallSid: call}})
	if err != nil {
		t.Fatal(err)
	}
	return w.mark(t, rec.Sid, m)
}

func (w *world) mark(t *testing.T, sid string, m recordings.MarkInput) recordings.Recording {
	t.Helper()
	rec, err := w.Mark(t.Context(), w.project, sid, m)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func hold(reason string) recordings.MarkInput { return recordings.MarkInput{Hold: &reason} }

func tag(tags ...string) recordings.MarkInput { return recordings.MarkInput{Tag: tags} }

// TestHold shows that a recording on hold cannot be deleted in any way: alone, by a rule, in bulk
// or with its project. After the hold ends, it can be deleted.
func TestHold(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", hold(" case 4711 "))
	if rec.Hold != "case 4711" {
		t.Errorf("the hold = %q, want it without the spaces", rec.Hold)
	}
	if _, err := w.Retention().Add(t.Context(), recordings.Rule{ProjectID: w.project, Days: 1}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.AddDate(0, 0, 2)

	if err := w.Delete(t.Context(), w.project, rec.Sid); !errors.Is(err, problem.Conflict) {
		t.Errorf("Delete of a recording on hold: %v, want Conflict", err)
	}
	sum, err := w.Change(t.Context(), recordings.Bulk{Delete: true, Expect: 1,
		Filter: recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}}})
	if err != nil || sum.Refused != 1 || sum.Changed != 0 {
		t.Errorf("deleting it in bulk = %+v, %v, want one refused", sum, err)
	}

	if err := w.Retention().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.deleteProject(t); !errors.Is(err, problem.Conflict) {
		t.Errorf("deleting its project: %v, want Conflict", err)
	}

	if got := w.list(t, recordings.Filter{Held: true}); !slices.Equal(got, []string{rec.Sid}) {
		t.Fatalf("recordings on hold: %q, want %q", got, rec.Sid)
	}

	w.mark(t, rec.Sid, hold(""))
	if err := w.Delete(t.Context(), w.project, rec.Sid); err != nil {
		t.Errorf("Delete after the hold: %v, want no error", err)
	}
	if err := w.deleteProject(t); err != nil {
		t.Errorf("deleting the project after the hold: %v, want no error", err)
	}
}

// TestTags shows how tags are set and limited, and how recordings are found by their tags.
func TestTags(t *testing.T) {
	w := newWorld(t)
	a, b := w.add(t, "a", tag("sales", "berlin", "sales")), w.add(t, "b", tag("sales"))
	if !slices.Equal(a.Tags, []string{"berlin", "sales"}) {
		t.Errorf("tags = %q, want berlin and sales", a.Tags)
	}

	for _, tt := range []struct {
		f    recordings.Filter
		want []string
	}{
		{recordings.Filter{Tag: "sales"}, []string{b.Sid, a.Sid}},
		{recordings.Filter{Tag: "berlin"}, []string{a.Sid}},
		{recordings.Filter{Tag: "sale"}, nil},
		{recordings.Filter{Tag: "sales", CallBegins: "a"}, []string{a.Sid}},
		{recordings.Filter{Tag: "sales", CallSid: "b"}, []string{b.Sid}},
		{recordings.Filter{Tag: "sales", Held: true}, nil},
		{recordings.Filter{Tag: "sales", DurationFrom: time.Millisecond}, []string{b.Sid, a.Sid}},
		{recordings.Filter{Tag: "sales", Owner: recordings.Owner{ProjectID: w.addProject(t)}}, nil},
	} {
		if got := w.list(t, tt.f); !slices.Equal(got, tt.want) {
			t.Errorf("%+v = %q, want %q", tt.f, got, tt.want)
		}
	}

	a = w.mark(t, a.Sid, recordings.MarkInput{Untag: []string{"sales"}, Tag: []string{"paid"}})
	if !slices.Equal(a.Tags, []string{"berlin", "paid"}) {
		t.Errorf("tags after a change = %q, want berlin and paid", a.Tags)
	}
	if got := w.list(t, recordings.Filter{Tag: "sales"}); !slices.Equal(got, []string{b.Sid}) {
		t.Errorf("recordings with a removed tag: %q, want only the one that still has it", got)
	}

	many := make([]string, 21)
	for i := range many {
		many[i] = "t" + string(rune('a'+i))
	}
	line := "one\ntwo"
	for _, bad := range []recordings.MarkInput{tag(""), tag("Sales"), tag("a b"), tag("a,b"), tag(many...),
		tag(string(make([]byte, 65))), {Hold: &line}} {
		if _, err := w.Mark(t.Context(), w.project, a.Sid, bad); !errors.Is(err, problem.Invalid) {
			t.Errorf("Mark(%+v): %v, want Invalid", bad, err)
		}
	}
	if _, err := w.Mark(t.Context(), w.addProject(t), a.Sid, tag("x")); !errors.Is(err, problem.NotFound) {
		t.Errorf("Mark by another project: %v, want NotFound", err)
	}
}

// TestRetention shows which recordings the rules delete. A preview counts these recordings first.
func TestRetention(t *testing.T) {
	w := newWorld(t)
	alice := w.addSubscriber(t, "alice")
	plain := w.add(t, "plain", recordings.MarkInput{})
	brief := w.add(t, "brief", tag("brief"))
	keep := w.add(t, "keep", tag("keep", "brief"))
	hers, _, err := w.ingest(t, "canonical_44.wav", recordings.Description{SubscriberID: alice,
		Metadata: recordings.Metadata{CallSid: "hers"}})
	if err != nil {
		t.Fatal(err)
	}

	var added []recordings.Rule
	for _, u := range []recordings.Rule{{Days: 30}, {Days: 7, Tag: "brief"}, {Days: 0, Tag: "keep"},
		{Days: 90, SubscriberID: alice}} {
		u.ProjectID = w.project
		more, err := w.Retention().Add(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, more)
	}
	if _, err := w.Retention().Add(t.Context(), recordings.Rule{ProjectID: w.project, Days: 3}); !errors.Is(
		err, problem.Conflict) {
		t.Errorf("a second rule for all: %v, want Conflict", err)
	}

	start := w.now
	for _, tt := range []struct {
		days int
		left []string
	}{
		{6, []string{hers.Sid, keep.Sid, brief.Sid, plain.Sid}},
		{7, []string{hers.Sid, keep.Sid, plain.Sid}},
		{29, []string{hers.Sid, keep.Sid, plain.Sid}},
		{30, []string{hers.Sid, keep.Sid}},
		{89, []string{hers.Sid, keep.Sid}},
		{90, []string{keep.Sid}},
		{4000, []string{keep.Sid}},
	} {
		before := len(w.list(t, recordings.Filter{}))
		w.now = start.AddDate(0, 0, tt.days)
		sum, err := w.Retention().Preview(t.Context(), w.project, nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := w.list(t, recordings.Filter{})
		slices.Sort(got)
		slices.Sort(tt.left)
		if !slices.Equal(got, tt.left) || int(sum.Recordings) != before-len(got) {
			t.Errorf("after %d days: %q are left, want %q; the preview was %+v of %d",
				tt.days, got, tt.left, sum, before)
		}
	}

	sum, err := w.Retention().Preview(t.Context(), w.project, &recordings.Rule{Days: 1, Tag: "keep"})
	if err != nil || sum.Recordings != 1 || sum.Bytes != keep.Bytes {
		t.Errorf("a preview with a different rule = %+v, %v, want one recording", sum, err)
	}

	if err := w.Retention().Delete(t.Context(), w.addProject(t), added[0].ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("deleting another project's rule: %v, want NotFound", err)
	}
	if err := w.Retention().Delete(t.Context(), w.project, added[2].ID); err != nil {
		t.Fatal(err)
	}

	if err := w.Retention().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.mediaFiles(t); len(left) != 0 {
		t.Errorf("files after the last rule applied: %q, want none", left)
	}
}

// TestBulk shows that a bulk change affects only the matching recordings. It affects none if
// their number differs from the expected number.
func TestBulk(t *testing.T) {
	w := newWorld(t)
	a, b := w.add(t, "a", tag("x")), w.add(t, "b", tag("x"))
	w.add(t, "c", tag("y"))
	of := recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}, Tag: "x"}

	sum, err := w.Change(t.Context(), recordings.Bulk{Filter: of, Delete: true, DryRun: true})
	if err != nil || sum.Matched != 2 || sum.Bytes != a.Bytes+b.Bytes || sum.Changed != 0 {
		t.Errorf("a dry run = %+v, %v, want two matches", sum, err)
	}
	if _, err := w.Change(t.Context(), recordings.Bulk{Filter: of, Delete: true, Expect: 3}); !errors.Is(
		err, problem.Conflict) {
		t.Errorf("a wrong expectation: %v, want Conflict", err)
	}
	if n := len(w.list(t, recordings.Filter{})); n != 3 {
		t.Fatalf("%d recordings are left, want 3", n)
	}

	sum, err = w.Change(t.Context(), recordings.Bulk{Filter: of, Mark: recordings.MarkInput{
		Untag: []string{"x"}, Tag: []string{"z"}}, Expect: 2})
	if err != nil || sum.Changed != 2 || len(w.list(t, recordings.Filter{Tag: "z"})) != 2 {
		t.Errorf("tagging = %+v, %v, want two changed", sum, err)
	}
	of.Tag = "z"
	if sum, err = w.Change(t.Context(), recordings.Bulk{Filter: of, Delete: true, Expect: 2}); err != nil ||
		sum.Changed != 2 || len(w.list(t, recordings.Filter{})) != 1 {
		t.Errorf("deleting = %+v, %v, want two changed", sum, err)
	}
}

// TestUsage shows that recordings count on the day on which they were stored, even after their
// stubs are removed.
func TestUsage(t *testing.T) {
	w := newWorld(t)
	first := w.now.Truncate(24 * time.Hour)
	a := w.add(t, "a", recordings.MarkInput{})
	w.add(t, "b", recordings.MarkInput{})
	w.now = w.now.AddDate(0, 0, 1)
	w.add(t, "c", recordings.MarkInput{})

	check := func(name string, stored int64) {
		t.Helper()
		all, err := w.Usage(t.Context(), w.project, first, first.AddDate(0, 0, 2))
		if err != nil || len(all) != 2 {
			t.Fatalf("%s: usage = %+v, %v, want two days", name, all, err)
		}
		want := recordings.Usage{Day: first, Recordings: 2, Seconds: 2 * a.Seconds(), Bytes: 2 * a.Bytes,
			Price: 2 * a.Price, Stored: stored}
		if all[0] != want {
			t.Errorf("%s: usage of the first day = %+v, want %+v", name, all[0], want)
		}
		if sum := recordings.SumUsage(all); sum.Recordings != 3 || sum.Bytes != 3*a.Bytes {
			t.Errorf("%s: the sum = %+v, want three recordings", name, sum)
		}
	}

	check("stored", a.Bytes) // a and b share their stored bytes, because they have the same content
	if err := w.Delete(t.Context(), w.project, a.Sid); err != nil {
		t.Fatal(err)
	}

	check("deleted", a.Bytes)
	w.now = w.now.Add(recordings.StubLife + time.Hour)
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("forgotten", a.Bytes)
}

// TestAccesses shows that requests of one client within an hour are summed up.
func TestAccesses(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", recordings.MarkInput{})
	note := func(actor string, bytes int64) {
		w.NoteAccess(t.Context(), recordings.Access{RecordingID: rec.ID, Actor: actor, Address: "192.0.2.1",
			Format: recordings.MP3, Bytes: bytes})
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
	if err != nil || len(found.Items) != 3 {
		t.Fatalf("accesses = %+v, %v, want three", found.Items, err)
	}

	var sums []int64
	for _, a := range found.Items {
		sums = append(sums, a.Requests, a.Bytes)
	}

	if slices.Sort(sums); !slices.Equal(sums, []int64{1, 1, 3, 5, 40, 60}) {
		t.Errorf("requests and bytes = %v, want [1 1 3 5 40 60]", sums)
	}
	if a := found.Items[0]; a.Bytes != 40 || a.Actor != "key:1" || !a.First.Equal(w.now) {
		t.Errorf("the latest access = %+v, want that of key:1 with 40 bytes", a)
	}

	if _, err := w.ListAccesses(t.Context(), w.addProject(t), rec.Sid, page.Query{Size: 10}); !errors.Is(
		err, problem.NotFound) {
		t.Errorf("accesses for another project: %v, want NotFound", err)
	}
}

// TestAccessesOfStrangers shows that a client with many IPv6 addresses causes only one entry,
// unless it has authenticated.
func TestAccessesOfStrangers(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", recordings.MarkInput{})
	for i := range 50 {
		for _, actor := range []string{recordings.Anyone, "key:1"} {
			w.NoteAccess(t.Context(), recordings.Access{RecordingID: rec.ID, Actor: actor,
				Address: fmt.Sprintf("2001:db8::%x", 1+i%2), Format: recordings.MP3, Bytes: 1})
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

	want := map[string]int64{"public 2001:db8::/64": 50, "key:1 2001:db8::1": 25, "key:1 2001:db8::2": 25}
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
