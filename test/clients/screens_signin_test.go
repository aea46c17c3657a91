package clients

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/test/harness"
)

// forget clears the browser's cookies.
func (s *screens) forget() {
	s.Helper()
	if _, err := chromedp.Call(s.ctx, network.ClearBrowserCookies, chromedp.Void{}); err != nil {
		s.Fatal(err)
	}
}

// mail opens the newest email in the development mailbox, and returns its link. Emails are sent in
// the background, so mail waits until the newest email has a link that mail has not returned yet.
func (s *screens) mail(at *harness.Server) (link string) {
	s.Helper()
	harness.Eventually(s, patience, "an email with a link", func() error {
		s.do(goTo(at.HTTP + "/dev/mail"))
		if !eval[bool](s.tab, "Boolean(document.getElementById('mail-0'))") {
			return errors.New("the mailbox is empty")
		}
		s.leave("document.getElementById('mail-0').click()")
		s.until("the mail", "document.getElementById('mail')")
		link = eval[string](s.tab, "document.getElementById('mail-link')?.getAttribute('href') ?? ''")
		if link == "" || link == s.lastLink {
			return errors.New("the newest email has no new link")
		}
		return nil
	})
	s.lastLink = link
	return link
}

// These names are likely to break the layout.
const (
	longApp  = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk Dialer"
	rtlName  = "\u05d0\u05d3\u05d4 \u05dc\u05d1\u05d9 (II)"
	longMail = "a.person.with.a.very.long.address.indeed.and.then.some@mail.of.a.very.long.host.name.example.com"
)

