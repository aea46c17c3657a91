package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestSearch shows that the search finds pages, projects and rows by name or id, but no rows of
// other projects and nothing that the operator may not see.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	w.things(t)
	ctx, name, email := t.Context(), "nightly <backup>", "grace@hopper.example"
	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	foreign, err := w.fabric.Subscribers.Create(ctx, w.two.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)

	_, boss := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	base := "/dashboard/projects/" + w.one.ID
	for _, tt := range []struct {
		who         browser
		query, link string
		found       bool
	}{
		{boss, "resour", base + "/resources", true},
		{boss, "create room", base + "/kinds/conference_rooms", true},
		{boss, "", base + "/subscribers/new", true},
		{viewer, "", base + "/subscribers/new", false},
		{boss, "operat", "/dashboard/operators", true},
		{viewer, "operat", "/dashboard/operators", false},
		{boss, "guest", base + "/tokens/make/guest", true},
		{boss, "Guest link", base + "/tokens/make/guest?link", true},
		{viewer, "guest link", base + "/resources?kind=conference_rooms", true},
		{viewer, "guest", base + "/tokens/make/guest", false},
		{boss, "invitation", "/dashboard/operators/invite", true},
		{viewer, "invite", "/dashboard/operators/invite", false},
		{viewer, "invite", base + "/subscribers", true},
		{boss, w.two.Name, "/dashboard/projects/" + w.two.ID, true},
		{viewer, w.two.Name, "/dashboard/projects/" + w.two.ID, false},
		{viewer, "ada@", base + "/subscribers/", true},
		{viewer, "of ada", base + "/resources/", true},
		{viewer, "BACKUP night", base + "/keys/" + k.ID, true},
		{viewer, strings.ToUpper(k.ID), base + "/keys/" + k.ID, true},
		{boss, foreign.ID, foreign.ID + `"`, false},
		{boss, "grace", foreign.ID, false},
	} {
		a := tt.who.get(base + "/search?" + url.Values{"q": {tt.query}}.Encode())
		_, hits, _ := strings.Cut(a.body, `id="hits"`)
		if found := strings.Contains(hits, `href="`+tt.link); found != tt.found {
			t.Errorf("search for %q found %s: %t, want %t", tt.query, tt.link, found, tt.found)
		}
		if strings.Contains(hits, "<backup>") {
			t.Errorf("search for %q does not escape names", tt.query)
		}
	}

	for i := range 8 {
		email := fmt.Sprintf("many%d@example.com", i)
		_, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		links := strings.Contains(viewer.get(base+"/search?q=many").body, base+"/subscribers?q=many")
		if want := i >= 6; links != want {
			t.Errorf("the search that finds %d subscribers links to more: %t, want %t", i+1, links, want)
		}
	}

	viewer.get("/dashboard/projects/"+w.two.ID+"/search?q=grace").wantStatus(t, http.StatusNotFound)

	nameless, secret, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	for _, query := range []string{nameless.ID, secret} {
		a := viewer.get(base + "/search?" + url.Values{"q": {query}}.Encode())
		_, hits, _ := strings.Cut(a.body, `id="hits"`)
		if !strings.Contains(hits, nameless.Prefix+"…") {
			t.Errorf("search for %q does not show the key %s…", query, nameless.Prefix)
		}
	}
}

// TestSearchErasedCall shows that the search names a call by its id if both of its parties were erased.
func TestSearchErasedCall(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	r := w.addCall(func(r *calls.Record) { r.From, r.To = calls.Party{}, calls.Party{} })
	base := "/dashboard/projects/" + w.one.ID
	b.get(base+"/search?q="+r.ID).wantText(t, `<a href="`+base+"/calls/"+r.ID+`"><bdi>`+r.ID+"</bdi>")
}
