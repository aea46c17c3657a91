package dashboard_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
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
	mail, other := "ada@example.com", "=1+1@example.com"
	for _, email := range []*string{&mail, &other} {
		_, err := w.fabric.Subscribers.Create(context.Background(), w.one.ID, fabric.SubscriberInput{Email: email})
		must(t, err)
	}
	r := w.record(w.one.ID, "a-call")
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Viewer})
	base := "/dashboard/projects/" + w.one.ID

	for query, found := range map[string]bool{
		"a-ca": true, r.Sid: true, "/private/b": true, "/public/a": true, "nothing": false,
	} {
		a := b.get(base + "/recordings?" + url.Values{"q": {query}}.Encode())
		if strings.Contains(a.body, base+"/recordings/"+r.Sid+`"`) != found {
			t.Errorf("the search %q does not have the result found = %v", query, found)
		}
	}

	folded := regexp.MustCompile(`<details class="more-filters">`)
	if a := b.get(base + "/recordings"); !folded.MatchString(a.body) {
		t.Error("the filters of a whole list are not folded")
	}
	a := b.get(base + "/recordings?flag=silent&q=a-")
	if folded.MatchString(a.body) || !strings.Contains(a.body, `<option value="silent" selected>`) ||
		!strings.Contains(a.body, `name="q" type="search" value="a-"`) ||
		!strings.Contains(a.body, "/recordings/export?flag=silent&amp;q=a-") {
		t.Errorf("a filtered list does not show its filters: %s", a.body)
	}

	for path, want := range map[string]int{
		"/recordings/export": 1, "/recordings/export?q=a-": 1, "/recordings/export?q=none": 0,
		"/subscribers/export": 2, "/subscribers/export?q=ada": 1,
	} {
		a := b.get(base + path)
		rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
		if err != nil || len(rows) != want+1 || a.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d, %d lines (%v), want %d", path, a.StatusCode, len(rows), err, want+1)
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
		r := recordings.Recording{ID: uuid.NewString(), Sid: uuid.NewString(), ProjectID: w.one.ID, Created: w.now(),
			Metadata: m}
		_, _, err := w.rows.AddRecording(t.Context(), r, recordings.Arrival{})
		must(t, err)
		return r
	}
	for i := range 31 {
		add(recordings.Metadata{From: fmt.Sprintf("+202455501%02d", i)})
	}
	base := "/dashboard/projects/" + w.one.ID + "/recordings"
	find := func(text string) answer { return b.get(base + "?q=" + text) }

	if a := find("2024"); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the beginning of 31 numbers: %s, want 422", a.Status)
	}
	for text, r := range map[string]recordings.Recording{
		"2024": add(recordings.Metadata{From: "/public/ada", Name: "2024 review"}),
		"202":  add(recordings.Metadata{From: "/public/ada", CallSid: "202-call"}),
	} {
		if a := find(text); a.StatusCode != http.StatusOK || !strings.Contains(a.body, base+"/"+r.Sid+`"`) {
			t.Errorf("%q does not find %+v: %s", text, r.Metadata, a.Status)
		}
	}
}

// TestBulk shows that a change of several rows requires a confirmation, and then changes exactly
// these rows.
func TestBulk(t *testing.T) {
	w := newWorld(t)
	ctx, base := context.Background(), "/dashboard/projects/"+w.one.ID
	var ids []string
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		ids = append(ids, s.ID)
	}

	foreign, err := w.fabric.Subscribers.Create(ctx, w.two.ID, fabric.SubscriberInput{Email: new("d@example.com")})
	must(t, err)
	disabled := func() (n int) {
		for _, id := range ids {
			s, err := w.fabric.Subscribers.Find(ctx, w.one.ID, id)
			must(t, err)
			if s.Disabled {
				n++
			}
		}
		return n
	}

	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	list, change := base+"/subscribers", base+"/subscribers/bulk"
	chosen := url.Values{"id": {ids[0], ids[1], ids[1], foreign.ID}, "do": {"disable"}}
	a := b.post(list, change, chosen)
	if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "a@example.com") ||
		strings.Contains(a.body, "c@example.com") || strings.Contains(a.body, "d@example.com") || disabled() != 0 {
		t.Fatalf("a change of several rows without confirmation: %d, %d changed, want 200 and none",
			a.StatusCode, disabled())
	}

	chosen.Set("confirm", "yes")
	b.post(list, change, chosen).leadsTo(t, list+"?done=subscribersdisabled&n=2&refused=0")
	if n := disabled(); n != 2 {
		t.Errorf("%d subscribers are disabled, want 2", n)
	}

	if s, err := w.fabric.Subscribers.Find(ctx, w.two.ID, foreign.ID); err != nil || s.Disabled {
		t.Errorf("a subscriber of another project was changed: %v", err)
	}
	if a := b.get(list + "?done=subscribersdisabled&n=2&refused=1"); !strings.Contains(a.body,
		"Subscribers disabled: 2. 1 could not be changed.") {
		t.Error("the notice lacks the numbers of changed and refused rows")
	}

	b.post(list, change, url.Values{"do": {"disable"}}).leadsTo(t, list+"?done=noneselected")
	a = b.post(list, change, url.Values{"id": {ids[2]}, "do": {"burn"}})
	if a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an unknown change returned %d, want 422", a.StatusCode)
	}

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
	a := b.get(page)
	first, more, _ := strings.Cut(a.body, `<details class="more">`)
	if !strings.Contains(first, "Maximum members") || !strings.Contains(first, `name="name"`) ||
		strings.Contains(first, "Frames per second") || !strings.Contains(more, "Frames per second") {
		t.Errorf("the form does not begin with the fields that the kind names: %s", a.body)
	}

	a = b.post(page, page, url.Values{"name": {"den"}, "display_name": {"Den"},
		"remove_after_seconds_elapsed": {"-1"}})
	if a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `<details class="more" open>`) || !strings.Contains(a.body, `value="Den"`) ||
		!strings.Contains(a.body, `id="f-remove_after_seconds_elapsed-fault"`) {
		t.Errorf("a wrong folded field is not shown, or without 422: %d", a.StatusCode)
	}

	agent := b.get("/dashboard/projects/" + w.one.ID + "/kinds/ai_agents")
	if strings.Contains(agent.body, "bicycle shop.&#34;\n}</textarea>") ||
		!strings.Contains(agent.body, "placeholder=\"{") {
		t.Error("an example is filled in as a value")
	}
}
