package attack

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

const operatorPassword = "a loom of one's own"

// operator creates an operator with a role and signs the operator in to the dashboard.
func operator(t *testing.T, p *harness.Project, role string) *harness.Browser {
	t.Helper()
	email := newOperator(t, p, role)
	b := p.Browser()
	page := b.Submit(t, b.Open(t, "/dashboard"), "login-submit",
		map[string]string{"username": email, "password": operatorPassword})
	if !page.Has("sign-out") {
		t.Fatalf("%s is not signed in: %d %s", email, page.Status, page.Body)
	}
	return b
}

func newOperator(t *testing.T, p *harness.Project, role string) (email string) {
	t.Helper()
	email = fmt.Sprintf("%s-%s@example.com", strings.Trim(strings.ToLower(t.Name()), "/"),
		strings.ReplaceAll(role, "@", "-"))
	email = strings.ReplaceAll(email, "/", "-")
	p.CLI(t, operatorPassword, "operator", "create", "--email", email, "--role", role, "--password-stdin")
	return email
}

// TestS02DashboardAcrossSites shows that the dashboard's login form cannot be posted from
// another site.
func TestS02DashboardAcrossSites(t *testing.T) {
	p := project(t)
	fields := map[string]string{"username": newOperator(t, p, "viewer@"+p.ID), "password": operatorPassword}

	for name, opts := range map[string][]harness.Option{
		"from a different site":             {harness.Header("Sec-Fetch-Site", "cross-site")},
		"from a different host of the site": {harness.Header("Sec-Fetch-Site", "same-site")},
		"Origin: null":                      {harness.Header("Origin", "null"), harness.Header("Sec-Fetch-Site", "")},
		"another origin, an old browser": {harness.Header("Origin", "https://evil.example"),
			harness.Header("Sec-Fetch-Site", "")},
		"our host with a different scheme": {harness.Header(
			"Origin", "https://"+strings.TrimPrefix(p.PublicURL, "http://")), harness.Header("Sec-Fetch-Site", "")},
	} {
		b := p.Browser()
		b.Submit(t, b.Open(t, "/dashboard/login"), "login-submit", fields, opts...).Want(t, 403)
		if b.Open(t, "/dashboard").Has("sign-out") {
			t.Errorf("%s: the login succeeded", name)
		}
	}

	// The victim posts a form that the server showed to another browser.
	attacker, victim := p.Browser(), p.Browser()
	victim.Open(t, "/dashboard/login")
	victim.Submit(t, attacker.Open(t, "/dashboard/login"), "login-submit", fields).Want(t, 403)
	if victim.Open(t, "/dashboard").Has("sign-out") {
		t.Error("a form shown to another browser signs the victim in")
	}
}

// TestS07DashboardSignOut shows that old cookies do not open the dashboard. It tests cookies from
// before the login, and cookies of a session that has been signed out.
func TestS07DashboardSignOut(t *testing.T) {
	p := project(t)
	email := newOperator(t, p, "admin@"+p.ID)

	b := p.Browser()
	door := b.Open(t, "/dashboard")
	before := copyCookies(t, p, b)
	home := b.Submit(t, door, "login-submit", map[string]string{"username": email, "password": operatorPassword})
	thief := copyCookies(t, p, b)
	if before.Open(t, "/dashboard").Has("sign-out") {
		t.Error("cookies from before the login opened the dashboard")
	}
	if !thief.Open(t, "/dashboard").Has("sign-out") {
		t.Error("copied cookies from after the login did not open the dashboard")
	}

	b.Submit(t, home, "sign-out", nil)
	if b.Open(t, "/dashboard").Has("sign-out") {
		t.Error("the browser opened the dashboard after signing out")
	}
	if thief.Open(t, "/dashboard").Has("sign-out") {
		t.Error("copied cookies opened the dashboard after signing out")
	}
}

// upload uploads a recording of speech to the project.
func upload(t *testing.T, p *harness.Project) (sid string) {
	t.Helper()
	wav, err := os.ReadFile(harness.Speech(t))
	if err != nil {
		t.Fatal(err)
	}
	return p.Upload(t, wav)
}

