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

// follow clicks the visible link or button with this text, like an operator who does not know any
// address or ID.
func (b tab) follow(says string) {
	b.Helper()
	found := fmt.Sprintf(
		`[...document.querySelectorAll("main a, main button, main summary, nav.rail a"),
			...document.querySelectorAll("nav.rail summary")].find(
				(e) => e.offsetParent && e.textContent.trim() === %q)`, says)
	b.until("the link "+says, found)
	b.leave(found + ".click()")
}

// countClicks counts the clicks of the tab on links and buttons, on all pages that it opens next.
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

// mostClicks is the number of clicks in which an operator must be able to do all usual tasks.
const mostClicks = 30

// TestDashboardTasks shows that operators can do their usual tasks by following the links and
// buttons of the pages, with few clicks and without an id from another page.
func TestDashboardTasks(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	sub := p.NewSubscriber(t)
	app := p.NewClient(t, "service", "--name", "Billing", "--scope", "Voice")
	today := time.Now().UTC().Format(time.DateOnly) // determined before the import, in case midnight passes
	p.Command(t, "", "recording", "import", "--project", p.ID, "--call-sid", "call-of-today",
		"../../cmd/selvage/internal/demo/welcome.wav")
	tokens, _ := p.NewClient(t, "spa", "--first-party").SignIn(t, sub, "openid offline_access")
	b := newTab(t)
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	b.arrive("/dashboard/projects/" + p.ID)
	b.countClicks()
	b.do(goTo(s.PublicURL + "/dashboard/projects/" + p.ID))

	// A recording is found by its call and its day.
	b.follow("Recordings")
	b.typeInto("q", "call-of-t")
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.getElementById('f-after').value = %q; void 0", today)))
	b.follow("Find")
	b.until("one recording",
		"location.search.includes('call-of-t') && document.body.innerText.includes('call-of-today') && "+
			"document.querySelectorAll('.table tbody tr').length === 1")
	b.do(chromedp.Click(chromedp.CSS(".table td a")))
	b.until("the player", "document.querySelector('#sound')")

	// A client's secret is rotated: both secrets work until the old one is revoked.
	try := func(secret string) int {
		return s.Post(t, "/oauth/token", harness.Form(url.Values{"grant_type": {"client_credentials"}}),
			harness.Basic(app.ID, secret)).Status
	}
	b.follow("OAuth clients")
	b.follow("Billing")
	b.follow("Rotate secret")
	next := b.text("#secret code")
	if a, c := try(app.Secret), try(next); a != 200 || c != 200 {
		t.Errorf("after a rotation the old secret returns %d, the new one %d, want 200", a, c)
	}
	b.follow("Revoke the old secret")
	b.until("the revocation", "document.querySelector('.notice')?.textContent.includes('revoked')")
	if again := b.text("#secret code"); again != next {
		t.Errorf("after the revocation the page shows the secret %q, want %q", again, next)
	}
	harness.Eventually(t, patience, "the end of the old secret", func() error {
		if got := try(app.Secret); got != 401 {
			return fmt.Errorf("it returns %d, want 401", got)
		}
		return nil
	})
	if got := try(next); got != 200 {
		t.Errorf("the new secret returns %d, want 200", got)
	}

	// The color is changed. The preview warns in advance that it is hard to read.
	b.follow("Branding")
	b.typeInto("f-color", "#ffe000")
	b.until("the preview",
		"document.querySelector('#preview')?.textContent.includes('shown darker') && "+
			"document.querySelector('input[type=color]').value === '#ffe000'")
	b.until("the dark login page in the preview", "document.querySelector('#preview iframe.dark')?."+
		"contentDocument?.querySelector('#login-submit')?.textContent.includes('your account')")
	b.until("the login page's color", "getComputedStyle(document.querySelector('#preview iframe.dark')."+
		"contentDocument.querySelector('#login-submit')).backgroundColor === 'rgb(255, 224, 0)'")
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#f-logo"), []string{logoFile(t)}))
	b.follow("Save changes")
	b.until("the logo",
		"document.querySelector('.notice') && document.querySelector('#preview iframe.light')?."+
			"contentDocument?.querySelector('#brand-logo')?.naturalWidth > 0")

	// Another operator is invited and the invitation withdrawn.
	b.follow("Installation")
	b.follow("Operators")
	b.follow("Invite an operator")
	b.typeInto("email", "bob@example.com")
	b.click("invite-submit")
	b.until("the link", "document.getElementById('link')")
	setup := strings.TrimPrefix(b.text("#link code"), p.PublicURL)
	s.Get(t, setup).Want(t, 200)
	b.follow("Operators")
	b.until("the invitation",
		"document.querySelector('#invitations') && document.body.innerText.includes('bob@example.com')")
	b.follow("Withdraw")
	b.until("the withdrawal",
		"document.querySelector('.notice')?.textContent.includes('Invitation withdrawn') && "+
			"!document.body.innerText.includes('bob@example.com')")
	s.Get(t, setup).Want(t, 404)

	// A subscriber is signed out everywhere.
	b.follow("People")
	b.follow("Subscribers")
	b.follow(sub.Email)
	b.follow("Sign out everywhere")
	b.until("the confirmation", "document.querySelector('.notice')")
	harness.Eventually(t, patience, "the end of its tokens", func() error {
		if got := s.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Status; got != 401 {
			return fmt.Errorf("the token returns %d, want 401", got)
		}
		return nil
	})

	// A token is created manually and inspected.
	b.follow("Tokens")
	b.follow("Subscriber token")
	b.until("the form", "document.getElementById('make')")
	b.typeInto("f-reference", sub.Email[:len(sub.Email)-4])
	b.until("an offer",
		fmt.Sprintf("[...document.getElementById('f-reference').list.options].some((o) => o.value === %q)", sub.Email))
	b.click("make") // no subscriber has the incomplete reference
	b.until("a question",
		"document.querySelector('#new-subscriber')?.textContent.includes('a new one will be created')")
	b.typeInto("f-reference", sub.Email)
	b.click("make")
	b.until("the token", "document.querySelector('#made code')")
	b.click("made-look")
	b.until("what it is", "document.querySelector('#found')")
	if found := b.text("#found"); !strings.Contains(found, "subscriber") || !strings.Contains(found, sub.Email) {
		t.Errorf("a subscriber token is shown as %q, want its kind and the email", found)
	}

	// A room and its address are created, and the address is listed.
	b.follow("Resources")
	b.follow("New resource")
	b.follow("Conference room")
	b.until("the form", "document.getElementById('f-name')")
	b.typeInto("f-name", "Team Standup")
	b.until("the address before the room is created",
		"document.getElementById('f-name-tells').textContent.includes('address will be /public/team-standup,')")
	b.click("resource-submit")
	b.until("the room", "document.querySelector('.notice')?.textContent.includes('/public/team-standup')")
	b.follow("Addresses")
	b.until("the address", "document.querySelector('.table')?.textContent.includes('/public/team-standup')")

	clicks := eval[int](b, "Number(sessionStorage.clicks)")
	t.Logf("all tasks take %d clicks", clicks)
	if clicks < 10 || clicks > mostClicks {
		t.Errorf("all tasks take %d clicks, want at most %d", clicks, mostClicks)
	}
}
