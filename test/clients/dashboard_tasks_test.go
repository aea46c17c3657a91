package clients

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// mostClicks is the largest number of clicks that all usual tasks of an operator may take together.
const mostClicks = 30

// TestDashboardTasks shows that operators can do their usual tasks by following the links and
// buttons of the pages, with few clicks and without an id from another page.
func TestDashboardTasks(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	sub := p.NewSubscriber(t)
	app := p.NewClient(t, "service", "--name", "Billing", "--scope", "Voice")
	tokens, _ := p.NewClient(t, "spa", "--first-party").SignIn(t, sub, "openid offline_access")
	today := time.Now().UTC().Format(time.DateOnly) // before the import, in case midnight passes
	p.Command(t, "", "recording", "import", "--project", p.ID, "--call-sid", "call-of-today",
		"../../cmd/selvage/internal/demo/welcome.wav")

	d := desk{newTab(t), s}
	d.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	d.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	d.arrive("/dashboard/projects/" + p.ID)
	d.countClicks()
	d.do(goTo(s.PublicURL + "/dashboard/projects/" + p.ID))

	d.findRecording(today)
	d.rotateSecret(t, app)
	d.changeBranding(t)
	d.inviteOperator(t)
	d.signOutSubscriber(t, sub.Email, tokens.AccessToken)
	d.createToken(t, sub.Email)
	d.createRoom()

	clicks := d.clicks()
	t.Logf("all tasks take %d clicks", clicks)
	if clicks < 10 || clicks > mostClicks {
		t.Errorf("all tasks take %d clicks, want 10 to %d", clicks, mostClicks)
	}
}

// A desk is a browser tab in which an operator is signed in. Each task begins on the page on which
// the previous task ended.
type desk struct {
	tab
	server *harness.Server
}

// follow clicks the visible link or button with this text, like an operator who knows no address or
// id.
func (b tab) follow(text string) {
	b.Helper()
	found := fmt.Sprintf(
		`[...document.querySelectorAll("main a, main button, main summary, nav.rail a"),
			...document.querySelectorAll("nav.rail summary")].find(
				(e) => e.offsetParent && e.textContent.trim() === %q)`, text)
	b.until("the link "+text, found)
	b.leave(found + ".click()")
}

// countClicks makes the tab count the clicks on links and buttons, on all pages that it opens from
// now on. clicks returns their number.
func (b tab) countClicks() {
	b.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: `addEventListener("click", (event) => {
			if (event.target.closest("a, button, summary"))
				sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
		}, true)`})
	if err != nil {
		b.Fatal(err)
	}
}

func (b tab) clicks() int {
	b.Helper()
	return eval[int](b, "Number(sessionStorage.clicks)")
}

// findRecording finds a recording by its call and its day.
func (d desk) findRecording(day string) {
	d.Helper()
	d.follow("Recordings")
	d.typeInto("q", "call-of-t")
	d.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.getElementById('f-after').value = %q; void 0", day)))
	d.follow("Find")
	d.until("one recording",
		"location.search.includes('call-of-t') && document.body.innerText.includes('call-of-today') && "+
			"document.querySelectorAll('.table tbody tr').length === 1")
	d.do(chromedp.Click(chromedp.CSS(".table td a")))
	d.until("the player", "document.querySelector('#sound')")
}

// rotateSecret rotates the secret of a client. Both secrets work until the old one is revoked.
func (d desk) rotateSecret(t *testing.T, app *harness.Client) {
	t.Helper()
	status := func(secret string) int {
		return d.server.Post(t, "/oauth/token", harness.Form(url.Values{"grant_type": {"client_credentials"}}),
			harness.Basic(app.ID, secret)).Status
	}
	d.follow("OAuth clients")
	d.follow("Billing")
	d.follow("Rotate secret")
	next := d.text("#secret code")
	if got := status(app.Secret); got != 200 {
		t.Errorf("after the rotation, a request with the old secret returned %d, want 200", got)
	}
	if got := status(next); got != 200 {
		t.Errorf("after the rotation, a request with the new secret returned %d, want 200", got)
	}

	d.follow("Revoke the old secret")
	d.until("the revocation", "document.querySelector('.notice')?.textContent.includes('revoked')")
	if again := d.text("#secret code"); again != next {
		t.Errorf("after the revocation, the page shows the secret %q, want %q", again, next)
	}
	harness.Eventually(t, patience, "the end of the old secret", func() error {
		if got := status(app.Secret); got != 401 {
			return fmt.Errorf("a request with it returned %d, want 401", got)
		}
		return nil
	})
	if got := status(next); got != 200 {
		t.Errorf("after the revocation, a request with the new secret returned %d, want 200", got)
	}
}