// TestD04Dashboard shows that the dashboard's pages and data need a session of an operator with the
// required role. It tries every other kind of credentials.
func TestD04Dashboard(t *testing.T) {
	p, theirs := project(t), project(t)
	sid := upload(t, p)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	tokens, subscriber := c.SignIn(t, sub, loginScope)

	stranger, viewer := operator(t, theirs, "owner@"+theirs.ID), operator(t, p, "viewer@"+p.ID)
	home := "/dashboard/projects/" + p.ID
	laml := "/api/laml/2010-04-01/Accounts/" + p.ID + "/Recordings"

	// A subscriber, an API key or another project's operator cannot open any of these pages.
	for _, path := range []string{
		home, home + "/keys", home + "/subscribers", home + "/subscribers/" + sub.ID,
		home + "/recordings/" + sid, home + "/clients/" + c.ID, "/dashboard/operators",
	} {
		page := subscriber.Open(t, path)
		if page.URL.Path != "/dashboard/login" {
			t.Errorf("a subscriber's session at %s reached %s, want /dashboard/login", path, page.URL)
		}
		if strings.Contains(string(page.Body), sub.Email) {
			t.Errorf("a subscriber's session at %s got a page with the subscriber's email", path)
		}

		if a := p.Get(t, path, harness.Bearer(tokens.AccessToken)); a.Status != http.StatusSeeOther {
			t.Errorf("a subscriber's token at %s: %d, want 303", path, a.Status)
		}

		if a := p.Get(t, path, harness.Basic(p.ID, p.Key)); a.Status != http.StatusSeeOther {
			t.Errorf("an API key at %s: %d, want 303", path, a.Status)
		}

		want := http.StatusNotFound
		if path == "/dashboard/operators" {
			want = http.StatusForbidden
		}
		page = stranger.Open(t, path)
		if page.Status != want {
			t.Errorf("an operator of a different project at %s: %d, want %d", path, page.Status, want)
		}
		if strings.Contains(string(page.Body), sub.Email) {
			t.Errorf("an operator of a different project at %s got a page with the subscriber's email", path)
		}
	}

	// A browser session can read recordings if the operator's role permits it.
	viewer.Open(t, laml+".json").Want(t, 200)
	viewer.Open(t, laml+"/"+sid+".json").Want(t, 200)
	stranger.Open(t, laml+".json").Want(t, 401, 403, 404)
	subscriber.Open(t, laml+".json").Want(t, 401)

	// A viewer cannot delete a recording. An admin can, but only with a same-origin request.
	ours := harness.Header("Sec-Fetch-Site", "same-origin")
	p.Do(t, "DELETE", laml+"/"+sid, viewer.Cookies(), ours).Want(t, 401, 403)
	admin := operator(t, p, "admin@"+p.ID)
	for _, origin := range []harness.Option{
		harness.Header("Sec-Fetch-Site", "cross-site"),
		harness.Header("Sec-Fetch-Site", "none"),
		harness.Header("Origin", "https://evil.example"),
		harness.Header("Origin", "null"),
		harness.Header("X-Nothing", "at all"),
	} {
		p.Do(t, "DELETE", laml+"/"+sid, admin.Cookies(), origin).Want(t, 403)
	}
	p.Do(t, "DELETE", laml+"/"+sid, admin.Cookies(), ours).Want(t, 204)
}

// TestD05Echo shows that the dashboard escapes the parts of a request that its response repeats.
func TestD05Echo(t *testing.T) {
	p := project(t)
	admin := operator(t, p, "admin@"+p.ID)
	evil := `"><script>alert(1)</script>`

	for _, target := range []url.URL{
		{Path: "/dashboard/" + evil},
		{Path: "/dashboard/projects/" + evil},
		{Path: "/dashboard/projects/" + p.ID + "/keys/" + evil},
		{Path: "/dashboard/setup", RawQuery: "token=" + url.QueryEscape(evil)},
		{Path: "/dashboard/login", RawQuery: "next=" + url.QueryEscape(evil)},
	} {
		for who, b := range map[string]*harness.Browser{"an admin": admin, "a stranger": p.Browser()} {
			page := string(b.Open(t, p.PublicURL+target.String()).Body)
			if strings.Contains(page, "<script>alert") {
				t.Errorf("the page at %s for %s contains the markup unescaped", target.Path, who)
			}
			if strings.Contains(page, "goroutine") {
				t.Errorf("the page at %s for %s contains a stack trace", target.Path, who)
			}
		}
	}

	// Signing out requires a POST.
	p.Do(t, "GET", "/dashboard/logout", admin.Cookies()).Want(t, 303)
	p.Do(t, "GET", "/dashboard/projects", admin.Cookies()).Want(t, 200)
}
