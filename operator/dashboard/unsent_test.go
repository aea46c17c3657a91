package dashboard_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// sendAgain submits the form that a page keeps, and returns the response.
func (b browser) sendAgain(kept answer) answer {
	b.Helper()
	form := make(url.Values)
	for _, m := range hiddenField.FindAllStringSubmatch(kept.body, -1) {
		form.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return b.send(b.request("POST", kept.find(b, `<form method="post" action="([^"]+)">\n<input`), form))
}

// TestUnsentForm shows that a browser without scripts keeps a form that was submitted after the
// session ended, and can send it after the next login.
func TestUnsentForm(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	form := "/dashboard/projects/" + w.one.ID + "/webhooks/new"
	typed := url.Values{
		"url":    {"https://hooks.example/?a=1&b=\"<i>\""},
		"name":   {"CRM"},
		"events": {"call.ended", "call.created"},
		"form":   {b.token(form)},
	}

	b.post("/dashboard/account", "/dashboard/logout", nil).leadsTo(t, "/dashboard/login")
	r := b.request("POST", strings.TrimSuffix(form, "/new"), typed)
	r.Header.Set("Referer", b.url+form)
	kept := b.send(r)
	if kept.StatusCode != http.StatusForbidden {
		t.Fatalf("%s without a session, want 403\n%s", kept, kept.body)
	}
	kept.wantText(t, "Your session has ended", `data-return="/dashboard/login?next=`+url.QueryEscape(form))
	b.sendAgain(kept).wantText(t, "Your session has ended") // there is still no session

	b.signIn("ann@example.com")
	kept = b.sendAgain(kept)
	if kept.StatusCode != http.StatusForbidden {
		t.Fatalf("%s after the login, want 403\n%s", kept, kept.body)
	}
	kept.wantText(t, "Send the form now?",
		`<dt class="mono">url</dt><dd><bdi>https://`) // another operator may have typed it

	if found := webhooksOf(w); len(found) != 0 {
		t.Fatalf("a form with the token of another session created %+v, want no webhook", found)
	}
	if sent := b.sendAgain(kept); sent.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s after the confirmation, want 303\n%s", sent, sent.body)
	}

	found := webhooksOf(w)
	if len(found) != 1 {
		t.Fatalf("there are %d webhooks, want 1", len(found))
	}
	if found[0].Name != "CRM" {
		t.Errorf("the webhook is named %q, want CRM", found[0].Name)
	}
	if found[0].URL != typed.Get("url") {
		t.Errorf("the webhook has the URL %q, want %q", found[0].URL, typed.Get("url"))
	}
	if n := len(found[0].Events); n != 2 {
		t.Errorf("the webhook has %d events, want 2", n)
	}
}

// TestUnconfirmedForm shows that a browser without scripts keeps a form that was submitted without a
// recent confirmation, and can send it afterwards. A form with a password is not kept.
func TestUnconfirmedForm(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	w.pass(operator.Freshness)
	base := "/dashboard/projects/" + w.one.ID
	send := func(path, page string, form url.Values) answer {
		t.Helper()
		form.Set("form", b.token("/dashboard/account"))
		r := b.request("POST", path, form)
		r.Header.Set("Referer", b.url+page)
		return b.send(r)
	}

	newPassword := url.Values{"current": {good}, "password": {good + "2"}}
	send("/dashboard/account/password", "/dashboard/account", newPassword).
		leadsTo(t, "/dashboard/confirm?next=%2Fdashboard%2Faccount")
	kept := send(base+"/keys", base+"/keys/new", url.Values{"name": {"billing"}, "scope": {"Voice", "Video"}})
	kept.asksToConfirm(t, base+"/keys/new")
	kept = b.sendAgain(kept)
	kept.wantText(t, "Nothing was saved yet.") // there is still no confirmation

	b.post("/dashboard/confirm", "/dashboard/confirm", url.Values{"password": {good}}).leadsTo(t, "/dashboard")
	kept = b.sendAgain(kept)
	if strings.Contains(kept.body, "Send the form now?") {
		kept = b.sendAgain(kept) // the confirmation replaced the session's cookie
	}

	keys, err := w.fabric.APIKeys.List(t.Context(), w.one.ID, firstPage)
	must(t, err)
	isSent := func(k fabric.APIKey) bool {
		return k.Name == "billing" && k.Has(fabric.Voice) && k.Has(fabric.Video)
	}
	if !slices.ContainsFunc(keys.Items, isSent) {
		t.Errorf("%s after the confirmation, and the keys are %+v, want the one from the form\n%s",
			kept, keys.Items, kept.body)
	}
}

// webhooksOf returns the webhooks of the first project.
func webhooksOf(w *world) []fabric.Webhook {
	w.Helper()
	found, err := w.fabric.Webhooks.List(w.Context(), w.one.ID, firstPage)
	must(w, err)
	return found.Items
}

// TestUnsentFormRefused shows which forms no page keeps: those with secrets, those from other sites
// or of unknown origin, large ones, and buttons without fields. A kind that is defined in the data
// directory can have secrets with any name.
func TestUnsentFormRefused(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	one := "/dashboard/projects/" + w.one.ID
	const canary = "canary-6f1d"

	for _, tt := range []struct {
		name, path, site string
		form             url.Values
	}{
		{"password", "/dashboard/account/password", "same-origin", url.Values{"current": {canary}}},
		{"SIP secret", one + "/kinds/sip_gateways", "same-origin", url.Values{"name": {"x"}, "password": {canary}}},
		{"member", one + "/kinds/sip_gateways", "same-origin", url.Values{"trunk.password": {canary}}},
		{"OIDC secret", one + "/upstreams", "same-origin", url.Values{"client_secret": {canary}}},
		{"own kind", one + "/kinds/doors", "same-origin", url.Values{"name": {"x"}, "phrase": {canary}}},
		{"fields", one + "/webhooks", "same-origin", url.Values{"name": slices.Repeat([]string{canary}, 1000)}},
		{"token", one + "/tokens/inspect", "same-origin", url.Values{"token": {canary}}},
		{"cross-site", one + "/webhooks", "cross-site", url.Values{"name": {canary}}},
		{"no origin", one + "/webhooks", "", url.Values{"name": {canary}}},
		{"large", one + "/kinds/rooms", "same-origin",
			url.Values{"name": {canary}, "description": {strings.Repeat("x", 64<<10)}}},
		{"button", one + "/delete", "same-origin", url.Values{"form": {canary}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := b.request("POST", tt.path, tt.form)
			r.Header.Del("Sec-Fetch-Site")
			if tt.site != "" {
				r.Header.Set("Sec-Fetch-Site", tt.site)
			}
			b.send(r).wantNoText(t, canary, "unsent-submit")
		})
	}
}

// TestUnsentUpload shows that no page keeps a form that can upload a file, because the page would
// lack the file.
func TestUnsentUpload(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/branding"
	a := b.send(b.request("POST", at, url.Values{"name": {"Shop"}, "form": {"of another session"}}))
	a.wantStatus(t, http.StatusForbidden)
	a.wantNoText(t, "unsent-submit")
}
