package clients

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// setPresence sets whether the authenticator responds, as if a person touched it.
func (b tab) setPresence(key webauthn.AuthenticatorID, there bool) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, webauthn.SetAutomaticPresenceSimulation,
		webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: key, Enabled: there})
	if err != nil {
		b.Fatal(err)
	}
}

// TestPasskeyOfOperatorInChromium shows that an operator who needs a second factor can add a
// passkey, sign in with it (in the email field or after the password), and confirm a sensitive step
// with it.
func TestPasskeyOfOperatorInChromium(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_OPERATORS__REQUIRE_FACTOR=yes"}})
	p := s.NewProject(t)
	home := "/dashboard/projects/" + p.ID
	const password = "a loom of one's own"
	b := ownTab(t)
	key := b.addAuthenticator()

	// A new operator chooses a password, and must then add a factor.
	link := s.CLI(t, "", "operator", "setup-link")["url"].(string)
	b.do(goTo(link))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", password)
	b.arrive("/dashboard/enrol")
	b.typeInto("passkey-name", "Laptop")
	b.picture("operator-enrol")
	b.click("passkey-submit")
	b.until("recovery codes", "document.getElementById('codes-kept')")
	codes := strings.Fields(b.text("#recovery-codes"))
	b.click("codes-kept")
	b.arrive(home)

	// The sign-in page requests a passkey as soon as it is open. This request must not be open when
	// the authenticator starts to respond, so leave the page first.
	b.setPresence(key, false)
	b.signOut()
	b.do(goTo("about:blank"))

	// The browser offers the passkey in the email field, and the authenticator accepts immediately.
	b.setPresence(key, true)
	b.do(goTo(s.PublicURL + "/dashboard/login?next=/dashboard/account"))
	b.until("the passkey", "document.body.innerText.includes('Laptop')")
	b.picture("operator-account")

	// If the authenticator ignores the email field, the passkey is used after the password.
	b.setPresence(key, false)
	b.signOut()
	b.picture("operator-login")
	b.fill("login-submit", "username", "ann@example.com", "password", password)
	b.arrive("/dashboard/factor")
	b.picture("operator-factor")
	b.setPresence(key, true)
	b.click("passkey-submit")
	b.arrive(home)

	// The passkey also confirms a sensitive step.
	b.do(goTo(s.PublicURL + "/dashboard/confirm?next=/dashboard/account"))
	b.picture("operator-confirm")
	b.click("passkey-submit")
	b.arrive("/dashboard/account")

	// The same authenticator cannot be added twice.
	b.click("add-passkey")
	b.until("the form", "document.querySelector('#passkey-form:not([hidden])')")
	b.picture("operator-passkey")
	b.click("passkey-submit")
	b.until("an error", "!document.getElementById('passkey-error').hidden")

	// A recovery code replaces a lost passkey.
	b.do(goTo(s.PublicURL + "/dashboard/account"))
	b.remove(key)
	b.signOut()
	b.fill("login-submit", "username", "ann@example.com", "password", password)
	b.arrive("/dashboard/factor")
	b.fill("factor-submit", "code", codes[0])
	b.arrive(home)
}

// signOut signs the operator out, and waits for the sign-in page.
func (b tab) signOut() {
	b.Helper()
	b.do(chromedp.Click(chromedp.CSS(".rail #sign-out")))
	b.arrive("/dashboard/login")
}