// changeBranding sets a color and a logo. The preview warns that the color is hard to read.
func (d desk) changeBranding(t *testing.T) {
	t.Helper()
	d.follow("Branding")
	d.typeInto("f-color", "#ffe000")
	d.until("the preview",
		"document.querySelector('#preview')?.textContent.includes('shown darker') && "+
			"document.querySelector('input[type=color]').value === '#ffe000'")
	d.until("the dark login page in the preview", "document.querySelector('#preview iframe.dark')?."+
		"contentDocument?.querySelector('#login-submit')?.textContent.includes('your account')")
	d.until("the login page's color", "getComputedStyle(document.querySelector('#preview iframe.dark')."+
		"contentDocument.querySelector('#login-submit')).backgroundColor === 'rgb(255, 224, 0)'")
	d.do(chromedp.SetUploadFiles(chromedp.CSS("#f-logo"), []string{logoFile(t)}))
	d.follow("Save changes")
	d.until("the logo",
		"document.querySelector('.notice') && document.querySelector('#preview iframe.light')?."+
			"contentDocument?.querySelector('#brand-logo')?.naturalWidth > 0")
}

// inviteOperator invites another operator, and withdraws the invitation.
func (d desk) inviteOperator(t *testing.T) {
	t.Helper()
	d.follow("Installation")
	d.follow("Operators")
	d.follow("Invite an operator")
	d.typeInto("email", "bob@example.com")
	d.click("invite-submit")
	d.until("the link", "document.getElementById('link')")
	setup := strings.TrimPrefix(d.text("#link code"), d.server.PublicURL)
	d.server.Get(t, setup).Want(t, 200)
	d.follow("Operators")
	d.until("the invitation",
		"document.querySelector('#invitations') && document.body.innerText.includes('bob@example.com')")
	d.follow("Withdraw")
	d.until("the withdrawal",
		"document.querySelector('.notice')?.textContent.includes('Invitation withdrawn') && "+
			"!document.body.innerText.includes('bob@example.com')")
	d.server.Get(t, setup).Want(t, 404)
}

// signOutSubscriber signs a subscriber out everywhere, which ends the access token.
func (d desk) signOutSubscriber(t *testing.T, email, accessToken string) {
	t.Helper()
	d.follow("People")
	d.follow("Subscribers")
	d.follow(email)
	d.follow("Sign out everywhere")
	d.until("the confirmation", "document.querySelector('.notice')")
	harness.Eventually(t, patience, "the access token to end", func() error {
		if got := d.server.Get(t, "/subscriber/info", harness.Bearer(accessToken)).Status; got != 401 {
			return fmt.Errorf("a request with the token returned %d, want 401", got)
		}
		return nil
	})
}

// createToken creates a token of a subscriber, and inspects it.
func (d desk) createToken(t *testing.T, email string) {
	t.Helper()
	d.follow("Tokens")
	d.follow("Subscriber token")
	d.until("the form", "document.getElementById('make')")
	d.typeInto("f-reference", email[:len(email)-4])
	d.until("an offer",
		fmt.Sprintf("[...document.getElementById('f-reference').list.options].some((o) => o.value === %q)", email))
	d.click("make") // no subscriber has the incomplete reference
	d.until("a question",
		"document.querySelector('#new-subscriber')?.textContent.includes('a new one will be created')")
	d.typeInto("f-reference", email)
	d.click("make")
	d.until("the token", "document.querySelector('#made code')")

	d.click("made-look")
	d.until("what it is", "document.querySelector('#found')")
	if found := d.text("#found"); !strings.Contains(found, "subscriber") || !strings.Contains(found, email) {
		t.Errorf("the page shows a subscriber token as %q, want its kind and the email", found)
	}
}

// createRoom creates a room with an address, and finds the address in the list.
func (d desk) createRoom() {
	d.Helper()
	d.follow("Resources")
	d.follow("New resource")
	d.follow("Conference room")
	d.until("the form", "document.getElementById('f-name')")
	d.typeInto("f-name", "Team Standup")
	d.until("the address before the room is created",
		"document.getElementById('f-name-tells').textContent.includes('address will be /public/team-standup,')")
	d.click("resource-submit")
	d.until("the room", "document.querySelector('.notice')?.textContent.includes('/public/team-standup')")
	d.follow("Addresses")
	d.until("the address", "document.querySelector('.table')?.textContent.includes('/public/team-standup')")
}
