package clients

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/test/harness"
)

// addAuthenticator adds a virtual passkey authenticator to Chromium. The authenticator confirms
// every request as if a person had touched it.
func (b tab) addAuthenticator() webauthn.AuthenticatorID {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.Fatal(err)
	}

	made, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol:                    "ctap2",
			Transport:                   "internal",
			HasResidentKey:              true,
			HasUserVerification:         true,
			IsUserVerified:              true,
			AutomaticPresenceSimulation: true,
		}})
	if err != nil {
		b.Fatal(err)
	}
	return made.AuthenticatorID
}

// remove removes an authenticator.
func (b tab) remove(key webauthn.AuthenticatorID) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, webauthn.RemoveVirtualAuthenticator,
		webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: key})
	if err != nil {
		b.Fatal(err)
	}
}

// click waits until the element is visible and clicks it.
func (b tab) click(id string) {
	b.Helper()
	b.until(id, "document.getElementById('"+id+"')?.checkVisibility()")
	b.do(chromedp.Click(chromedp.CSS("#" + id)))
}

// typeInto waits until a field is visible and replaces its text.
func (b tab) typeInto(id, text string) {
	b.Helper()
	b.until(id, "document.getElementById('"+id+"')?.checkVisibility()")
	b.do(chromedp.Clear(chromedp.CSS("#"+id)), write("#"+id, text))
}

// password signs in with the subscriber's email address and password.
func (b tab) password(s harness.Subscriber) {
	b.Helper()
	b.typeInto("username", s.Email)
	b.typeInto("password", s.Password)
	b.click("login-submit")
}

// TestFactorsInChromium shows that a subscriber can add a passkey and sign in with only the
// passkey. The subscriber can also set up an authenticator app, and sign in with its codes or with
// a recovery code.
func TestFactorsInChromium(t *testing.T) {
	harness.NotStorage(t)
	n := harness.StartNodes(t, nil, harness.Config{})
	p := n.NewProject(t)
	sub := p.NewSubscriber(t)
	account, out := p.Issuer()+"account?project="+p.ID, p.Issuer()+"logout"
	b := completeTab(t) // only the complete build can copy to the clipboard
	signOut := func() {
		t.Helper()
		b.do(goTo(out))
		b.click("logout-confirm")
		b.until("the page after signing out", "document.getElementById('logged-out')")
	}

	waitText := func(what string) {
		t.Helper()
		b.until(what, "document.body.innerText.includes("+quoted(what)+")")
	}

	b.do(goTo(account))
	b.picture("login")
	b.password(sub)
	b.until("the account", "document.getElementById('account-page')")

	key := b.addAuthenticator()
	b.do(chromedp.Reload())
	b.click("passkey-submit")
	b.until("recovery codes", "document.getElementById('recovery-codes')")

	codes := strings.Fields(eval[string](b, "document.getElementById('recovery-codes').innerText"))
	b.picture("codes")
	if _, err := chromedp.Call(b.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-read"},
		Setting:    "granted",
	}); err != nil {
		t.Fatal(err)
	}
	b.click("codes-copy")
	b.until("the codes to be copied", "document.getElementById('codes-copy').innerText === 'Copied'")
	if copied := strings.Fields(eval[string](b, "navigator.clipboard.readText()")); !slices.Equal(copied, codes) {
		t.Errorf("the page copied %q, want %q", copied, codes)
	}

	b.click("codes-done")
	waitText("Your passkey was added.")

	// The browser offers the passkey in the email field, and the authenticator confirms
	// immediately.
	signOut()
	b.do(goTo(account))
	b.until("a login with the passkey alone", "document.getElementById('account-page')")
	b.picture("account")

	b.click("app-begin")
	b.until("the set-up of the app", "document.getElementById('totp-secret')")
	secret := strings.ReplaceAll(eval[string](b, "document.getElementById('totp-secret').textContent"), " ", "")
	b.picture("app")
	b.typeInto("code", factortest.Code(secret, time.Now()))
	b.click("app-submit")
	waitText("Your authenticator app is set up.")
	signOut()

	b.remove(key)
	b.do(goTo(account))
	b.password(sub)
	b.until("the code", "document.getElementById('code')")
	b.picture("factor")
	code := factortest.Code(secret, time.Now().Add(30*time.Second)) // the current code has already been used
	b.typeInto("code", code)
	b.click("factor-submit")
	b.until("a login with the app", "document.getElementById('account-page')")

	signOut()
	b.do(goTo(account))
	b.password(sub)
	b.typeInto("code", code)
	b.click("factor-submit")
	waitText("This code was already used.")
	b.click("with-passkey")
	b.picture("passkey")
	b.click("with-recovery")
	b.picture("recovery")
	b.typeInto("code", codes[0])
	b.click("factor-submit")
	b.until("a login with a recovery code", "document.getElementById('account-page')")
	waitText("9 codes are left.")
}

// TestPasskeyButtonInChromium shows that a person who needs a second factor can add a passkey
// during a login, and can later use it by pressing the button.
func TestPasskeyButtonInChromium(t *testing.T) {
	harness.NotStorage(t)
	n := harness.StartNodes(t, nil, harness.Config{})
	p := n.NewProject(t)
	sub := p.NewSubscriber(t)
	b := ownTab(t)
	origin, posts := servePostApp(t, p)
	c := p.NewClient(t, "spa", "--first-party", "--redirect-uri", origin+"/cb")
	flow := func() *harness.Flow {
		return c.NewFlow("openid").With("response_mode", "form_post").With("acr_values", "2")
	}

	wantSecondFactor := func(f *harness.Flow) {
		t.Helper()
		select {
		case got := <-posts:
			tokens := f.Redeem(t, got.form.Get("code")).Want(t, 200).Object(t)
			if claims := claimsOf(t, tokens["id_token"]); claims["acr"] != "2" {
				t.Errorf("the ID token has acr %v, amr %v, want acr 2", claims["acr"], claims["amr"])
			}
		case <-time.After(patience):
			t.Fatal("the app received no form")
		}
	}

	f := flow()
	b.do(goTo(f.URL()))
	b.password(sub)
	b.until("the set-up", "document.getElementById('enrol-submit')")
	b.picture("enrol")
	key := b.addAuthenticator()
	b.do(chromedp.Reload())
	b.click("passkey-submit")
	b.click("continue-submit")
	wantSecondFactor(f)

	// Now use the passkey as the second factor, with the button. Until the button is pressed, the
	// authenticator ignores requests, so that the browser's offer in the email field does not sign
	// in.
	simulate := func(on bool) {
		t.Helper()
		_, err := chromedp.Call(b.ctx, webauthn.SetAutomaticPresenceSimulation,
			webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: key, Enabled: on})
		if err != nil {
			t.Fatal(err)
		}
	}

	simulate(false)
	f = flow().With("prompt", "login")
	b.do(goTo(f.URL()))
	b.password(sub)
	b.until("the second step", "document.querySelector('#passkey-form[action=\"/login/factor\"]')")
	simulate(true)
	b.click("passkey-submit")
	wantSecondFactor(f)
}

func quoted(s string) string { return `"` + s + `"` }

// claimsOf decodes the claims of an ID token. Other tests check its signature.
func claimsOf(t *testing.T, token any) (claims map[string]any) {
	t.Helper()
	text, _ := token.(string)
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		t.Fatalf("%v is not an ID token", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}
