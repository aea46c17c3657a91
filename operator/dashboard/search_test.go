package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestSearch shows that the search finds pages, projects and rows by name or id, but nothing that
// the operator may not see.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	w.things(t)
	ctx, name, mail := context.Background(), "nightly <backup>", "grace@hopper.example"
	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	foreign, err := w.fabric.Subscribers.Create(ctx, w.two.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)

	_, boss := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	base := "/dashboard/projects/" + w.one.ID
	for _, c := range []struct {
		who         browser
		query, want string
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
		a := c.who.get(base + "/search?" + url.Values{"q": {c.query}}.Encode())
		_, hits, _ := strings.Cut(a.body, `id="hits"`)
		if found := strings.Contains(hits, `href="`+c.want); found != c.found {
			t.Errorf("search for %q found %s: %v, want %v", c.query, c.want, found, c.found)
		}
		if strings.Contains(hits, "<backup>") {
			t.Errorf("search for %q does not escape names", c.query)
		}
	}

	for i := range 8 {
		mail := fmt.Sprintf("many%d@example.com", i)
		_, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail})
		must(t, err)
		if a := viewer.get(base + "/search?q=many"); strings.Contains(a.body, base+"/subscribers?q=many") != (i >= 6) {
			t.Errorf("the search that finds %d subscribers links to more: %v, want %v", i+1, i < 6, i >= 6)
		}
	}

	if a := viewer.get("/dashboard/projects/" + w.two.ID + "/search?q=grace"); a.StatusCode != http.StatusNotFound {
		t.Errorf("search in a foreign project: %d, want 404", a.StatusCode)
	}
}
