package clients

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestLiveConfirmed shows that a page still follows its list after the operator has confirmed their
// identity in another tab. This replaces the cookie with which the page's stream began.
func TestLiveConfirmed(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	b := newTab(t)
	const secret = "a loom of one's own"
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", secret)
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)

	b.do(goTo(s.PublicURL + home + "/audit"))
	b.until("the page", "typeof follow === 'function'")
	eval[bool](b, `(() => {
		const { EventSource } = window
		window.EventSource = class extends EventSource {
			constructor(url) {
				super(url)
				window.stream ??= this
			}
		}
		follow(live)
		return true
	})()`)
	b.until("the stream", "stream.readyState === EventSource.OPEN")

	eval[bool](b, fmt.Sprintf(`(() => {
		const confirm = async () => {
			const page = await (await fetch('/dashboard/confirm')).text()
			const form = new DOMParser().parseFromString(page, 'text/html').querySelector('#confirm-submit').form
			const body = new URLSearchParams(new FormData(form))
			body.set('password', %q)
			const answer = await fetch('/dashboard/confirm', { method: 'POST', body, redirect: 'manual' })
			window.confirmed = answer.type === 'opaqueredirect'
		}
		void confirm()
		return true
	})()`, secret))
	b.until("the confirmation", "window.confirmed")
	p.NewSubscriber(t)
	b.until("the notice of a new event", "!live.hidden")
}
