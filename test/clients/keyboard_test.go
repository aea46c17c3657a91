package clients

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// stops is a script that returns every control of the page in document order. For a group of radio
// buttons, it returns only the checked one, or the first if none is checked.
const stops = `(() => {
	const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
		.filter((e) => e.checkVisibility() && !e.disabled && e.getClientRects().length);
	const checked = (e) => document.querySelector('input[name="' + e.name + '"]:checked');
	const first = (e) => all.find((o) => o.name === e.name) === e;
	return all.filter((e) => e.type !== "radio" || e.checked || !checked(e) && first(e));
})()`

// byKeys goes through the page with the Tab key. It checks that every control gets the focus, in
// document order, and shows a visible outline.
func (b tab) byKeys(page string) {
	b.Helper()
	// Automatic focus is set once the page is drawn, so wait for two frames.
	eval[bool](b, "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))")
	b.do(chromedp.Evaluate[chromedp.Void](
		"document.activeElement.blur(), window.stops = " + stops + ", void getSelection().removeAllRanges()"))
	want := eval[[]string](b, "stops.map((e) => e.outerHTML.slice(0, 90))")
	if len(want) == 0 {
		b.Fatalf("%s: there are no controls", page)
	}

	var got []int
	for range 4 * len(want) {
		b.do(chromedp.KeyEvent("\t"))

		at := eval[int](b, "stops.indexOf(document.activeElement)")
		if len(got) > 0 && at == got[len(got)-1] {
			continue // the same control, for example the month of a date
		}
		if slices.Contains(got, at) && at >= 0 {
			break // the focus has returned to the start
		}
		if at < 0 {
			continue // a control of the browser itself
		}

		got = append(got, at)
		outlined := eval[bool](b, "((s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2)"+
			"(getComputedStyle(document.activeElement))")
		if !outlined {
			b.Errorf("%s: nothing shows that %s has the focus", page, want[at])
		}
	}

	first := 0 // Tab starts at the control that last had the focus
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
