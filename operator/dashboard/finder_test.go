package dashboard_test

import (
	"encoding/csv"
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

// TestFinder shows that the search box of a list finds rows by any of their parts. Filters stay in
// the URL and are expanded while they are set. The exported file contains the rows of the search.
func TestFinder(t *testing.T) {
	w := newWorld(t)
	for _, email := range []string{"ada@example.com", "=1+1@example.com"} {
		_, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
	}
	r := w.record(w.one.ID, "a-call")
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Viewer})
	base := "/dashboard/projects/" + w.one.ID

	link := base + "/recordings/" + r.Sid + `"`
	for _, query := range []string{"a-ca", r.Sid, "/private/b", "/public/a"} {
		b.get(base+"/recordings?"+url.Values{"q": {query}}.Encode()).wantText(t, link)
	}
	b.get(base+"/recordings?q=nothing").wantNoText(t, link)

	const folded = `<details class="more-filters">`
	b.get(base+"/recordings").wantText(t, folded)
	filtered := b.get(base + "/recordings?flag=silent&q=a-")
	filtered.wantText(t, `<option value="silent" selected>`, `name="q" type="search" value="a-"`,
		"/recordings/export?flag=silent&amp;q=a-")
	filtered.wantNoText(t, folded)

	for path, want := range map[string]int{
		"/recordings/export": 1, "/recordings/export?q=a-": 1, "/recordings/export?q=none": 0,
		"/subscribers/export": 2, "/subscribers/export?q=ada": 1,
	} {
		file := b.get(base + path)
		file.wantStatus(t, http.StatusOK)
		rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
		must(t, err)
		if len(rows) != want+1 { // with the header
			t.Errorf("%s has %d lines, want %d", path, len(rows), want+1)
		}
		for _, row := range rows {
			for _, cell := range row {
				if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") {
					t.Errorf("%s: the cell %q is a formula", path, cell)
				}
			}
		}
	}
}

// TestFinderOfManyNumbers shows that a search for digits with which too many numbers begin still
// finds names and ids of calls. If nothing else matches, the page asks for more digits.
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
	find := func(text string) answer { return b.get(base + "?q=" + text) }

	find("2024").wantRefused(t) // the beginning of 31 numbers, and nothing else
	for text, r := range map[string]recordings.Recording{
		"2024": add(recordings.Metadata{From: "/public/ada", Name: "2024 review"}),
		"202":  add(recordings.Metadata{From: "/public/ada", CallSid: "202-call"}),
	} {
		found := find(text)
		found.wantStatus(t, http.StatusOK)
		found.wantText(t, base+"/"+r.Sid+`"`)
	}
}

// TestBulk shows that a change of several rows requires a confirmation, and then changes exactly
// these rows.
func TestBulk(t *testing.T) {
	w := newWorld(t)
	ctx, base := t.Context(), "/dashboard/projects/"+w.one.ID
	var ids []string
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		ids = append(ids, s.ID)
	}

	foreign, err := w.fabric.Subscribers.Create(ctx, w.two.ID, fabric.SubscriberInput{Email: new("d@example.com")})
	must(t, err)
	disabled := func() (count int) {
		t.Helper()
		for _, id := range ids {
			s, err := w.fabric.Subscribers.Find(ctx, w.one.ID, id)
			must(t, err)
			if s.Disabled {
				count++
			}
		}
		return count
	}

	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	list, change := base+"/subscribers", base+"/subscribers/bulk"
	chosen := url.Values{"id": {ids[0], ids[1], ids[1], foreign.ID}, "do": {"disable"}}
	asked := b.post(list, change, chosen)
	asked.wantStatus(t, http.StatusOK)
	asked.wantText(t, "a@example.com")
	asked.wantNoText(t, "c@example.com", "d@example.com")
	if n := disabled(); n != 0 {
		t.Fatalf("%d subscribers are disabled before the confirmation, want none", n)
	}

	chosen.Set("confirm", "yes")
	b.post(list, change, chosen).leadsTo(t, list+"?done=subscribersdisabled&n=2&refused=0")
	if n := disabled(); n != 2 {
		t.Errorf("%d subscribers are disabled, want 2", n)
	}

	foreign, err = w.fabric.Subscribers.Find(ctx, w.two.ID, foreign.ID)
	must(t, err)
	if foreign.Disabled {
		t.Error("the subscriber of another project is disabled")
	}
	b.get(list+"?done=subscribersdisabled&n=2&refused=1").
		wantText(t, "Subscribers disabled: 2. 1 could not be changed.")

	b.post(list, change, url.Values{"do": {"disable"}}).leadsTo(t, list+"?done=noneselected")
	b.post(list, change, url.Values{"id": {ids[2]}, "do": {"burn"}}).wantRefused(t) // an unknown change

	r := w.record(w.one.ID, "a-call")
	b.post(base+"/recordings", base+"/recordings/bulk", url.Values{"id": {r.Sid}, "confirm": {"yes"}}).
		leadsTo(t, base+"/recordings?done=recordingsdeleted&n=1&refused=0")
	found, err := w.recordings.Find(ctx, recordings.Owner{ProjectID: w.one.ID}, r.Sid)
	if err == nil && found.HasMedia() {
		t.Error("a deleted recording has media")
	}
}

// TestKindForm shows that the form for a kind of resource begins with the kind's main fields, and
// expands the others if one of them has an error.
func TestKindForm(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	page := "/dashboard/projects/" + w.one.ID + "/kinds/conference_rooms"
	first, more, _ := strings.Cut(b.get(page).body, `<details class="more">`)
	for _, want := range []string{"Maximum members", `name="name"`} {
		if !strings.Contains(first, want) {
			t.Errorf("the form does not begin with %s: %s", want, first)
		}
	}
	if strings.Contains(first, "Frames per second") {
		t.Errorf("the form begins with the frames per second: %s", first)
	}
	if !strings.Contains(more, "Frames per second") {
		t.Errorf("the rest of the form lacks the frames per second: %s", more)
	}

	wrong := url.Values{"name": {"den"}, "display_name": {"Den"}, "remove_after_seconds_elapsed": {"-1"}}
	b.post(page, page, wrong).wantRefused(t, `<details class="more" open>`, `value="Den"`,
		`id="f-remove_after_seconds_elapsed-fault"`)

	// An example is not filled in as a value.
	agent := b.get("/dashboard/projects/" + w.one.ID + "/kinds/ai_agents")
	agent.wantText(t, "placeholder=\"{")
	agent.wantNoText(t, "bicycle shop.&#34;\n}</textarea>")
}
