package clients

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestScreensOfDashboard shows that the pages of the dashboard pass the checks of screens. For
// German, only the checks run whose results a translation can change.
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
	for _, page := range []string{"subscribers", "resources", "addresses", "calls", "recordings", "clients"} {
		s.open("dashboard-"+page+"-empty", p.PublicURL+home+"/"+page)
	}

	sub := p.NewSubscriber(t)
	p.Post(t, "/api/fabric/resources/subscribers", p.Basic(),
		harness.JSON(map[string]any{
			"email":        longMail,
			"first_name":   "\u05d0\u05d3\u05d4 (2)",
			"display_name": longApp,
		})).Want(t, 201)

	client := p.NewClient(t, "spa", "--name", longApp)
	p.Command(t, "", "recording", "import", "--project", p.ID, "--call-sid", "a-call",
		"../../cmd/selvage/internal/demo/welcome.wav")
	p.Command(t, "", "operator", "create", "--email", "bob@example.com", "--role", "viewer@"+p.ID)
	p.Command(t, "", "operator", "setup-link", "--email", longMail, "--role", "viewer@"+p.ID)
	room := p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "all-hands"})).Want(t, 200, 201).Object(t)["id"].(string)
	p.Post(t, "/api/fabric/resources/swml_scripts", p.Basic(),
		harness.JSON(map[string]any{"name": "greeting",
			"contents": map[string]any{"version": "1.0.0",
				"sections": map[string]any{"main": []any{"answer"}}}})).Want(t, 200, 201)
	p.CLI(t, "", "project", "update", p.ID, "--color", "#ffe000", "--logo", logoFile(t))
	web := p.NewClient(t, "web", "--name", "Shop")
	p.CLI(t, "", "client", "rotate-secret", web.ID)

	hook := p.CLI(t, "", "webhook", "create", "--project", p.ID, "--url",
		"https://hooks.example.com/events")["id"].(string)
	delivery := p.CLI(t, "", "webhook", "test", hook)["id"].(string)

	pages := []struct{ name, path string }{
		{"webhooks", home + "/webhooks"}, {"webhook", home + "/webhooks/" + hook},
		{"webhook-new", home + "/webhooks/new"},
		{"delivery", home + "/webhooks/" + hook + "/deliveries/" + delivery},
		{"resource-new", home + "/resources/new"}, {"resource-kind", home + "/kinds/conference_rooms"},
		{"resource-kind-script", home + "/kinds/swml_scripts"},
		{"resource", home + "/resources/" + room}, {"resource-edit", home + "/resources/" + room + "/edit"},
		{"tokens", home + "/tokens"}, {"token-subscriber", home + "/tokens/make/subscriber"},
		{"token-guest", home + "/tokens/make/guest"},
		{"branding", home + "/branding"}, {"client-branding", home + "/clients/" + client.ID + "/branding"},
		{"client-two-secrets", home + "/clients/" + web.ID},
		{"client-edit", home + "/clients/" + web.ID + "/edit"},
		{"subscriber-edit", home + "/subscribers/" + sub.ID + "/edit"},
		{"recording-upload", home + "/recordings/upload"},
		{"mails", "/dashboard/mails"}, {"backups", "/dashboard/backups"},
		{"limits", "/dashboard/limits"}, {"kinds", "/dashboard/kinds"},
		{"settings", "/dashboard/settings"}, {"doctor", "/dashboard/settings/doctor"},
		{"home", home}, {"projects", "/dashboard/projects"}, {"operators", "/dashboard/operators"},
		{"operator-invite", "/dashboard/operators/invite"},
		{"account", "/dashboard/account"}, {"account-app", "/dashboard/account/app"},
		{"account-passkey", "/dashboard/account/passkey"}, {"missing", "/dashboard/operators/nobody"},
		{"confirm", "/dashboard/confirm"},
		{"keys", home + "/keys"}, {"key-new", home + "/keys/new"}, {"clients", home + "/clients"},
		{"client-new", home + "/clients/new"}, {"client", home + "/clients/" + client.ID},
		{"subscribers", home + "/subscribers"}, {"subscriber", home + "/subscribers/" + sub.ID},
		{"subscriber-new", home + "/subscribers/new"},
		{"resources", home + "/resources"}, {"addresses", home + "/addresses"},
		{"recordings", home + "/recordings"}, {"recordings-none", home + "/recordings?call=other"},
		{"rules", home + "/rules"}, {"rules-edit", home + "/rules/edit"}, {"audit", home + "/audit"},
		{"audit-all", "/dashboard/audit"},
	}
	for _, at := range pages {
		s.open("dashboard-"+at.name, p.PublicURL+at.path)
	}

	s.do(goTo(p.PublicURL+home+"/audit"), chromedp.Click(chromedp.CSS(".events summary")))
	s.until("the details", "document.querySelector('.events .detail').checkVisibility()")
	s.stop("dashboard-audit-details")

	s.prefer("de")
	for _, at := range pages {
		s.translated("dashboard-"+at.name, p.PublicURL+at.path, "de")
	}

	s.prefer("en")
	s.open("dashboard-styles", p.PublicURL+"/dashboard/_styles") // this page exists only in English
	s.open("dashboard-styles-pages", p.PublicURL+"/dashboard/_styles?of=pages")

	s.do(goTo(p.PublicURL + home + "/keys/new"))
	s.fill("key-submit", "name", "billing backend")
	s.until("the secret", "document.querySelector('#secret code')")
	s.stop("dashboard-key-made")
	for name, from := range map[string]string{
		"recording": home + "/recordings",
		"operator":  "/dashboard/operators",
		"key":       home + "/keys",
	} {
		s.do(goTo(p.PublicURL+from), chromedp.Click(chromedp.CSS(".table td a")))
		s.until(name, "location.pathname !== "+quoted(from))
		s.stop("dashboard-" + name)
	}

	s.do(goTo(p.PublicURL+home), chromedp.Click(chromedp.CSS(".rail #sign-out")))
	s.arrive("/dashboard/login")
	s.stop("dashboard-login")
	s.fill("login-submit", "username", "ann@example.com", "password", "not "+secret)
	s.until("the error", "document.querySelector('#faults')")
	s.stop("dashboard-login-wrong")
}
