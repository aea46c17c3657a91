package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestFormAddresses shows that a browser that opens the address of a form gets a page, after at most
// three redirects. For a form of a project, each of them leads to the same project. Browsers do this
// when a person reloads the response of a form, or changes the language there.
func TestFormAddresses(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("owner@example.com", ofAll)
	tried := 0
	for _, route := range w.api.Routes() {
		pattern, ok := strings.CutPrefix(route, "POST ")
		path, within := ids.Replace(pattern), "/dashboard"
		if !ok || strings.Contains(path, "{") {
			continue // a form about something that does not exist
		}
		if strings.Contains(pattern, "{project}") {
			within = "/dashboard/projects/" + w.one.ID
		}
		want := http.StatusOK
		if pattern == "/dashboard/setup" { // a link without a token
			want = http.StatusNotFound
		}

		tried++
		a := b.get(path)
		for range 3 {
			if a.StatusCode != http.StatusSeeOther {
				break
			}
			next := a.Header.Get("Location")
			if !strings.HasPrefix(next, within) {
				t.Errorf("%s leads to %s, want a page below %s", a, next, within)
			}
			a = b.get(next)
		}
		if a.StatusCode != want {
			t.Errorf("GET %s leads to %s, want %d", pattern, a, want)
		}
	}
	if tried < 80 {
		t.Errorf("only %d addresses were tried", tried)
	}
}

// TestLandings shows to which page the address of a form leads.
func TestLandings(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	for path, want := range map[string]string{
		base + "/keys/an%2Fid/rotate":                  base + "/keys/an%2Fid",
		base + "/kinds/conference_rooms/link":          base + "/kinds/conference_rooms",
		base + "/subscribers/link":                     base + "/subscribers",
		base + "/webhooks/test":                        base + "/webhooks",
		base + "/ingest-keys/id/revoke":                base + "/ingest-keys",
		base + "/signing-key/rotate":                   base + "/webhooks",
		base + "/delete":                               base,
		"/dashboard/operators/invitations/id/withdraw": "/dashboard/operators",
		"/dashboard/account/theme":                     "/dashboard/account",
		"/dashboard/logout":                            "/dashboard",
	} {
		b.get(path).leadsTo(t, want)
	}
}

// TestLanguageAfterForm shows that the language and the theme can be changed on the page with which a
// form answers.
func TestLanguageAfterForm(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	for form, sent := range map[string]url.Values{
		base + "/subscribers":            {"email": {"ada@example.com"}},
		base + "/kinds/conference_rooms": {"name": {"lobby"}},
	} {
		page := form
		if !strings.Contains(form, "kinds") {
			page += "/new"
		}
		b.post(page, form+"/link", sent).wantStatus(t, http.StatusOK)
		for path, field := range map[string]string{
			"/dashboard/language": "language", "/dashboard/account/theme": "theme",
		} {
			r := b.request("POST", path, url.Values{field: {"en"}, "form": {b.token(base)}})
			r.Header.Set("Referer", b.url+form+"/link")
			b.get(b.send(r).Header.Get("Location")).leadsTo(t, form)
		}
	}
}

// TestCompleteSession shows that the pages for a second factor lead a person whose session is complete
// to the page that the person wanted, also if the form is sent again.
func TestCompleteSession(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	const wanted = "/dashboard/account"
	for next, want := range map[string]string{"": "/dashboard", wanted: wanted, "https://evil.example/": "/dashboard"} {
		for _, path := range []string{"/dashboard/factor", "/dashboard/enrol"} {
			b.get(path+"?next="+url.QueryEscape(next)).leadsTo(t, want)
			b.post(wanted, path, url.Values{"next": {next}, "code": {"123456"}}).leadsTo(t, want)
		}
	}
}
