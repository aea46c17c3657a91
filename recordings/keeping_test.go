package recordings_test

import (
	"errors"
	"slices"
	"testing"
	"time"

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
		t.Errorf("the hold is %q, want case 4711", rec.Hold)
	}
	if _, err := w.Retention().Add(t.Context(), recordings.Rule{ProjectID: w.project, Days: 1}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.AddDate(0, 0, 2)

	if err := w.Delete(t.Context(), w.project, rec.Sid); !errors.Is(err, problem.Conflict) {
		t.Errorf("Delete of a recording on hold: %v, want Conflict", err)
	}
	sum, err := w.Change(t.Context(), recordings.Bulk{
		Filter: recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}},
		Delete: true,
		Expect: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Refused != 1 || sum.Changed != 0 {
		t.Errorf("deleting in bulk refused %d and changed %d, want 1 and 0", sum.Refused, sum.Changed)
	}

	if err := w.Retention().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.deleteProject(t); !errors.Is(err, problem.Conflict) {
		t.Errorf("deleting the project of a recording on hold: %v, want Conflict", err)
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
	a := w.add(t, "a", tag("sales", "berlin", "sales"))
	b := w.add(t, "b", tag("sales"))
	if !slices.Equal(a.Tags, []string{"berlin", "sales"}) {
		t.Errorf("tags = %q, want berlin and sales", a.Tags)
	}

	tests := []struct {
		filter recordings.Filter
		want   []string
	}{
		{recordings.Filter{Tag: "sales"}, []string{b.Sid, a.Sid}},
		{recordings.Filter{Tag: "berlin"}, []string{a.Sid}},
		{recordings.Filter{Tag: "sale"}, nil},
		{recordings.Filter{Tag: "sales", CallBegins: "a"}, []string{a.Sid}},
		{recordings.Filter{Tag: "sales", CallSid: "b"}, []string{b.Sid}},
		{recordings.Filter{Tag: "sales", Held: true}, nil},
		{recordings.Filter{Tag: "sales", DurationFrom: time.Millisecond}, []string{b.Sid, a.Sid}},
		{recordings.Filter{Tag: "sales", Owner: recordings.Owner{ProjectID: w.addProject(t)}}, nil},
	}
	for _, tt := range tests {
		if got := w.list(t, tt.filter); !slices.Equal(got, tt.want) {
			t.Errorf("recordings for %+v: %q, want %q", tt.filter, got, tt.want)
		}
	}

	a = w.mark(t, a.Sid, recordings.MarkInput{Untag: []string{"sales"}, Tag: []string{"paid"}})
	if !slices.Equal(a.Tags, []string{"berlin", "paid"}) {
		t.Errorf("tags after a change = %q, want berlin and paid", a.Tags)
	}
	if got := w.list(t, recordings.Filter{Tag: "sales"}); !slices.Equal(got, []string{b.Sid}) {
		t.Errorf("recordings with a removed tag: %q, want only the one that still has it", got)
	}
}

func TestMarkRefusesBadInput(t *testing.T) {
	w := newWorld(t)
	rec := w.add(t, "a", recordings.MarkInput{})
	tooMany := make([]string, 21)
	for i := range tooMany {
		tooMany[i] = "t" + string(rune('a'+i))
	}
	bad := []recordings.MarkInput{
		tag(""),
		tag("Sales"),
		tag("a b"),
		tag("a,b"),
		tag(tooMany...),
		tag(string(make([]byte, 65))),
		hold("one\ntwo"),
	}
	for _, m := range bad {
		if _, err := w.Mark(t.Context(), w.project, rec.Sid, m); !errors.Is(err, problem.Invalid) {
			t.Errorf("Mark(%+v): %v, want Invalid", m, err)
		}
	}

	if _, err := w.Mark(t.Context(), w.addProject(t), rec.Sid, tag("x")); !errors.Is(err, problem.NotFound) {
		t.Errorf("Mark by another project: %v, want NotFound", err)
	}
}

// TestBulk shows that a bulk change affects only the matching recordings. It affects none if
// their number differs from the expected number.
func TestBulk(t *testing.T) {
	w := newWorld(t)
	a := w.add(t, "a", tag("x"))
	b := w.add(t, "b", tag("x"))
	w.add(t, "c", tag("y"))
	tagged := func(tag string) recordings.Filter {
		return recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}, Tag: tag}
	}

	sum, err := w.Change(t.Context(), recordings.Bulk{Filter: tagged("x"), Delete: true, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := a.Bytes + b.Bytes; sum.Matched != 2 || sum.Bytes != want {
		t.Errorf("a dry run matches %d with %d bytes, want 2 with %d", sum.Matched, sum.Bytes, want)
	}
	if sum.Changed != 0 {
		t.Errorf("a dry run changes %d, want 0", sum.Changed)
	}

	_, err = w.Change(t.Context(), recordings.Bulk{Filter: tagged("x"), Delete: true, Expect: 3})
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("Change with a wrong expected number: %v, want Conflict", err)
	}
	if n := len(w.list(t, recordings.Filter{})); n != 3 {
		t.Fatalf("%d recordings are left, want 3", n)
	}

	retag := recordings.MarkInput{Untag: []string{"x"}, Tag: []string{"z"}}
	sum, err = w.Change(t.Context(), recordings.Bulk{Filter: tagged("x"), Mark: retag, Expect: 2})
	if err != nil || sum.Changed != 2 {
		t.Errorf("tagging changes %d, %v, want 2", sum.Changed, err)
	}
	if n := len(w.list(t, recordings.Filter{Tag: "z"})); n != 2 {
		t.Errorf("%d recordings have the new tag, want 2", n)
	}

	sum, err = w.Change(t.Context(), recordings.Bulk{Filter: tagged("z"), Delete: true, Expect: 2})
	if err != nil || sum.Changed != 2 {
		t.Errorf("deleting changes %d, %v, want 2", sum.Changed, err)
	}
	if n := len(w.list(t, recordings.Filter{})); n != 1 {
		t.Errorf("%d recordings are left, want 1", n)
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
		days, err := w.Usage(t.Context(), w.project, first, first.AddDate(0, 0, 2))
		if err != nil {
			t.Fatal(err)
		}
		if len(days) != 2 {
			t.Fatalf("%s: usage of %d days, want 2", name, len(days))
		}
		want := recordings.Usage{
			Day:        first,
			Recordings: 2,
			Seconds:    2 * a.Seconds(),
			Bytes:      2 * a.Bytes,
			Price:      2 * a.Price,
			Stored:     stored,
		}
		if days[0] != want {
			t.Errorf("%s: usage of the first day = %+v, want %+v", name, days[0], want)
		}
		if sum := recordings.SumUsage(days); sum.Recordings != 3 || sum.Bytes != 3*a.Bytes {
			t.Errorf("%s: the sum = %+v, want 3 recordings with %d bytes", name, sum, 3*a.Bytes)
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
