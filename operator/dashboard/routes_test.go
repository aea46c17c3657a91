package dashboard_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// open lists the routes that need no login.
var open = map[string]bool{
	"GET /dashboard/login": true, "POST /dashboard/login": true, "POST /dashboard/login/passkey": true,
	"GET /dashboard/setup": true, "POST /dashboard/language": true, "POST /dashboard/setup": true,
	"GET /dashboard/login/passkey": true, // leads to the login page
}

// own lists the routes that every operator may use for their own account.
var own = []string{"/dashboard", "/dashboard/confirm", "/dashboard/enrol", "/dashboard/factor",
	"/dashboard/language", "/dashboard/logout", "/dashboard/projects", "/dashboard/search"}

// things returns a replacer for the parameters in paths. It replaces them with the ids of existing
// rows.
func (w *world) things(t *testing.T) *strings.Replacer {
	ctx := context.Background()
	name, mail := "key", "ada@example.com"
	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)
	c, _, err := w.idp.Clients.Create(ctx,
		idp.Client{ProjectID: w.one.ID, Name: "app", Type: idp.Service, Scopes: []string{"Voice"}})
	must(t, err)

	victim := "victim@example.com"
	o, err := w.operators.Create(ctx, operator.Input{Email: &victim,
		Roles: []operator.Membership{{Role: operator.Viewer}}})
	must(t, err)

	r := w.record(w.one.ID, "a-call")
	room, err := w.fabric.Resources.Create(ctx, w.one.ID, w.fabric.Resources.Kinds().ByPath("conference_rooms"),
		map[string]json.RawMessage{"name": []byte(`"of ada@example.com"`)})
	must(t, err)

	ingest, _, err := w.fabric.IngestKeys.Create(ctx, w.one.ID, "switch", nil)
	must(t, err)

	token, _, err := w.fabric.RegistrationTokens.Create(ctx, w.one.ID, fabric.RegistrationTokenInput{}, nil)
	must(t, err)

	upstreamName, issuer := "Acme ID", "https://id.example/"
	u, err := w.idp.Upstreams.Create(ctx, w.one.ID, idp.UpstreamInput{Name: &upstreamName, Issuer: &issuer,
		ClientID: &name})
	must(t, err)

	to := "https://hooks.example/events"
	hook, err := w.fabric.Webhooks.Create(ctx, w.one.ID, fabric.WebhookInput{URL: &to})
	must(t, err)
	sent, err := w.fabric.Webhooks.Test(ctx, w.one.ID, hook.ID)
	must(t, err)

	rule, err := w.recordings.Retention().Add(ctx, recordings.Rule{ProjectID: w.one.ID, Days: 9})
	must(t, err)

	must(t, w.operators.SaveRecordingFilter(ctx, operator.RecordingFilter{OperatorID: o.ID, ProjectID: w.one.ID,
		Name: "late", Query: "after=2030-01-31"}))
	filters, err := w.operators.RecordingFilters(ctx, o.ID, w.one.ID)
	must(t, err)

	return strings.NewReplacer("/webhooks/{id}", "/webhooks/"+hook.ID, "{delivery}", sent.ID,
		"{project}", w.one.ID, "/retention/{id}", "/retention/"+rule.ID,
		"/filters/{id}", "/filters/"+filters[0].ID,
		"/ingest-keys/{id}", "/ingest-keys/"+ingest.ID,
		"/registration-tokens/{id}", "/registration-tokens/"+token.ID, "/upstreams/{id}", "/upstreams/"+u.ID,
		"/keys/{id}",
		"/keys/"+k.ID, "/subscribers/{id}",
		"/subscribers/"+s.ID, "/clients/{id}", "/clients/"+c.ID,
		"/operators/{id}", "/operators/"+o.ID, "{sid}", r.Sid, "/resources/{id}", "/resources/"+room.ID,
		"{kind}", "conference_rooms", "{what}", "guest")
}