// TestScreensOfSignIn checks every sign-in and account page as screens describes.
func TestScreensOfSignIn(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	n := harness.StartNodes(t, nil, harness.Config{Env: []string{"SELVAGE_LIMITS__LOGIN_PER_ACCOUNT=4"}})
	p := n.NewProject(t)
	sub, other := p.NewSubscriber(t), p.NewSubscriber(t)
	p.Post(t, "/api/fabric/resources/subscribers", p.Basic(),
		harness.JSON(map[string]any{
			"email":      longMail,
			"password":   sub.Password,
			"first_name": "\u05d0\u05d3\u05d4 (2)",
		})).Want(t, 201)

	first := p.NewClient(t, "spa", "--first-party", "--name", "Acme Dialer")
	third := p.NewClient(t, "spa", "--name", longApp, "--scope", "openid", "--scope", "profile", "--scope",
		"email", "--scope", "phone", "--scope", "offline_access", "--scope", "Voice")
	device := p.NewClient(t, "native", "--grant", "device_code", "--grant", "refresh_token", "--access-token",
		"jwt", "--name", "Acme TV")

	s := newScreens(t)
	defer s.index()

	s.open("door", n.PublicURL+"/")
	s.open("not-found", n.PublicURL+"/nowhere")
	s.open("error-unknown-app", p.Issuer()+"login/oauth/authorize?client_id=nobody")
	s.open("login-over", p.Issuer()+"login?id=over")

	flow := first.NewFlow("openid").URL()
	s.open("login", flow)
	s.typeInto("username", sub.Email)
	s.typeInto("password", "wrong")
	s.next("login-wrong", "login-submit", "login-error")

	s.click("login-forgot")
	s.until("the page", "document.getElementById('forgot-submit')")
	s.stop("forgot")
	s.typeInto("username", sub.Email)
	s.next("forgot-sent", "forgot-submit", "mail-sent")
	link := s.mail(p.Server)
	s.stop("mail-shown")
	s.open("mailbox", p.HTTP+"/dev/mail")
	s.open("reset", link)
	s.typeInto("new-password", "password")
	s.next("reset-weak", "password-submit", "password-error")
	sub.Password = "a loom of their own"
	s.typeInto("new-password", sub.Password)
	s.next("reset-done", "password-submit", "password-set")
	s.open("link-over", link)

	s.do(goTo(first.NewFlow("openid").With("login_hint", "nobody@example.com").URL()))
	for range 6 {
		s.typeInto("password", "wrong")
		s.do(chromedp.Evaluate[chromedp.Void]("void document.getElementById('login-error')?.remove()"))
		s.click("login-submit")
		s.until("an answer", "document.getElementById('login-error')")
		if strings.Contains(s.text("#login-error"), "Too many") {
			break
		}
	}
	s.stop("login-throttled")
	if got := s.text("#login-error"); !strings.Contains(got, "Too many") {
		t.Errorf("after many attempts the page shows %q, want Too many", got)
	}

	s.forget()
	s.do(goTo(third.NewFlow("openid profile email phone offline_access Voice").URL()))
	s.stop("login-long-name")
	s.typeInto("username", longMail)
	s.typeInto("password", strings.TrimSpace(sub.Password))
	s.next("login-long-mail", "login-submit", "login-error")
	s.typeInto("username", sub.Email)
	s.typeInto("password", sub.Password)
	s.next("consent", "login-submit", "consent-allow")

	s.do(goTo(third.NewFlow("openid").With("prompt", "select_account").URL()))
	s.next("login-another", "account-other", "login-submit")
	s.password(other)
	s.until("consent", "document.getElementById('consent-allow')")
	s.open("accounts", third.NewFlow("openid").With("prompt", "select_account").URL())
	s.next("logout-app", "account-0", "consent-allow")
	s.open("logout-of-app", p.Issuer()+"oauth/logout?client_id="+third.ID)
	s.open("logout-wrong", p.Issuer()+"oauth/logout?client_id=nobody")
	s.open("logout", p.Issuer()+"logout")
	s.next("logged-out", "logout-confirm", "logged-out")

	s.open("device", p.Issuer()+"device")
	s.typeInto("user-code", "WDJB-MJHT")
	s.next("device-wrong", "device-submit", "device-error")
	for _, answer := range []string{"deny", "allow"} {
		codes := p.Post(t, "/oauth/device_authorization",
			harness.Form(url.Values{"client_id": {device.ID}, "scope": {"openid"}})).Want(t, 200).Object(t)
		s.do(goTo(codes["verification_uri_complete"].(string)))
		s.click("device-submit")
		s.until("login or consent",
			"document.getElementById('login-submit') || document.getElementById('consent-allow')")
		if eval[bool](s.tab, "Boolean(document.getElementById('login-submit'))") {
			s.password(sub)
		}
		s.until("consent", "document.getElementById('device-code')")
		s.stop("device-consent")
		id := map[string]string{"deny": "device-denied", "allow": "device-done"}[answer]
		s.next(id, "consent-"+answer, id)
	}

	s.forget()
	account := p.Issuer() + "account?project=" + p.ID
	s.do(goTo(account))
	s.password(sub)
	s.until("the account", "document.getElementById('account-page')")
	key := s.addAuthenticator()
	s.do(chromedp.Reload())
	s.stop("account")
	s.typeInto("current", "wrong")
	s.typeInto("new-password", "a loom of her own")
	s.next("account-password-wrong", "password-submit", "password-error")
	s.next("recovery-codes", "passkey-submit", "recovery-codes")
	s.next("account-passkey-added", "codes-done", "account-notice")
	s.next("account-app", "app-begin", "totp-secret")
	secret := strings.ReplaceAll(eval[string](s.tab, "document.getElementById('totp-secret').textContent"), " ", "")
	s.typeInto("code", "000000")
	s.next("account-app-wrong", "app-submit", "app-error")
	s.typeInto("code", factortest.Code(secret, time.Now()))
	s.next("account-app-added", "app-submit", "account-notice")
	s.remove(key)

	s.forget()
	s.do(goTo(account))
	s.password(sub)
	s.until("the code", "document.getElementById('factor-submit')")
	s.stop("factor-app")
	s.typeInto("code", "000000")
	s.next("factor-wrong", "factor-submit", "factor-error")
	s.next("factor-passkey", "with-passkey", "passkey-submit")
	s.next("factor-recovery", "with-recovery", "factor-submit")

	s.forget()
	s.do(goTo(first.NewFlow("openid").With("acr_values", "2").URL()))
	s.password(other)
	s.until("the set-up", "document.getElementById('enrol-submit')")
	s.stop("enrol")
}
