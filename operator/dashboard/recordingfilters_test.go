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
	b.get(at).wantNoText(t, "Save filter", "Saved filters")

	// Only parameters that restrict the list are saved.
	search := "after=2030-01-31&q=" + url.QueryEscape("+1 415") + "&tag=sales"
	save := func(b browser, name, query string) answer {
		return b.post(at+"?"+search, at+"/filters", url.Values{"name": {name}, "query": {query}})
	}

	for _, who := range []browser{b, viewer} {
		save(who, " Late sales ", search+"&from=abc&done=password&evil=1").leadsTo(t, at+"?"+search+"&done=filtersaved")
		page := html.UnescapeString(who.get(at).body)
		for _, want := range []string{"<bdi>Late sales</bdi>", `href="` + at + "?" + search + `"`} {
			if !strings.Contains(page, want) {
				t.Errorf("after saving a filter, the list lacks %s", want)
			}
		}
	}
	b.get(at+"?"+search).wantText(t, `aria-current="true"`) // marks the shown filter

	// The same name replaces the filter. Other projects do not have it.
	save(b, "Late sales", "held=yes").leadsTo(t, at+"?held=yes&done=filtersaved")
	replaced := b.get(at)
	replaced.wantText(t, at+"?held=yes")
	if n := strings.Count(replaced.body, "<bdi>Late sales<"); n != 1 {
		t.Errorf("after saving a filter twice, the list has %d filters with its name, want 1", n)
	}
	b.get("/dashboard/projects/"+w.two.ID+"/recordings").wantNoText(t, "Late sales")

	// Nobody else can rename or remove the filter.
	rename := regexp.MustCompile(at + "/filters/[^/]+/rename").FindString(b.get(at).body)
	viewer.post(at, rename, url.Values{"name": {"Mine"}}).wantStatus(t, http.StatusNotFound)

	b.post(at, rename, url.Values{"name": {" Kept "}}).leadsTo(t, at+"?done=filterrenamed")
	renamed := b.get(at)
	renamed.wantText(t, "<bdi>Kept</bdi>")
	renamed.wantNoText(t, "Late sales")

	save(b, "Late sales", "held=yes").leadsTo(t, at+"?held=yes&done=filtersaved")
	usedName := b.post(at, rename, url.Values{"name": {"Late sales"}})
	usedName.wantRefused(t, "Another filter already has this name.")
	noName := b.post(at, rename, url.Values{"name": {" "}})
	noName.wantRefused(t, "The filter needs a name.")
	b.post(at, strings.Replace(rename, "/rename", "/remove", 1), nil).leadsTo(t, at+"?done=filterremoved")

	remove := regexp.MustCompile(at + "/filters/[^/]+/remove").FindString(b.get(at).body)
	viewer.post(at, remove, nil).wantStatus(t, http.StatusNotFound)
	b.post(at, remove, nil).leadsTo(t, at+"?done=filterremoved")
	b.get(at).wantNoText(t, "Late sales")
	viewer.get(at).wantText(t, "Late sales") // this operator's own filter
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

	save(" ", "held=yes").wantRefused(t, "The filter needs a name.")
	save(strings.Repeat("é", 61), "held=yes").
		wantRefused(t, "The name of a filter can have at most 60 characters.")
	save("all", "evil=1").wantRefused(t, "There is no filter to save, or it is too long.")
	save("long", long.Encode()).wantRefused(t, "is too long.")

	for i := range 20 {
		save(fmt.Sprint("filter ", i), "held=yes").leadsTo(t, at+"?held=yes&done=filtersaved")
	}
	save("one more", "held=yes").wantRefused(t, "You can save at most 20 filters: remove one first.")
	save("filter 3", "tag=sales").leadsTo(t, at+"?tag=sales&done=filtersaved")
}
