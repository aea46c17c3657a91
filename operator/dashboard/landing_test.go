package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestFormAddresses shows that a browser that opens the address of a form gets a page, or is
// redirected to one that belongs to the same project. Browsers do this when a person reloads the
// response of a form, or changes the language there.
func TestFormAddresses(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("owner@example.com", ofAll)
	tried := 0
	for _, route := range w.api.Routes() {
		pattern, ok := strings.CutPrefix(route, "POST ")
		path := ids.Replace(pattern)
		if !ok || !strings.Contains(pattern, "{project}") || strings.Contains(path, "{") {
			continue // a page of the installation, or of something that does not exist
		}
		a := b.get(path)
		if to := a.Header.Get("Location"); a.StatusCode == http.StatusSeeOther {
			if !strings.HasPrefix(to, "/dashboard/projects/"+w.one.ID) {
				t.Errorf("GET %s leads to %s", pattern, to)
			}
			a = b.get(to)
		}
		if tried++; a.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s, want a page", pattern, a.Status)
		}
	}
	if tried < 50 {
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
		if a := b.post(page, form+"/link", sent); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s\n%s", form, a.Status, a.body)
		}
		for path, field := range map[string]string{
			"/dashboard/language": "language", "/dashboard/account/theme": "theme",
		} {
			r := b.request("POST", path, url.Values{field: {"en"}, "form": {b.token(base)}})
			r.Header.Set("Referer", b.url+form+"/link")
			to := b.send(r).Header.Get("Location")
			b.get(to).leadsTo(t, form)
		}
	}
}
