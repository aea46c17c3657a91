package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/operator"
)

// TestSavedFilters shows that a search of recordings can be saved, replaced, renamed and removed.
func TestSavedFilters(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	at := "/dashboard/projects/" + w.one.ID + "/recordings"
	if page := b.get(at).body; strings.Contains(page, "Save filter") || strings.Contains(page, "Saved filters") {
		t.Error("the list without a search offers to save a filter")
	}

	// Only parameters that restrict the list are saved.
	search := "after=2030-01-31&q=" + url.QueryEscape("+1 415") + "&tag=sales"
	save := func(b browser, name, query string) answer {
		return b.post(at+"?"+search, at+"/filters", url.Values{"name": {name}, "query": {query}})
	}

	for _, who := range []browser{b, viewer} {
		save(who, " Late sales ", search+"&from=abc&done=password&evil=1").leadsTo(t, at+"?"+search+"&done=filtersaved")
		page := html.UnescapeString(who.get(at).body)
		if !strings.Contains(page, "<bdi>Late sales</bdi>") ||
			!strings.Contains(page, `href="`+at+"?"+search+`"`) {
			t.Error("the list has no link to the saved search")
		}
	}

	if page := b.get(at + "?" + search).body; !strings.Contains(page, `aria-current="true"`) {
		t.Error("the shown filter is not marked")
	}

	// The same name replaces the filter. Other projects do not have it.
	save(b, "Late sales", "held=yes").leadsTo(t, at+"?held=yes&done=filtersaved")
	if page := b.get(at).body; strings.Count(page, "<bdi>Late sales<") != 1 || !strings.Contains(page, at+"?held=yes") {
		t.Error("a filter with the same name is not replaced")
	}
	if page := b.get("/dashboard/projects/" + w.two.ID + "/recordings").body; strings.Contains(page, "Late sales") {
		t.Error("another project has the filter")
	}

	// Nobody else can rename or remove it.
	rename := regexp.MustCompile(at + "/filters/[^/]+/rename").FindString(b.get(at).body)
	if a := viewer.post(at, rename, url.Values{"name": {"Mine"}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("renaming the filter of another operator returned %s, want 404", a.Status)
	}

	b.post(at, rename, url.Values{"name": {" Kept "}}).leadsTo(t, at+"?done=filterrenamed")
	if page := b.get(at).body; !strings.Contains(page, "<bdi>Kept</bdi>") || strings.Contains(page, "Late sales") {
		t.Error("the filter does not have its new name")
	}

	save(b, "Late sales", "held=yes").leadsTo(t, at+"?held=yes&done=filtersaved")
	for name, want := range map[string]string{"Late sales": "Another filter already has this name.",
		" ": "The filter needs a name."} {
		a := b.post(at, rename, url.Values{"name": {name}})
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) {
			t.Errorf("renaming a filter to %q returned %s, want 422 with %q", name, a.Status, want)
		}
	}
	b.post(at, strings.Replace(rename, "/rename", "/remove", 1), nil).leadsTo(t, at+"?done=filterremoved")

	remove := regexp.MustCompile(at + "/filters/[^/]+/remove")
	mine := remove.FindString(b.get(at).body)
	if a := viewer.post(at, mine, nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("removing the filter of another operator returned %s, want 404", a.Status)
	}
	b.post(at, mine, nil).leadsTo(t, at+"?done=filterremoved")
	if strings.Contains(b.get(at).body, "Late sales") || !strings.Contains(viewer.get(at).body, "Late sales") {
		t.Error("a removed filter remains, or the filter of another operator is gone, too")
	}
}

// TestSavedFiltersAreBounded shows which filters cannot be saved, and that their number is limited.
func TestSavedFiltersAreBounded(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/recordings"
	save := func(name, query string) answer {
		return b.post(at+"?held=yes", at+"/filters", url.Values{"name": {name}, "query": {query}})
	}

	long := url.Values{}
	for _, name := range []string{"q", "tag", "party", "name", "call", "conference", "subscriber"} {
		long.Set(name, strings.Repeat("é", 120))
	}

	for want, a := range map[string]answer{
		"The filter needs a name.":                             save(" ", "held=yes"),
		"The name of a filter can have at most 60 characters.": save(strings.Repeat("é", 61), "held=yes"),
		"There is no filter to save, or it is too long.":       save("all", "evil=1"),
		"is too long.": save("long", long.Encode()),
	} {
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) {
			t.Errorf("got %s, want 422 with %q", a.Status, want)
		}
	}

	for i := range 20 {
		save(fmt.Sprint("filter ", i), "held=yes").leadsTo(t, at+"?held=yes&done=filtersaved")
	}
	if a := save("one more", "held=yes"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "You can save at most 20 filters: remove one first.") {
		t.Errorf("the 21st filter returned %s, want 422", a.Status)
	}
	save("filter 3", "tag=sales").leadsTo(t, at+"?tag=sales&done=filtersaved")
}
