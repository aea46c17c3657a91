package dashboard_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// openRoutes lists the routes that need no login.
var openRoutes = map[string]bool{
	"GET /dashboard/login": true, "POST /dashboard/login": true, "POST /dashboard/login/passkey": true,
	"GET /dashboard/setup": true, "POST /dashboard/language": true, "POST /dashboard/setup": true,
	"GET /dashboard/login/passkey": true, // leads to the login page
}

// ownPaths lists the paths that every operator may use for their own account.
var ownPaths = []string{"/dashboard", "/dashboard/confirm", "/dashboard/enrol", "/dashboard/factor",
	"/dashboard/language", "/dashboard/logout", "/dashboard/projects", "/dashboard/search"}

// things returns a replacer for the parameters in paths. It replaces them with the ids of existing
// rows.
func (w *world) things(t *testing.T) *strings.Replacer {
	t.Helper()
	ctx, name, email := t.Context(), "key", "ada@example.com"
	k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	c, _, err := w.idp.Clients.Create(ctx,
		idp.Client{ProjectID: w.one.ID, Name: "app", Type: idp.Service, Scopes: []string{"Voice"}})
	must(t, err)

	victim := "victim@example.com"
	o, err := w.operators.Create(ctx,
		operator.Input{Email: &victim, Roles: []operator.Membership{{Role: operator.Viewer}}})
	must(t, err)
	r := w.record(w.one.ID, "a-call")
	room := w.room("of ada@example.com")
	ingest, _, err := w.fabric.IngestKeys.Create(ctx, w.one.ID, "switch", nil)
	must(t, err)
	token, _, err := w.fabric.RegistrationTokens.Create(ctx, w.one.ID, fabric.RegistrationTokenInput{}, nil)
	must(t, err)

	upstreamName, issuer := "Acme ID", "https://id.example/"
	u, err := w.idp.Upstreams.Create(ctx, w.one.ID,
		idp.UpstreamInput{Name: &upstreamName, Issuer: &issuer, ClientID: &name})
	must(t, err)
	target := "https://hooks.example/events"
	hook, err := w.fabric.Webhooks.Create(ctx, w.one.ID, fabric.WebhookInput{URL: &target})
	must(t, err)
	sent, err := w.fabric.Webhooks.Test(ctx, w.one.ID, hook.ID)
	must(t, err)

	rule, err := w.recordings.Retention().Add(ctx, recordings.Rule{ProjectID: w.one.ID, Days: 9})
	must(t, err)
	must(t, w.operators.SaveRecordingFilter(ctx, operator.RecordingFilter{
		OperatorID: o.ID,
		ProjectID:  w.one.ID,
		Name:       "late",
		Query:      "after=2030-01-31",
	}))
	filters, err := w.operators.RecordingFilters(ctx, o.ID, w.one.ID)
	must(t, err)

	return strings.NewReplacer(
		"{project}", w.one.ID,
		"{sid}", r.Sid,
		"{delivery}", sent.ID,
		"{kind}", "conference_rooms",
		"{what}", "guest",
		"/webhooks/{id}", "/webhooks/"+hook.ID,
		"/retention/{id}", "/retention/"+rule.ID,
		"/filters/{id}", "/filters/"+filters[0].ID,
		"/ingest-keys/{id}", "/ingest-keys/"+ingest.ID,
		"/registration-tokens/{id}", "/registration-tokens/"+token.ID,
		"/upstreams/{id}", "/upstreams/"+u.ID,
		"/keys/{id}", "/keys/"+k.ID,
		"/subscribers/{id}", "/subscribers/"+s.ID,
		"/clients/{id}", "/clients/"+c.ID,
		"/operators/{id}", "/operators/"+o.ID,
		"/resources/{id}", "/resources/"+room.ID)
}

// isOwn reports whether every operator may use a route for their own account.
func isOwn(route string) bool {
	_, pattern, _ := strings.Cut(route, " ")
	return strings.HasPrefix(pattern, "/dashboard/account") ||
		slices.Contains(ownPaths, pattern) && route != "POST /dashboard/projects"
}

