package dashboard_test

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/operator"
)

// TestHome shows that the home page begins with the matters that need attention, the next step, and
// charts that can be read as a table. Viewers see no step that they may not take.
func TestHome(t *testing.T) {
	w := newWorld(t)
	_, boss := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})
	home := "/dashboard/projects/" + w.one.ID

	for range 1234 {
		w.rows.CountToken(w.one.ID)
	}
	must(t, w.rows.FlushCounts(context.Background()))
	page := boss.get(home).body
	for _, want := range []string{`id="next-step" href="` + home + `/subscribers/new"`,
		"First steps: 0 of 4 done", "<strong>1,234</strong> today", `height="40"><title>`,
		`<td class="num" data-label="Tokens">1234</td>`, `href="/dashboard/backups"><span class="status warn">`,
		`href="/dashboard/settings/doctor#data-space"`, `href="` + home + `/kinds/conference_rooms">New room</a>`,
		home + "/audit?action=login&amp;outcome=refused"} {
		if !strings.Contains(page, want) {
			t.Errorf("the home page lacks %s", want)
		}
	}

	if strings.Contains(page, "Delete project") || !strings.Contains(page, "Mail not sent") {
		t.Error("the home page offers the deletion of the project, or does not say that a mail failed")
	}
	if page := viewer.get(home).body; strings.Contains(page, "Mail not sent") {
		t.Error("the home page shows viewers the state of the installation")
	}

	if page := viewer.get(home).body; strings.Contains(page, "next-step") || strings.Contains(page, "/new\"") {
		t.Error("the home page offers viewers what they may not do")
	}

	if checks := boss.get("/dashboard/settings/doctor").body; strings.Count(checks, `id="data-space"`) != 1 {
		t.Error("the home page links to a finding that the page of the checks does not have")
	}

	soon, name := time.Now().Add(72*time.Hour), "old <key>"
	_, _, err := w.fabric.APIKeys.Create(context.Background(), w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}, Expires: &soon}, nil)
	must(t, err)
	page = boss.get(home).body
	if !strings.Contains(page, "API key expires soon") || !strings.Contains(page, "old &lt;key&gt;") {
		t.Error("the home page does not list a key that expires soon")
	}
}

// TestFirstSubscriber shows that the first step is done only once an enabled subscriber can sign in,
// with a password, a passkey or another provider. Subscribers of a larger project may get tokens from
// a backend instead.
func TestFirstSubscriber(t *testing.T) {
	const todo, done = "First steps: 0 of 4 done", "First steps: 1 of 4 done"
	type finish func(t *testing.T, w *world, b browser, one string)
	for name, tt := range map[string]struct {
		finish     finish
		ifDisabled string // the progress after the subscriber is disabled
	}{
		"invitation": {func(t *testing.T, w *world, b browser, one string) {
			must(t, w.accept(t, handOver(t, b, one)))
		}, todo},
		"passkey": {func(t *testing.T, w *world, _ browser, one string) {
			owner, key := idp.OwnerOf(path.Base(one)), &factortest.Authenticator{Origin: w.named()}
			options, err := w.factors.BeginPasskey(t.Context(), owner, "test", "eve@example.com", "Eve")
			must(t, err)
			_, err = w.factors.CreatePasskey(t.Context(), owner, false, "test", "Phone", key.Create(options))
			must(t, err)
		}, todo},
		"provider": {func(t *testing.T, w *world, _ browser, _ string) {
			name, issuer, on := "acme", "https://id.example/", true
			_, err := w.idp.Upstreams.Create(t.Context(), w.one.ID,
				idp.UpstreamInput{Name: &name, Issuer: &issuer, ClientID: &name, Enabled: &on})
			must(t, err)
		}, todo},
		"many": {func(t *testing.T, w *world, _ browser, _ string) {
			for i := range 10 {
				email := fmt.Sprintf("sub-%d@example.com", i)
				_, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
				must(t, err)
			}
		}, done},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, b := w.operator("ann@example.com", ofAll)
			home := "/dashboard/projects/" + w.one.ID
			one := w.eve(t, b)
			page := b.get(home).body
			for _, want := range []string{todo, `id="next-step" href="` + one + `#invitation"`,
				"No way to sign in yet: send an invitation.", "selvage subscriber invite --project " + w.one.ID} {
				if !strings.Contains(page, want) {
					t.Errorf("with a subscriber who cannot sign in, the home page lacks %s", want)
				}
			}

			says := func(when, progress string) {
				t.Helper()
				page := b.get(home).body
				if !strings.Contains(page, progress) || strings.Contains(page, "next-hint") {
					t.Errorf("%s, the home page lacks %q, or has a hint", when, progress)
				}
			}
			tt.finish(t, w, b, one)
			says("at the end", done)
			disabled := true
			_, err := w.fabric.Subscribers.Update(t.Context(), w.one.ID, path.Base(one),
				fabric.SubscriberInput{Disabled: &disabled})
			must(t, err)
			says("without the subscriber", tt.ifDisabled)
		})
	}
}

// TestProjectSettings shows that a project can be renamed and deleted on its settings page.
func TestProjectSettings(t *testing.T) {
	w := newWorld(t)
	_, boss := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})
	home := "/dashboard/projects/" + w.one.ID

	boss.post(home+"/settings", home+"/settings", url.Values{"name": {"Loom"}}).
		leadsTo(t, home+"/settings?done=changed")
	if page := boss.get(home + "/settings").body; !strings.Contains(page, `value="Loom"`) ||
		!strings.Contains(page, "Delete project") {
		t.Error("the settings lack the new name or the deletion")
	}

	if page := viewer.get(home + "/settings").body; strings.Contains(page, "<button class=\"danger\"") ||
		strings.Contains(page, "id=\"rename\"") {
		t.Error("the settings offer viewers what they may not do")
	}

	if a := boss.post(home+"/settings", home+"/delete", url.Values{"confirm": {"One"}}); a.StatusCode != 422 ||
		!strings.Contains(a.body, "The name does not match") {
		t.Errorf("a deletion with a wrong name returned %d, want 422 with the reason", a.StatusCode)
	}
	boss.post(home+"/settings", home+"/delete", url.Values{"confirm": {"Loom"}}).
		leadsTo(t, "/dashboard/projects?done=projectdeleted")
}
