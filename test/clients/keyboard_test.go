package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/selvage/selvage/test/harness"
)

// stops is a script that returns the controls of the page at which the Tab key should stop, in
// document order. Of a group of radio buttons, it returns the checked one or, if none is checked,
// the first.
const stops = `(() => {
	const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
		.filter((e) => e.checkVisibility() && !e.disabled && e.getClientRects().length);
	const checked = (e) => document.querySelector('input[name="' + e.name + '"]:checked');
	const first = (e) => all.find((o) => o.name === e.name) === e;
	return all.filter((e) => e.type !== "radio" || e.checked || !checked(e) && first(e));
})()`

// outlined reports whether the element with the focus has a visible outline.
func (b tab) outlined() bool {
	b.Helper()
	return eval[bool](b, "((s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2)"+
		"(getComputedStyle(document.activeElement))")
}

// press sends keys to the element with the focus.
func (b tab) press(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// tabTo presses Tab until the focus is on an element that matches the selector. Each element on the
// way must show that it has the focus.
func (b tab) tabTo(selector string) {
	b.Helper()
	for range 100 {
		b.press("\t")
		if eval[bool](b, "document.activeElement !== document.body") && !b.outlined() {
			b.Errorf("nothing shows that %s has the focus",
				eval[string](b, "document.activeElement.outerHTML.slice(0, 90)"))
		}
		if eval[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.Fatalf("Tab does not lead to %s", selector)
}

// byKeys goes through the page with the Tab key. It checks that every control gets the focus, in
// document order, and then has a visible outline.
func (b tab) byKeys(page string) {
	b.Helper()
	// Automatic focus is set once the page is drawn, so wait for two frames.
	eval[bool](b, "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))")
	b.do(chromedp.Evaluate[chromedp.Void](
		"document.activeElement.blur(), window.stops = " + stops + ", void getSelection().removeAllRanges()"))
	want := eval[[]string](b, "stops.map((e) => e.outerHTML.slice(0, 90))")
	if len(want) == 0 {
		b.Fatalf("the page %s has no controls", page)
	}

	var got []int
	for range 4 * len(want) {
		b.do(chromedp.KeyEvent("\t"))

		at := eval[int](b, "stops.indexOf(document.activeElement)")
		if len(got) > 0 && at == got[len(got)-1] {
			continue // the focus is in the same control, for example on the month of a date
		}
		if slices.Contains(got, at) && at >= 0 {
			break // the focus has returned to the start
		}
		if at < 0 {
			continue // a control of the browser itself
		}

		got = append(got, at)
		if !b.outlined() {
			b.Errorf("%s: nothing shows that %s has the focus", page, want[at])
		}
	}

	first := 0 // Tab starts wherever the focus was last
	if len(got) > 0 {
		first = slices.Index(got, slices.Min(got))
	}

	round := append(slices.Clone(got[first:]), got[:first]...)
	for i, what := range want {
		if !slices.Contains(got, i) {
			b.Errorf("%s: Tab skips %s", page, what)
		}
	}
	if !slices.IsSorted(round) {
		b.Errorf("%s: Tab visits the controls in the order %s", page, fmt.Sprint(round))
	}
}

// TestKeyboard shows that the pages, including sign-in, can be used with only the keyboard.
func TestKeyboard(t *testing.T) {
	harness.OneBackend(t)
	t.Parallel()
	server := harness.Start(t)
	p := server.NewProject(t)
	sub := p.NewSubscriber(t)
	c := p.NewClient(t, "spa", "--name", "Acme Dialer")

	b := ownTab(t)
	b.do(goTo(c.NewFlow("openid email").URL()))
	b.until("the login", "document.activeElement.id === 'username'")
	b.do(chromedp.KeyEvent(sub.Email+"\t"), chromedp.KeyEvent(sub.Password+"\r"))
	b.until("the consent", "document.getElementById('consent-allow')")
	b.byKeys("consent")
	b.do(goTo(c.NewFlow("openid").With("prompt", "login").URL()))
	b.byKeys("login")
	b.do(goTo(p.Issuer() + "account?project=" + p.ID))
	b.byKeys("account")

	b.do(goTo(server.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)
	for _, page := range []string{"/subscribers", "/clients/new", "/keys/new", "/branding",
		"/recordings/upload", "/kinds/conference_rooms", "/kinds/swml_scripts", "/tokens", "/rules"} {
		b.do(goTo(p.PublicURL + home + page))
		b.byKeys(page)
	}
}

// TestKeyboardTask creates an API key with only the keyboard, from the first Tab on the home page
// to the page with the secret, and then signs out. On the way, it closes the palette and a menu.
func TestKeyboardTask(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	b := ownTab(t)
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.until("the field with the focus", "document.activeElement.id === 'username'")
	b.press("ann@example.com")
	b.tabTo("#password")
	b.press("a loom of one's own\r")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)

	// The first stop skips the navigation.
	b.tabTo("a.skip")
	b.press("\r")
	b.until("the content", "location.hash === '#content'")
	b.press("\t")
	if !eval[bool](b, "document.activeElement.closest('main') !== null") {
		t.Error("after the link that skips the navigation, Tab does not lead into the content")
	}

	// Escape closes the palette and the menu of projects.
	b.press("/")
	b.until("the palette", "document.querySelector('dialog.palette')?.open")
	b.press(kb.Escape)
	b.until("the closed palette", "!document.querySelector('dialog.palette').open")
	b.do(goTo(s.PublicURL + home))
	b.tabTo("nav.rail details.switch summary")
	b.press("\r")
	b.until("the projects", "document.querySelector('nav.rail details.switch').open")
	b.press("\t" + kb.Escape)
	b.until("the closed menu", "!document.querySelector('nav.rail details.switch').open")
	if !eval[bool](b, "document.activeElement.matches('details.switch summary')") {
		t.Error("after Escape, the focus is not on the menu's button")
	}

	// Create a key.
	b.tabTo("nav.rail a[href$='/keys']")
	b.press("\r")
	b.arrive(home + "/keys")
	b.tabTo("#new-key")
	b.press("\r")
	b.arrive(home + "/keys/new")
	b.until("the field with the focus", "document.activeElement.id === 'name'")
	b.press("billing")
	b.tabTo("input[value=Video]")
	b.press(" ")
	b.tabTo("#key-submit")
	b.press("\r")
	b.until("the secret", "document.getElementById('secret')")
	if facts := b.text("dl.facts"); !strings.Contains(facts, "Voice, Video") {
		t.Errorf("the key has the facts %q, want Voice, Video", facts)
	}

	b.tabTo("nav.rail #sign-out")
	b.press("\r")
	b.arrive("/dashboard/login")
}

// TestWithoutScripts uses a browser that runs no scripts. It adds a subscriber, creates a key, and
// changes the subscriber's profile.
func TestWithoutScripts(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	b := ownTab(t)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	const mail, secret = "ada@example.com", "a loom of one's own"

	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", secret)
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)
	b.do(goTo(s.PublicURL + home + "/subscribers/new"))
	b.fill("subscriber-submit", "f-email", mail, "f-first_name", "Ada", "f-password", secret)
	b.until("the subscriber", "document.querySelector('[role=status]')")
	if facts := b.text("main"); !strings.Contains(facts, mail) {
		t.Errorf("the new subscriber's page does not show the email: %s", facts)
	}
	b.do(goTo(s.PublicURL + home + "/keys/new"))
	b.fill("key-submit", "name", "billing")
	if key := b.text("#secret code"); key == "" {
		t.Error("no key is shown")
	}

	account := p.AuthURL + "/account?project=" + p.ID
	b.do(goTo(account))
	b.fill("login-submit", "username", mail, "password", secret)
	b.until("the account", "document.getElementById('account-page')")
	b.fill("profile-submit", "display-name", "Countess")
	b.until("the notice", "document.getElementById('account-notice')")
	if name := eval[string](b, "document.getElementById('display-name').value"); name != "Countess" {
		t.Errorf("the saved name is %q, want Countess", name)
	}
	b.do(goTo(p.AuthURL + "/logout"))
	b.click("logout-confirm")
	b.until("the end", "document.getElementById('logged-out')")
	b.do(goTo(account))
	b.until("the login", "document.getElementById('login-submit')")
}
