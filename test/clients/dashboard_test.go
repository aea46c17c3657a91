package clients

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/selvage/selvage/test/harness"
)

// picture saves screenshots of the page on a light, a dark and a small screen, and checks that the
// page is not wider than the screen. It does nothing unless SELVAGE_TEST_PICTURES is set.
func (b tab) picture(name string) {
	b.Helper()
	dir := os.Getenv("SELVAGE_TEST_PICTURES")
	if dir == "" {
		return
	}

	for _, look := range []struct {
		name        string
		width, high int64
		dark        bool
	}{{"light", 1440, 900, false}, {"dark", 1440, 900, true}, {"phone", 390, 844, false}} {
		scheme := "light"
		if look.dark {
			scheme = "dark"
		}
		b.look(look.width, look.high, scheme)
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > int(look.width) {
			b.Errorf("%s is %d pixels wide on a screen with %d pixels", name, wide, look.width)
		}

		raw, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(90))
		if err == nil {
			err = os.WriteFile(fmt.Sprintf("%s/%s-%s.jpg", dir, name, look.name), raw, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.look(1440, 900, "light")
}

// look sets the size of the window and the preferred color scheme.
func (b tab) look(width, height int64, scheme string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// pictures saves screenshots of the pages that the rest of the test does not use.
func (b tab) pictures(p *harness.Project) {
	b.Helper()
	if os.Getenv("SELVAGE_TEST_PICTURES") == "" {
		return
	}

	home := p.PublicURL + "/dashboard/projects/" + p.ID
	sub := p.NewSubscriber(b)
	p.NewClient(b, "spa", "--redirect-uri", "http://localhost:3000/callback", "--name", "Acme Dialer")
	service := p.NewClient(b, "service", "--scope", "Voice", "--name", "Billing")
	p.Command(b, "", "recording", "import", "--project", p.ID, "--call-sid", "a-call",
		"../../cmd/selvage/internal/demo/welcome.wav")
	p.Command(b, "", "operator", "create", "--email", "bob@example.com", "--role", "viewer@"+p.ID)

	for name, path := range map[string]string{
		"projects": p.PublicURL + "/dashboard/projects", "operators": p.PublicURL + "/dashboard/operators",
		"invite":   p.PublicURL + "/dashboard/operators/invite",
		"operator": p.PublicURL + "/dashboard/operators", "account": p.PublicURL + "/dashboard/account",
		"missing": p.PublicURL + "/dashboard/operators/nobody",
		"keys":    home + "/keys", "clients": home + "/clients", "client-new": home + "/clients/new",
		"client": home + "/clients/" + service.ID, "home-done": home,
		"subscribers": home + "/subscribers", "subscriber": home + "/subscribers/" + sub.ID,
		"subscriber-new": home + "/subscribers/new",
		"resources":      home + "/resources", "addresses": home + "/addresses",
		"recordings": home + "/recordings", "recordings-none": home + "/recordings?call=other",
		"audit": home + "/audit", "audit-all": p.PublicURL + "/dashboard/audit",
	} {
		b.do(goTo(path))
		if name == "operator" {
			b.do(chromedp.Click(chromedp.CSS(".table tr:last-child a")))
			b.until("the operator", "document.querySelector('#role-submit')")
		}
		b.picture(name)
	}

	b.do(goTo(home+"/recordings"), chromedp.Click(chromedp.CSS(".table a")))
	b.until("the recording", "document.querySelector('dl.facts')")
	b.picture("recording")
}

// fill types into fields and clicks the submit button. The fields are given as pairs of ID and
// text.
func (b tab) fill(button string, fields ...string) {
	b.Helper()
	for i := 0; i < len(fields); i += 2 {
		b.until("#"+fields[i], fmt.Sprintf("document.getElementById(%q)", fields[i]))
		b.do(write("#"+fields[i], fields[i+1]))
	}
	b.do(chromedp.Click(chromedp.CSS("#" + button)))
}

// arrive waits until the tab shows the page at a path.
func (b tab) arrive(path string) {
	b.Helper()
	b.until(path, fmt.Sprintf("location.pathname === %q", path))
}

// text waits for an element and returns its trimmed text.
func (b tab) text(selector string) string {
	b.Helper()
	b.until(selector, fmt.Sprintf("document.querySelector(%q)", selector))
	return strings.TrimSpace(eval[string](b, fmt.Sprintf("document.querySelector(%q).textContent", selector)))
}

// TestDashboard shows that the first operator can set up an account with a second factor and create
// an API key. After signing out, the operator can sign in again with a recovery code.
func TestDashboard(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_OPERATORS__REQUIRE_FACTOR=yes"}})
	p := s.NewProject(t)

	link := s.CLI(t, "", "operator", "setup-link")["url"].(string)
	b := newTab(t)
	b.do(goTo(link))
	b.until("the setup page", "document.querySelector('#setup-submit')")
	b.picture("setup")
	const secret = "a loom of one's own"
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", secret)
	b.arrive("/dashboard/enrol")
	b.picture("enrol")

	shared := strings.ReplaceAll(b.text("#totp-secret"), " ", "")
	code := func() string {
		c, err := totp.GenerateCode(shared, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	b.fill("enrol-submit", "code", code())
	b.until("the recovery codes", "document.querySelector('#codes-kept')")
	recovery := strings.Fields(b.text("#recovery-codes"))[0]
	b.picture("codes")
	b.do(chromedp.Click(chromedp.CSS("#codes-kept")))

	home := "/dashboard/projects/" + p.ID
	b.arrive(home)
	if got := b.text("#project-id code"); got != p.ID {
		t.Errorf("the home page shows the project %q, want %s", got, p.ID)
	}
	b.picture("home")

	b.do(goTo(s.PublicURL + home + "/keys"))
	b.picture("keys-empty")
	b.do(chromedp.Click(chromedp.CSS("#new-key")))
	b.arrive(home + "/keys/new")
	b.picture("key-new")
	b.fill("key-submit", "name", "billing backend")
	b.until("the secret", "document.querySelector('#secret code')")
	key := b.text("#secret code")
	b.picture("key-made")
	s.Get(t, "/api/laml/2010-04-01/Accounts/"+p.ID+"/Recordings.json", harness.Basic(p.ID, key)).Want(t, 200)
	b.pictures(p)

	b.look(1280, 480, "light")
	b.do(goTo(s.PublicURL + home + "/audit"))
	b.until("the current link in a low window", `((link, all) => all.scrollHeight > all.clientHeight &&
		link.top >= all.getBoundingClientRect().top && link.bottom <= all.getBoundingClientRect().bottom)(
			document.querySelector(".rail .places [aria-current]").getBoundingClientRect(),
			document.querySelector(".rail .places"))`)
	b.look(1280, 700, "light")
	b.do(goTo(s.PublicURL + home + "/subscribers"))
	b.until("the first links in a slightly low window", `((all) => all.scrollHeight > all.clientHeight &&
		all.scrollTop === 0)(document.querySelector(".rail .places"))`)
	b.look(1280, 900, "light")

	b.do(chromedp.Click(chromedp.CSS(".rail #sign-out")))
	b.arrive("/dashboard/login")
	b.picture("login")
	b.fill("login-submit", "username", "ann@example.com", "password", "not "+secret)
	b.until("the error", "document.querySelector('#faults')")
	b.picture("login-wrong")
	b.fill("login-submit", "password", secret)
	b.arrive("/dashboard/factor")
	b.picture("factor")
	b.fill("factor-submit", "code", recovery)
	b.arrive(home)
}
