package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A browser sends a GET request to the address of a form when a person opens it from the address bar,
// or changes the language on the page that the form returned. The tests in this file show that such a
// request leads to a page.

const (
	// minAddresses is a little less than the number of addresses that TestFormAddresses finds. It
	// ensures that the test does not skip most of them by mistake.
	minAddresses = 80

	// maxRedirects is the maximum number of redirects from the address of a form to a page.
	maxRedirects = 3
)

// TestFormAddresses shows that each address of a form leads to a page after at most maxRedirects
// redirects. If the form belongs to a project, every redirect leads to a page of that project.
func TestFormAddresses(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, owner := w.operator("owner@example.com", ofAll)

	tried := 0
	for _, route := range w.api.Routes() {
		pattern, isForm := strings.CutPrefix(route, "POST ")
		if !isForm {
			continue
		}
		address := ids.Replace(pattern)
		if strings.Contains(address, "{") {
			continue // there is no row for this form
		}
		tried++

		prefix := "/dashboard"
		if strings.Contains(pattern, "{project}") {
			prefix = "/dashboard/projects/" + w.one.ID
		}
		wantStatus := http.StatusOK
		if pattern == "/dashboard/setup" {
			wantStatus = http.StatusNotFound // the address lacks the token of a link
		}

		page := owner.followWithin(t, address, prefix)
		if page.StatusCode != wantStatus {
			t.Errorf("GET %s leads to %s, want %d", pattern, page, wantStatus)
		}
	}

	if tried < minAddresses {
		t.Errorf("%d addresses were tried, want at least %d", tried, minAddresses)
	}
}

// followWithin opens an address and follows at most maxRedirects redirects. It returns the last
// answer. A redirect to a path that does not begin with prefix fails the test.
func (b browser) followWithin(t *testing.T, address, prefix string) answer {
	t.Helper()
	a := b.get(address)
	for range maxRedirects {
		if a.StatusCode != http.StatusSeeOther {
			break
		}
		next := a.Header.Get("Location")
		if !strings.HasPrefix(next, prefix) {
			t.Errorf("%s leads to %s, want a page below %s", a, next, prefix)
		}
		a = b.get(next)
	}
	return a
}

// TestLandings shows the page to which the address of a form redirects.
func TestLandings(t *testing.T) {
	w := newWorld(t)
	_, owner := w.operator("owner@example.com", ofAll)
	project := "/dashboard/projects/" + w.one.ID

	for address, want := range map[string]string{
		project + "/keys/an%2Fid/rotate":               project + "/keys/an%2Fid",
		project + "/kinds/conference_rooms/link":       project + "/kinds/conference_rooms",
		project + "/subscribers/link":                  project + "/subscribers",
		project + "/webhooks/test":                     project + "/webhooks",
		project + "/ingest-keys/id/revoke":             project + "/ingest-keys",
		project + "/signing-key/rotate":                project + "/webhooks",
		project + "/delete":                            project,
		"/dashboard/operators/invitations/id/withdraw": "/dashboard/operators",
		"/dashboard/account/theme":                     "/dashboard/account",
		"/dashboard/logout":                            "/dashboard",
	} {
		owner.get(address).leadsTo(t, want)
	}
}

// TestLanguageAfterForm shows that an operator can change the language and the theme on a page that
// is the response of a form. The change leads to the list that the form belongs to.
func TestLanguageAfterForm(t *testing.T) {
	w := newWorld(t)
	_, owner := w.operator("owner@example.com", ofAll)
	project := "/dashboard/projects/" + w.one.ID
	subscribers := project + "/subscribers"
	rooms := project + "/kinds/conference_rooms"

	forms := []struct {
		page  string // the page that contains the form
		list  string // the list that the form belongs to
		input url.Values
	}{
		{page: subscribers + "/new", list: subscribers, input: url.Values{"email": {"ada@example.com"}}},
		{page: rooms, list: rooms, input: url.Values{"name": {"lobby"}}},
	}
	settings := []struct{ address, field, value string }{
		{address: "/dashboard/language", field: "language", value: "en"},
		{address: "/dashboard/account/theme", field: "theme", value: "dark"},
	}

	for _, form := range forms {
		response := form.list + "/link"
		owner.post(form.page, response, form.input).wantStatus(t, http.StatusOK)

		for _, setting := range settings {
			change := url.Values{
				setting.field: {setting.value},
				"form":        {owner.token(project)},
			}
			r := owner.request("POST", setting.address, change)
			r.Header.Set("Referer", owner.url+response)
			changed := owner.send(r)

			// The browser returns to the address of the form, which leads to the list.
			owner.get(changed.Header.Get("Location")).leadsTo(t, form.list)
		}
	}
}

// TestCompleteSession shows that the pages for a second factor redirect an operator whose session
// needs no second factor. They redirect to the page in next, if it belongs to the dashboard. It makes
// no difference whether the operator opens such a page or submits its form.
func TestCompleteSession(t *testing.T) {
	w := newWorld(t)
	_, owner := w.operator("owner@example.com", ofAll)

	tests := []struct{ name, next, want string }{
		{name: "no page", next: "", want: "/dashboard"},
		{name: "a page of the dashboard", next: "/dashboard/account", want: "/dashboard/account"},
		{name: "another site", next: "https://evil.example/", want: "/dashboard"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, factorPage := range []string{"/dashboard/factor", "/dashboard/enrol"} {
				owner.get(factorPage+"?next="+url.QueryEscape(tt.next)).leadsTo(t, tt.want)

				input := url.Values{"next": {tt.next}, "code": {"123456"}}
				owner.post("/dashboard/account", factorPage, input).leadsTo(t, tt.want)
			}
		})
	}
}