// formEnds lists the endings of the paths of pages that viewers may not open.
var formEnds = []string{"/new", "/edit", "/{kind}", "/upload", "{id}/export", "/{what}"}

// isForChange reports whether a route changes something, or leads to a form that does. Viewers may
// save filters, which only they see.
func isForChange(method, pattern string) bool {
	if method == http.MethodPost && !strings.Contains(pattern, "/recordings/filters") {
		return true
	}
	return slices.ContainsFunc(formEnds, func(end string) bool { return strings.HasSuffix(pattern, end) })
}

// TestRoutesAreRefused shows that each route is refused without a login, and to operators without a
// role in the project. Viewers may not use routes that change something. Only owners of all projects
// may use the routes of the installation (threats D02, D04).
func TestRoutesAreRefused(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	w.operator("owner@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	_, other := w.operator("other@example.com", operator.Membership{ProjectID: w.two.ID, Role: operator.Owner})
	_, admin := w.operator("admin@example.com", operator.Membership{Role: operator.Admin})
	nobody := w.browser()

	routes := w.api.Routes()
	for _, route := range routes {
		if openRoutes[route] {
			continue
		}
		method, pattern, _ := strings.Cut(route, " ")
		path := ids.Replace(pattern)
		send := func(b browser, formPage string) answer {
			if method == http.MethodGet {
				return b.get(path)
			}
			return b.send(b.request(method, path, url.Values{"form": {b.token(formPage)}}))
		}
		refused := func(who string, b browser, want int) {
			t.Helper()
			a := send(b, "/dashboard/account")
			if a.StatusCode != want {
				t.Errorf("%s as %s returned %s, want %d", route, who, a.Status, want)
			}
			a.wantNoText(t, "ada@example.com")
		}

		anonymous := send(nobody, "/dashboard/login")
		anonymous.wantStatus(t, http.StatusSeeOther)
		anonymous.wantNoText(t, "ada@example.com")
		if at := anonymous.Header.Get("Location"); !strings.HasPrefix(at, "/dashboard/login") {
			t.Errorf("%s without a login leads to %s, want the login page", route, at)
		}

		switch {
		case isOwn(route):
		case strings.Contains(pattern, "{project}"):
			refused("an owner of another project", other, http.StatusNotFound)
			if isForChange(method, pattern) {
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
		t.Errorf("there are only %d routes, want at least 40", len(routes))
	}
}

// otherOrigins lists ways in which a form can come from another origin.
var otherOrigins = []struct {
	name   string
	change func(r *http.Request)
}{
	{"cross-site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
	{"from another origin of the same site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }},
	{"from a different Origin", func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", "https://evil.example")
	}},
	{"from Origin null", func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", "null")
	}},
	{"from https instead of http", func(r *http.Request) {
		r.Header.Set("Origin", "https://"+r.URL.Host)
	}},
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
		switch a := b.get(path); a.StatusCode {
		case http.StatusOK, http.StatusSeeOther, http.StatusNotFound:
		default:
			t.Errorf("%s, want 200, 303 or 404", a)
		}
		for _, tt := range otherOrigins {
			r := b.request("POST", path, url.Values{"form": {token}, "confirm": {"One"}})
			tt.change(r)
			if a := b.send(r); a.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s, want 403", tt.name, a)
			}
		}
		for _, wrongToken := range []string{"", theirs} {
			form := url.Values{"form": {wrongToken}, "confirm": {"One"}}
			b.send(b.request("POST", path, form)).wantStatus(t, http.StatusForbidden)
		}
	}

	if after := w.actions(); !maps.Equal(before, after) {
		t.Errorf("the requests changed the audited actions from %v to %v, want no change", before, after)
	}
	b.get("/dashboard/projects/"+w.one.ID).wantStatus(t, http.StatusOK)
}
