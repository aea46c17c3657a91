package clients

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// logoFile writes a partly transparent logo and returns its path.
func logoFile(t *testing.T) string {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, 320, 80))
	for y := range 80 {
		for x := range 320 {
			if (x/20+y/20)%2 == 0 || x < 80 {
				p.Set(x, y, color.NRGBA{R: 0x20, G: 0x18, B: 0x30, A: 255})
			}
		}
	}

	var out bytes.Buffer
	name := filepath.Join(t.TempDir(), "logo.png")
	if err := png.Encode(&out, p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestScreensOfRegistration shows that the pages for registering and for changing the email address
// pass the checks of screens in a project's own colors. The login pages pass them in German.
func TestScreensOfRegistration(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	server := harness.Start(t)
	p := server.NewProject(t)
	p.CLI(t, "", "project", "update", p.ID, "--registration", "open", "--color", "#c2410c", "--logo",
		logoFile(t), "--tos-uri", "https://acme.example/terms", "--policy-uri", "https://acme.example/privacy")

	app := p.NewClient(t, "spa", "--name", "Acme Dialer", "--scope", "openid", "--scope", "profile",
		"--scope", "offline_access", "--scope", "Voice")

	s := newScreens(t)
	defer s.index()
	const email, chosen = "grace@example.com", "a loom of one's own"

	s.open("branded-login", app.NewFlow("openid profile offline_access").URL())
	s.next("register", "login-register", "register-submit")
	s.typeInto("username", email)
	s.typeInto("new-password", "password")
	s.next("register-weak", "register-submit", "register-error")
	s.typeInto("new-password", chosen)
	s.next("register-sent", "register-submit", "mail-sent")
	link := s.mail(p.Server)
	s.stop("branded-mail")
	s.open("welcome", link)
	s.next("branded-consent", "confirm-submit", "consent-allow")
	s.open("welcome-over", link)

	account := p.Issuer() + "account?project=" + p.ID
	s.do(goTo(account))
	s.until("the account", "document.getElementById('account-page')")
	s.stop("branded-account")
	s.typeInto("new-address", "no address")
	s.do(chromedp.Evaluate[chromedp.Void]("document.getElementById('new-address').type = 'text'; void 0"))
	s.next("account-address-wrong", "address-submit", "address-error")
	s.typeInto("new-address", longMail)
	s.next("account-address-sent", "address-submit", "account-notice")
	link = s.mail(p.Server)
	s.open("change-address", link)
	s.next("change-address-done", "confirm-submit", "notice-go")

	s.forget()
	german := func(scope string) string { return app.NewFlow(scope).With("ui_locales", "de").URL() }
	s.open("de-login", german("openid"))
	s.typeInto("username", longMail)
	s.typeInto("password", "falsch")
	s.next("de-login-wrong", "login-submit", "login-error")
	s.next("de-forgot", "login-forgot", "forgot-submit")
	s.next("de-forgot-sent", "forgot-submit", "mail-sent")
	s.open("de-mail", s.mail(p.Server))
	s.do(goTo(german("openid")))
	s.next("de-register", "login-register", "register-submit")
	s.do(goTo(german("openid Voice")))
	s.typeInto("username", longMail)
	s.typeInto("password", chosen)
	s.next("de-consent", "login-submit", "consent-allow")
	s.open("de-accounts", app.NewFlow("openid").With("ui_locales", "de").With("prompt", "select_account").URL())
	s.open("de-account", account+"&ui_locales=de")
	s.open("de-device", p.Issuer()+"device?ui_locales=de")
	s.open("de-logout", p.Issuer()+"logout?ui_locales=de")
	s.next("de-logged-out", "logout-confirm", "logged-out")
	s.open("de-error", p.Issuer()+"login?id=over&ui_locales=de")
}
