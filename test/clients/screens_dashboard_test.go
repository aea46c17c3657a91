package clients

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestScreensOfDashboard comes by the pages of the dashboard.
func TestScreensOfDashboard(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	server := harness.Start(t)
	p := server.NewProject(t)
	s := newScreens(t)
	defer s.index()
	link := server.CLI(t, "", "operator", "setup-link")["url"].(string)
	s.open("dashboard-setup", link)
	const secret = "a loom of one's own"
	s.fill("setup-submit", "username", "ann@example.com", "name", rtlName, "password", secret)
	home := "/dashboard/projects/" + p.ID
	s.arrive(home)
	s.stop("dashboard-home-empty")
	for _, page := range []string{"subscribers", "resources", "addresses", "recordings", "clients"} {
		s.open("dashboard-"+page+"-empty", p.PublicURL+home+"/"+page)
	}
	sub := p.NewSubscriber(t)
	p.Post(t, "/api/fabric/resources/subscribers", p.Basic(), harness.JSON(map[string]any{"email": longMail, "first_name": "\u05d0\u05d3\u05d4 (2)", "display_name": longApp})).Want(t, 201)
	client := p.NewClient(t, "spa", "--name", longApp)
	p.Command(t, "", "recording", "import", "--project", p.ID, "--call-sid", "a-call", "../../cmd/selvage/demo/welcome.wav")
	p.Command(t, "", "operator", "create", "--email", "bob@example.com", "--role", "viewer@"+p.ID)
	for _, at := range []struct{ name, path string }{
		{"home", home}, {"projects", "/dashboard/projects"}, {"operators", "/dashboard/operators"}, {"operator-invite", "/dashboard/operators/invite"},
		{"account", "/dashboard/account"}, {"account-app", "/dashboard/account/app"}, {"account-passkey", "/dashboard/account/passkey"}, {"missing", "/dashboard/operators/nobody"}, {"confirm", "/dashboard/confirm"},
		{"keys", home + "/keys"}, {"key-new", home + "/keys/new"}, {"clients", home + "/clients"}, {"client-new", home + "/clients/new"}, {"client", home + "/clients/" + client.ID},
		{"subscribers", home + "/subscribers"}, {"subscriber", home + "/subscribers/" + sub.ID}, {"subscriber-new", home + "/subscribers/new"},
		{"resources", home + "/resources"}, {"addresses", home + "/addresses"}, {"recordings", home + "/recordings"}, {"recordings-none", home + "/recordings?call=other"},
		{"rules", home + "/rules"}, {"rules-edit", home + "/rules/edit"}, {"audit", home + "/audit"}, {"audit-all", "/dashboard/audit"}, {"styles", "/dashboard/_styles"}, {"styles-pages", "/dashboard/_styles?of=pages"},
	} {
		s.open("dashboard-"+at.name, p.PublicURL+at.path)
	}
	s.do(chromedp.Navigate(p.PublicURL + home + "/keys/new"))
	s.fill("key-submit", "name", "billing backend")
	s.until("the secret", "document.querySelector('#secret code')")
	s.stop("dashboard-key-made")
	for name, from := range map[string]string{"recording": home + "/recordings", "operator": "/dashboard/operators", "key": home + "/keys"} {
		s.do(chromedp.Navigate(p.PublicURL+from), chromedp.Click(chromedp.CSS(".table td a")))
		s.until(name, "document.readyState === 'complete' && location.pathname !== "+quoted(from))
		s.stop("dashboard-" + name)
	}
	s.do(chromedp.Navigate(p.PublicURL+home), chromedp.Click(chromedp.CSS(".rail #sign-out")))
	s.arrive("/dashboard/login")
	s.stop("dashboard-login")
	s.fill("login-submit", "username", "ann@example.com", "password", "not "+secret)
	s.until("the error", "document.querySelector('#faults')")
	s.stop("dashboard-login-wrong")
}
