package clients

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestDashboardForms shows that a form keeps its text when the session ends and when the operator
// goes back, that a double click sends a form once, and that the page of a test event shows the
// response without a reload.
func TestDashboardForms(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	p := s.NewProject(t)
	b := ownTab(t)
	const secret = "a loom of one's own"
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", secret)
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)

	url := harness.NewReceiver(t).URL
	typed := fmt.Sprintf("document.getElementById('f-url')?.value === %q", url)
	form := home + "/webhooks/new"
	b.do(goTo(s.PublicURL + form))
	b.typeInto("f-url", url)
	b.leave("location.href = " + fmt.Sprintf("%q", home))
	b.arrive(home)
	b.leave("history.back()")
	b.arrive(form)
	b.until("the URL after going back", typed)
	if keys := eval[string](b, "Object.keys(sessionStorage).join()"); !strings.Contains(keys, "draft Ann "+form) {
		t.Errorf("the browser keeps the drafts %q, want Ann's draft of the form among them", keys)
	}

	// Another tab signs the operator out. Submitting the form then leads to the login page, and the
	// login leads back to the form, which still has the typed text.
	if status := eval[int](b, `(async () => {
		const out = document.querySelector("form[action='/dashboard/logout']");
		const answer = await fetch(out.action, {method: "POST", body: new URLSearchParams(new FormData(out))});
		return answer.status;
	})()`); status != 200 {
		t.Fatalf("signing out returned %d, want 200", status)
	}
	b.leave("document.getElementById('webhook-submit').click()")
	b.arrive("/dashboard/login")
	b.fill("login-submit", "username", "ann@example.com", "password", secret)
	b.arrive(form)
	b.until("the URL after the login", typed)

	if sent := eval[int](b, `(() => {
		let sent = 0;
		const form = document.getElementById("webhook-submit").form;
		const count = (event) => { sent += event.defaultPrevented ? 0 : 1; event.preventDefault(); };
		form.addEventListener("submit", count);
		for (let i = 0; i < 2; i++) document.getElementById("webhook-submit").click();
		form.removeEventListener("submit", count);
		delete form.dataset.sent;
		return sent;
	})()`); sent != 1 {
		t.Errorf("a double click sent the form %d times, want once", sent)
	}

	b.leave("document.getElementById('webhook-submit').click()")
	b.until("the webhook", "document.getElementById('webhook-test')")

	b.leave("document.getElementById('webhook-test').click()")
	b.until("the delivery", "document.getElementById('attempts')")
	b.until("the answer", "document.getElementById('attempts').innerText.includes('Delivered')")
}
