package oidc_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/selvage/selvage/fabric"
)

// attribute returns the value of an attribute, or "".
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// elements returns the elements below n that match.
func elements(n *html.Node, matches func(*html.Node) bool) (all []*html.Node) {
	for at := range n.Descendants() {
		if at.Type == html.ElementNode && matches(at) {
			all = append(all, at)
		}
	}
	return all
}

func isForm(n *html.Node) bool { return n.Data == "form" && attribute(n, "method") == "post" }

// isTyped matches the fields that people type into.
func isTyped(n *html.Node) bool {
	return n.Data == "input" && slices.Contains([]string{"", "text", "email", "password"}, attribute(n, "type")) &&
		attribute(n, "name") != "username"
}

// wrongly fills in a form with values that no field accepts.
func wrongly(form *html.Node) url.Values {
	sent := url.Values{}
	for _, n := range elements(form, func(n *html.Node) bool { return attribute(n, "name") != "" }) {
		if sent.Set(attribute(n, "name"), attribute(n, "value")); isTyped(n) {
			sent.Set(attribute(n, "name"), "not \u0001 a <"+attribute(n, "name")+">")
		}
	}
	return sent
}

// TestAccountWrongValues posts each form of the account page that has text fields, with values that
// no field accepts. The response marks each wrong field, describes it, and keeps what was typed,
// except for passwords.
func TestAccountWrongValues(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page, err := html.Parse(strings.NewReader(b.account().body))
	must(t, err)
	app := b.onPage(b.account(), "/account/app")
	more, err := html.Parse(strings.NewReader(app.body))
	must(t, err)

	var tried []string
	for _, form := range append(elements(page, isForm), elements(more, isForm)...) {
		action := attribute(form, "action")
		if len(elements(form, isTyped)) == 0 || action == "/account/passkeys" { // needs a passkey
			continue
		}
		tried = append(tried, action)
		got := b.post(action, wrongly(form))
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("POST %s returned %d, want 422", action, got.status)
			continue
		}
		checkMarked(t, action, got, wrongly(form))
	}
	want := []string{"/account/profile", "/account/email", "/account/password", "/account/app/confirm"}
	if !slices.Equal(tried, want) {
		t.Errorf("the forms are %v, want %v", tried, want)
	}
}

// checkMarked checks the page that refuses a form.
func checkMarked(t *testing.T, action string, got reply, sent url.Values) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(got.body))
	must(t, err)
	refused := elements(page, func(n *html.Node) bool { return isForm(n) && attribute(n, "action") == action })
	if len(refused) != 1 {
		t.Errorf("POST %s shows %d forms, want one", action, len(refused))
		return
	}

	marked := 0
	for _, n := range elements(refused[0], isTyped) {
		name := attribute(n, "name")
		isSecret := attribute(n, "type") == "password" || name == "code"
		switch kept := attribute(n, "value"); {
		case isSecret && kept != "":
			t.Errorf("POST %s shows the secret %s", action, name)
		case !isSecret && !strings.HasPrefix(kept, "not "):
			t.Errorf("POST %s loses %s", action, name)
		}
		if attribute(n, "aria-invalid") != "true" {
			if !isSecret { // a new password is rated only if the current one is right
				t.Errorf("POST %s does not mark %s", action, name)
			}
			continue
		}

		marked++
		isError := func(e *html.Node) bool {
			return e.FirstChild != nil && attribute(e, "role") == "alert" &&
				slices.Contains(strings.Fields(attribute(n, "aria-describedby")), attribute(e, "id"))
		}
		if len(elements(page, isError)) != 1 {
			t.Errorf("POST %s does not describe what is wrong with %s", action, name)
		}
	}
	if marked == 0 {
		t.Errorf("POST %s marks no field", action)
	}
	for name, values := range sent {
		if name == "current" && strings.Contains(got.body, html.EscapeString(values[0])) {
			t.Errorf("POST %s shows the password", action)
		}
	}
}

// TestProfileChangedMeanwhile shows that the form for the profile writes only the names that were
// changed in it. A name that somebody else has changed to another value is kept until the form is
// saved again.
func TestProfileChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := b.account()
	first, last := "Augusta", "King"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &first, LastName: &last}})
	must(t, err)
	stored := func() fabric.Subscriber {
		t.Helper()
		sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
		must(t, err)
		return sub
	}

	b.onPage(page, "/account/profile", "first_name", "Ada", "last_name", "", "display_name", "Countess")
	if sub := stored(); sub.FirstName != first || sub.LastName != last || sub.DisplayName != "Countess" {
		t.Errorf("another display name wrote %q %q, %q, want Augusta King, Countess",
			sub.FirstName, sub.LastName, sub.DisplayName)
	}

	got := b.onPage(page, "/account/profile", "first_name", "Ada Augusta", "last_name", "", "display_name", "Countess")
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "changed this to “Augusta”") ||
		!strings.Contains(got.body, `value="Ada Augusta"`) || stored().FirstName != first {
		t.Errorf("a name that somebody else has changed: %d, stored %q, want 422 and Augusta",
			got.status, stored().FirstName)
	}
	b.onPage(got, "/account/profile", "first_name", "Ada Augusta", "last_name", last, "display_name", "Countess")
	if sub := stored(); sub.FirstName != "Ada Augusta" {
		t.Errorf("saved again, the name is %q, want Ada Augusta", sub.FirstName)
	}
}

// TestProfileWithSpaces shows that a name stored with spaces around it can be changed, and stays as it
// is if the form does not change it.
func TestProfileWithSpaces(t *testing.T) {
	w := newWorld(t)
	first, last := "Ada ", " King"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &first, LastName: &last}})
	must(t, err)

	b := w.browser()
	b.onPage(b.account(), "/account/profile", "first_name", "Augusta", "last_name", last)
	sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != "Augusta" || sub.LastName != last {
		t.Errorf("the names are %q and %q, want Augusta and %q", sub.FirstName, sub.LastName, last)
	}
}
