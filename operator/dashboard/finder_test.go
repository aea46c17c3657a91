package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// TestFinder shows that the search box of the recordings finds a recording by its id, a part of its
// call's id, and the addresses of its parties.
func TestFinder(t *testing.T) {
	w := newWorld(t)
	r := w.record(w.one.ID, "a-call")
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Viewer})
	list := "/dashboard/projects/" + w.one.ID + "/recordings"

	link := list + "/" + r.Sid + `"`
	for _, text := range []string{"a-ca", r.Sid, "/private/b", "/public/a"} {
		b.get(list+"?"+url.Values{"q": {text}}.Encode()).wantText(t, link)
	}
	b.get(list+"?q=nothing").wantNoText(t, link)
}

// TestFilters shows that the filters of a list are unfolded, and keep their values, while one of
// them is set. The link to the export has the same filters.
func TestFilters(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Viewer})
	list := "/dashboard/projects/" + w.one.ID + "/recordings"

	const folded = `<details class="more-filters">`
	b.get(list).wantText(t, folded)
	filtered := b.get(list + "?flag=silent&q=a-")
	filtered.wantText(t, `<option value="silent" selected>`, `name="q" type="search" value="a-"`,
		"/recordings/export?flag=silent&amp;q=a-")
	filtered.wantNoText(t, folded)
}

// TestExport shows that an exported file has the rows of the search.
func TestExport(t *testing.T) {
	w := newWorld(t)
	w.newSubscriber(t, "ada@example.com")
	w.newSubscriber(t, "bob@example.com")
	w.record(w.one.ID, "a-call")
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Viewer})

	for path, want := range map[string]int{
		"/recordings/export":        1,
		"/recordings/export?q=a-":   1,
		"/recordings/export?q=none": 0,
		"/subscribers/export":       2,
		"/subscribers/export?q=ada": 1,
	} {
		rows := b.exported("/dashboard/projects/" + w.one.ID + path)
		if len(rows) != want+1 { // with the header
			t.Errorf("%s has %d lines, want %d", path, len(rows), want+1)
		}
	}
}

// TestExportedFormula shows that a spreadsheet does not run an exported value as a formula.
func TestExportedFormula(t *testing.T) {
	w := newWorld(t)
	w.newSubscriber(t, "=1+1@example.com")
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Viewer})

	rows := b.exported("/dashboard/projects/" + w.one.ID + "/subscribers/export")
	if len(rows) != 2 {
		t.Fatalf("the file has %d lines, want a header and one row", len(rows))
	}
	for _, cell := range rows[1] {
		if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") {
			t.Errorf("the cell %q is a formula", cell)
		}
	}
}

// newSubscriber creates a subscriber in the first project, and returns its id.
func (w *world) newSubscriber(t *testing.T, email string) (id string) {
	t.Helper()
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	return s.ID
}

// TestFinderOfManyNumbers shows that if too many numbers begin with the digits in the search box,
// the search still finds recordings by their names and call ids. If nothing else matches, the page asks for more
// digits.
func TestFinderOfManyNumbers(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	add := func(m recordings.Metadata) recordings.Recording {
		m.To = "/public/desk"
		r := recordings.Recording{
			ID:        uuid.NewString(),
			Sid:       uuid.NewString(),
			ProjectID: w.one.ID,
			Created:   w.now(),
			Metadata:  m,
		}
		_, _, err := w.rows.AddRecording(t.Context(), r, recordings.Arrival{})
		must(t, err)
		return r
	}

	for i := range 31 {
		add(recordings.Metadata{From: fmt.Sprintf("+202455501%02d", i)})
	}
	base := "/dashboard/projects/" + w.one.ID + "/recordings"
	b.get(base + "?q=2024").wantRefused(t) // the beginning of 31 numbers, and nothing else
	for text, r := range map[string]recordings.Recording{
		"2024": add(recordings.Metadata{From: "/public/ada", Name: "2024 review"}),
		"202":  add(recordings.Metadata{From: "/public/ada", CallSid: "202-call"}),
	} {
		found := b.get(base + "?q=" + text)
		found.wantStatus(t, http.StatusOK)
		found.wantText(t, base+"/"+r.Sid+`"`)
	}
}
