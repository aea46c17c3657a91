package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestCallsSeen shows that running and ended calls are visible to operators in the dashboard, to
// backends through clients of the LaML API, and to webhooks. An operator ends one call, and a
// backend ends another.
func TestCallsSeen(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	alice, bob := phones(t, s, "3.30.0")
	s.CLI(t, "", "project", "update", alice.project.ID, "--record-calls", "on")
	hook := harness.NewReceiver(t)
	alice.project.NewWebhook(t, hook.URL, "*")

	t.Run("dashboard", func(t *testing.T) {
		alice.use(t)
		bob.use(t)
		callInDashboard(alice, bob)
	})
	for _, library := range []string{"compatibility-api", "twilio"} {
		t.Run(library, func(t *testing.T) {
			alice.use(t)
			bob.use(t)
			alice.load()
			bob.load()
			id := begin(alice, bob)
			runNode(t, "calls.mjs", map[string]string{
				"library": library,
				"project": alice.project.ID,
				"key":     alice.project.Key,
				"base":    s.HTTP,
				"space":   "unused.example",
				"call":    id,
				"to":      bob.address(),
			}, noVisit)
			alice.do("until(() => states.includes('destroy'))", nil)
			wantCallEvents(t, hook, id)
		})
	}
}

// begin connects alice with bob, waits until they hear each other, and returns the id of the call.
func begin(alice, bob *phone) (id string) {
	alice.Helper()
	connect(alice, bob, false)
	hear(alice, bob)
	alice.eval(alice.T, "call.callId", &id)
	return id
}

// callInDashboard shows that an operator sees a call begin in the list of calls, and can end it.
// The page of the call then shows why the call ended, and plays its recording.
func callInDashboard(alice, bob *phone) {
	p, b := alice.project, alice.window.beside()
	b.do(goTo(p.CLI(alice.T, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)
	b.do(goTo(p.PublicURL + home + "/calls"))
	b.until("no calls", "document.body.innerText.includes('No live calls')")

	id := begin(alice, bob)
	page := p.PublicURL + home + "/calls/" + id
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
	b.do(goTo(page))
	b.until("the reason", "document.body.innerText.includes('Ended by a backend or an operator')")
	b.until("the quality", `/\(MOS \d\.\d\d of 4\.5\)/.test(document.body.innerText)`)

	harness.Eventually(alice.T, patience, "the recording of the call", func() error {
		b.do(goTo(page))
		if !eval[bool](b, "Boolean(document.querySelector('.recordings audio'))") {
			return errors.New("the page has no player")
		}
		return nil
	})
	b.do(chromedp.Click(chromedp.CSS(".recordings td a")))
	b.until("the recording of both", "document.querySelectorAll('.leg svg').length === 2")
	b.leave("[...document.querySelectorAll('a')].find(a => a.textContent === 'Show the call').click()")
	b.arrive(home + "/calls/" + id)

	b.do(goTo(p.PublicURL + home + "/subscribers/" + bob.person.ID))
	b.leave("document.querySelector(\"a[href*='/calls?subscriber=']\").click()")
	b.until("the subscriber's call", "document.querySelector(\".table a[href$='/calls/"+id+"']\")")
}

// wantCallEvents waits until a webhook has received each event of a recorded call. Events may
// arrive in any order, and more than once.
func wantCallEvents(t *testing.T, hook *harness.Receiver, id string) {
	t.Helper()
	want := map[string]string{
		"call.created":             "created",
		"call.ringing":             "ringing",
		"call.answered":            "answered",
		"call.ended":               "ended MANAGER_REQUEST",
		"call.recording.completed": "ended MANAGER_REQUEST",
	}

	harness.Eventually(t, time.Minute, "the events of the call", func() error {
		got := make(map[string]string)
		for _, delivery := range hook.Told() {
			if delivery.Data.ID != id {
				continue
			}

			var e struct{ Data struct{ State, Cause string } }
			if err := json.Unmarshal(delivery.Body, &e); err != nil {
				return err
			}
			got[delivery.Event] = e.Data.State
			if e.Data.Cause != "" {
				got[delivery.Event] += " " + e.Data.Cause
			}
		}

		if !maps.Equal(got, want) {
			return fmt.Errorf("the webhook received %v, want %v", got, want)
		}
		return nil
	})
}
