package dashboard_test

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// TestHome shows that the home page lists what needs attention, and has the next step and charts
// that can be read as a table. Viewers see no step that they may not take.
func TestHome(t *testing.T) {
	w := newWorld(t)
	_, boss := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})
	home := "/dashboard/projects/" + w.one.ID

	for range 1234 {
		w.rows.CountToken(w.one.ID)
	}
	must(t, w.rows.FlushCounts(t.Context()))
	page := boss.get(home)
	page.wantText(t,
		`id="next-step" href="`+home+`/subscribers/new"`,
		"First steps: 0 of 4 done",
		"<strong>1,234</strong> today",
		`height="40"><title>`,
		`<td class="num" data-label="Tokens">1234</td>`,
		`href="/dashboard/backups"><span class="status warn">`,
		`href="/dashboard/settings/doctor#data-space"`,
		`href="`+home+`/kinds/conference_rooms">New room</a>`,
		home+"/audit?action=login&amp;outcome=refused",
		"Mail not sent")
	page.wantNoText(t, "Delete project")
	viewer.get(home).wantNoText(t, "Mail not sent", "next-step", "/new\"")

	// The home page links to this finding on the diagnostics page.
	checks := boss.get("/dashboard/settings/doctor").body
	if n := strings.Count(checks, `id="data-space"`); n != 1 {
		t.Errorf("the diagnostics page has %d findings about space, want 1", n)
	}

	soon, name := time.Now().Add(72*time.Hour), "old <key>"
	_, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}, Expires: &soon}, nil)
	must(t, err)
	boss.get(home).wantText(t, "API key expires soon", "old &lt;key&gt;")
}

// TestKeysExpireSoon shows that the home page warns of a key that expires soon even if many older
// keys exist.
func TestKeysExpireSoon(t *testing.T) {
	w := newWorld(t)
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})
	soon, name := time.Now().Add(72*time.Hour), "newest"
	in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}
	for range page.DefaultSize {
		_, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID, in, nil)
		must(t, err)
	}
	home := "/dashboard/projects/" + w.one.ID
	viewer.get(home).wantNoText(t, "API key expires soon")
	in.Expires = &soon
	_, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID, in, nil)
	must(t, err)
	viewer.get(home).wantText(t, "API key expires soon")
}

// TestManyKeysExpireSoon shows that the home page warns only of the keys that expire first.
func TestManyKeysExpireSoon(t *testing.T) {
	w := newWorld(t)
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})
	for day := 9; day > 3; day-- {
		name := fmt.Sprintf("key of day %d", day)
		expires := time.Now().AddDate(0, 0, day)
		in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}, Expires: &expires}
		_, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID, in, nil)
		must(t, err)
	}

	// The recent events name the other keys, too, so look only above them.
	body := viewer.get("/dashboard/projects/" + w.one.ID).body
	if n := strings.Count(body, "API key expires soon"); n != 4 {
		t.Errorf("the home page warns of %d keys, want 4", n)
	}
	above, _, _ := strings.Cut(body, "api_key.created")
	for day := 4; day < 8; day++ {
		if name := fmt.Sprintf("key of day %d", day); !strings.Contains(above, name) {
			t.Errorf("the home page does not warn of the %s", name)
		}
	}
}

// TestActiveThisMonth shows that on the last day of a long month, the home page also counts the
// subscribers who were active on its first day, but not those of the month before.
func TestActiveThisMonth(t *testing.T) {
	w := newWorld(t)
	newYear := time.Date(w.now().UTC().Year()+2, time.January, 1, 0, 0, 0, 0, time.UTC)
	for i, day := range []time.Time{newYear.AddDate(0, 0, -1), newYear} {
		w.pass(day.Sub(w.now()))
		email := fmt.Sprintf("sub-%d@example.com", i)
		s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		must(t, w.rows.Record(t.Context(), audit.Of("login", w.one.ID, "subscriber", s.ID)))
	}
	must(t, w.rows.FlushCounts(t.Context()))

	w.pass(newYear.AddDate(0, 0, 30).Sub(w.now()))
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})
	viewer.get("/dashboard/projects/"+w.one.ID).wantText(t, "1 this month")
}

// A wayToSignIn enables a subscriber to sign in. one is the path of the subscriber's page.
type wayToSignIn func(t *testing.T, w *world, b browser, one string)

func acceptInvitation(t *testing.T, w *world, b browser, one string) {
	must(t, w.accept(t, handOver(t, b, one)))
}

func addPasskey(t *testing.T, w *world, _ browser, one string) {
	owner, key := idp.OwnerOf(path.Base(one)), &factortest.Authenticator{Origin: w.named()}
	options, err := w.factors.BeginPasskey(t.Context(), owner, "test", "eve@example.com", "Eve")
	must(t, err)
	_, err = w.factors.CreatePasskey(t.Context(), owner, false, "test", "Phone", key.Create(options))
	must(t, err)
}

func addProvider(t *testing.T, w *world, _ browser, _ string) {
	name, issuer, on := "acme", "https://id.example/", true
	_, err := w.idp.Upstreams.Create(t.Context(), w.one.ID,
		idp.UpstreamInput{Name: &name, Issuer: &issuer, ClientID: &name, Enabled: &on})
	must(t, err)
}

// addMany creates ten more subscribers.
func addMany(t *testing.T, w *world, _ browser, _ string) {
	for i := range 10 {
		email := fmt.Sprintf("sub-%d@example.com", i)
		_, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
	}
}

// TestFirstSubscriber shows that the first step is done only once an enabled subscriber can sign in,
// with a password, a passkey or another provider. In a project with many subscribers the step is also
// done, because they may get their tokens from a backend.
func TestFirstSubscriber(t *testing.T) {
	const todo, done = "First steps: 0 of 4 done", "First steps: 1 of 4 done"
	for _, tt := range []struct {
		name       string
		add        wayToSignIn
		ifDisabled string // the progress after the subscriber is disabled
	}{
		{name: "invitation", add: acceptInvitation, ifDisabled: todo},
		{name: "passkey", add: addPasskey, ifDisabled: todo},
		{name: "provider", add: addProvider, ifDisabled: todo},
		{name: "many", add: addMany, ifDisabled: done},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			_, b := w.operator("ann@example.com", ofAll)
			home := "/dashboard/projects/" + w.one.ID
			one := w.eve(t, b)
			b.get(home).wantText(t, todo, `id="next-step" href="`+one+`#invitation"`,
				"No way to sign in yet: send an invitation.", "selvage subscriber invite --project "+w.one.ID)

			tt.add(t, w, b, one)
			withWay := b.get(home)
			withWay.wantText(t, done)
			withWay.wantNoText(t, "next-hint")

			disabled := true
			_, err := w.fabric.Subscribers.Update(t.Context(), w.one.ID, path.Base(one),
				fabric.SubscriberInput{Disabled: &disabled})
			must(t, err)
			withDisabled := b.get(home)
			withDisabled.wantText(t, tt.ifDisabled)
			withDisabled.wantNoText(t, "next-hint")
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
	boss.get(home+"/settings").wantText(t, `value="Loom"`, "Delete project")
	viewer.get(home+"/settings").wantNoText(t, "<button class=\"danger\"", "id=\"rename\"")

	boss.post(home+"/settings", home+"/delete", url.Values{"confirm": {"One"}}).
		wantRefused(t, "The name does not match")
	boss.post(home+"/settings", home+"/delete", url.Values{"confirm": {"Loom"}}).
		leadsTo(t, "/dashboard/projects?done=projectdeleted")
}