// TestRoutesAreRefused shows that each route is refused without a login, to viewers, to operators
// with no role in the project, and with another operator's cookie (threats D02, D04).
func TestRoutesAreRefused(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)

	in := func(p fabric.Project, r operator.Role) operator.Membership {
		return operator.Membership{ProjectID: p.ID, Role: r}
	}

	w.operator("owner@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", in(w.one, operator.Viewer))
	_, other := w.operator("other@example.com", in(w.two, operator.Owner))
	_, admin := w.operator("admin@example.com", operator.Membership{Role: operator.Admin})
	nobody := w.browser()

	routes := w.api.Routes()
	for _, route := range routes {
		method, pattern, _ := strings.Cut(route, " ")
		path := ids.Replace(pattern)
		if open[route] {
			continue
		}

		isOwn, ofProject := strings.HasPrefix(pattern, "/dashboard/account"), strings.Contains(pattern, "{project}")
		for _, p := range own {
			isOwn = isOwn || p == pattern && route != "POST /dashboard/projects"
		}

		refused := func(who string, b browser, want int) {
			form := url.Values{"form": {b.token(
				map[bool]string{true: "/dashboard/login", false: "/dashboard/account"}[who == "nobody"])}}
			if method == http.MethodGet {
				form = nil
			}
			if a := b.send(b.request(method, path, form)); a.StatusCode != want ||
				strings.Contains(a.body, "ada@example.com") {
				t.Errorf("%s as %s returned %s, want %d", route, who, a.Status, want)
			} else if want == http.StatusSeeOther &&
				!strings.HasPrefix(a.Header.Get("Location"), "/dashboard/login") {
				t.Errorf("%s as %s leads to %s, want the login page", route, who, a.Header.Get("Location"))
			}
		}

		refused("nobody", nobody, http.StatusSeeOther)
		if isOwn {
			continue
		}

		// Routes that change something, or lead to a form that does, are also refused to
		// viewers. Viewers may save filters, which only they see.
		changes := method == http.MethodPost && !strings.Contains(pattern, "/recordings/filters") ||
			strings.HasSuffix(pattern, "/new") ||
			strings.HasSuffix(pattern, "/edit") || strings.HasSuffix(pattern, "/{kind}") ||
			strings.HasSuffix(pattern, "/upload") || strings.HasSuffix(pattern, "{id}/export") ||
			strings.HasSuffix(pattern, "/{what}")

		switch {
		case ofProject:
			refused("an owner of another project", other, http.StatusNotFound)
			if changes {
				refused("a viewer", viewer, http.StatusForbidden)
			}
			if method == http.MethodPost && strings.HasSuffix(pattern, "{project}/delete") {
				refused("an admin", admin, http.StatusForbidden)
			}
		default: // a route of the installation
			refused("a viewer", viewer, http.StatusForbidden)
			refused("an owner of another project", other, http.StatusForbidden)
			refused("an admin of all projects", admin, http.StatusForbidden)
		}
	}

	if len(routes) < 40 {
		t.Errorf("there are only %d routes", len(routes))
	}
}

// TestForms shows that a GET changes nothing, and neither does a form from another site or session.
func TestForms(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("owner@example.com", ofAll)
	_, another := w.operator("another@example.com", ofAll)

	token, theirs := b.token("/dashboard/account"), another.token("/dashboard/account")
	before := w.actions()
	for _, route := range w.api.Routes() {
		pattern, ok := strings.CutPrefix(route, "POST ")
		if !ok {
			continue
		}

		path := ids.Replace(pattern)
		if a := b.get(path); a.StatusCode != http.StatusOK && a.StatusCode != http.StatusSeeOther &&
			a.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %s, want 200, 303 or 404", path, a.Status)
		}

		// Forms from other origins are refused.
		for name, change := range map[string]func(r *http.Request){
			"cross-site":         func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"from a sister site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"from a different Origin": func(r *http.Request) {
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set("Origin", "https://evil.example")
			},
			"from Origin null": func(r *http.Request) {
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set("Origin", "null")
			},
			"from http instead of https": func(r *http.Request) {
				r.Header.Set("Origin", strings.Replace(w.url, "http:", "https:", 1))
			},
		} {
			r := b.request("POST", path, url.Values{"form": {token}, "confirm": {"One"}})
			change(r)
			if a := b.send(r); a.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s, %s: %s, want 403", path, name, a.Status)
			}
		}

		// Forms without the session's token are refused, too.
		for name, value := range map[string]string{"without a token": "", "with another session's": theirs} {
			if a := b.send(b.request("POST", path,
				url.Values{"form": {value}, "confirm": {"One"}})); a.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s %s: %s, want 403", path, name, a.Status)
			}
		}
	}

	if after := w.actions(); !maps.Equal(before, after) {
		t.Errorf("the requests changed the audited actions from %v to %v, want no change", before, after)
	}
	if a := b.get("/dashboard/projects/" + w.one.ID); a.StatusCode != http.StatusOK {
		t.Errorf("after all requests, the project's page returned %s, want 200", a.Status)
	}
}
