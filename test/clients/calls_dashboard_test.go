package clients

import (
	"errors"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestCallsInDashboard shows a call as an operator sees it. The list reports that a call began, the
// operator hangs up, the page of the call says why it ended, and its recording is there.
func TestCallsInDashboard(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	alice, bob := phones(t, s, "3.30.0")
	p := alice.project
	s.CLI(t, "", "project", "update", p.ID, "--record-calls", "on")
	b := alice.window.beside()
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)
	b.do(goTo(s.PublicURL + home + "/calls"))
	b.until("no calls", "document.body.innerText.includes('No live calls')")

	connect(alice, bob, false)
	hear(alice, bob)
	var id string
	alice.eval(t, "call.callId", &id)
	b.until("the notice of a call", "document.querySelector('[data-live]:not([hidden])')")
	b.leave("document.querySelector('[data-live] a').click()")
	b.until("the live call", "document.querySelector('.table tr:has(form)')?.innerText.includes('In call')")
	b.do(chromedp.Click(chromedp.CSS(".table td a[href*='/calls/']")))
	b.arrive(home + "/calls/" + id)

	b.click("hang-up")
	for _, f := range []*phone{alice, bob} {
		f.do("until(() => states.includes('destroy'))", nil)
	}
	b.until("the end of the call", "document.querySelector('[data-live]:not([hidden])') || "+
		"!document.getElementById('hang-up')")
	b.do(goTo(s.PublicURL + home + "/calls/" + id))
	b.until("the reason", "document.body.innerText.includes('Ended by a backend or an operator')")
	b.until("the quality", "document.body.innerText.includes('Good (MOS')")

	harness.Eventually(t, patience, "the recording of the call", func() error {
		b.do(goTo(s.PublicURL + home + "/calls/" + id))
		if !eval[bool](b, "Boolean(document.querySelector('.recordings audio'))") {
			return errors.New("the page has no player")
		}
		return nil
	})
	b.do(chromedp.Click(chromedp.CSS(".recordings td a")))
	b.until("the recording of both", "document.querySelectorAll('.leg svg').length === 2")
	b.leave("[...document.querySelectorAll('a')].find(a => a.textContent === 'Show the call').click()")
	b.arrive(home + "/calls/" + id)

	b.do(goTo(s.PublicURL + home + "/subscribers/" + bob.person.ID))
	b.leave("document.querySelector(\"a[href*='/calls?subscriber=']\").click()")
	b.until("the subscriber's call", "document.querySelector(\".table a[href$='/calls/"+id+"']\")")
}
