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

// elements returns the elements below n for which matches returns true.
func elements(n *html.Node, matches func(*html.Node) bool) (found []*html.Node) {
	for below := range n.Descendants() {
		if below.Type == html.ElementNode && matches(below) {
			found = append(found, below)
		}
	}
	return found
}

// isForm reports whether n is a form that changes something.
func isForm(n *html.Node) bool { return n.Data == "form" && attribute(n, "method") == "post" }

// isTyped reports whether n is a field that people type into.
func isTyped(n *html.Node) bool {
	return n.Data == "input" && slices.Contains([]string{"", "text", "email", "password"}, attribute(n, "type")) &&
		attribute(n, "name") != "username"
}

// wrongValues returns the fields of a form, filled in with values that no field accepts.
func wrongValues(form *html.Node) url.Values {
	sent := url.Values{}
	for _, n := range elements(form, func(n *html.Node) bool { return attribute(n, "name") != "" }) {
		name, value := attribute(n, "name"), attribute(n, "value")
		if isTyped(n) {
			value = "not \u0001 a <" + name + ">"
		}
		sent.Set(name, value)
	}
	return sent
}

// TestAccountWrongValues shows that the response to a form of the account with values that no field
// accepts marks each wrong field, describes the error, and keeps what was typed, except for secrets. It
// tries the forms that have text fields.
func TestAccountWrongValues(t *testing.T) {
	w := newWorld(t)
	b := w.newBrowser()
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
		got := b.post(action, wrongValues(form))
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("POST %s returned %d, want 422", action, got.status)
			continue
		}
		checkMarked(t, action, got, wrongValues(form))
	}
	want := []string{"/account/profile", "/account/email", "/account/password", "/account/app/confirm"}
	if !slices.Equal(tried, want) {
		t.Errorf("the forms are %v, want %v", tried, want)
	}
}

// checkMarked checks that the page that refuses a form marks the wrong fields and shows no secrets.
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
	b := w.newBrowser()
	page := b.account()
	firstName, lastName := "Augusta", "King"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &firstName, LastName: &lastName}})
	must(t, err)
	stored := func() fabric.Subscriber {
		t.Helper()
		sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
		must(t, err)
		return sub
	}

	b.onPage(page, "/account/profile", "first_name", "Ada", "last_name", "", "display_name", "Countess")
	sub := stored()
	if sub.FirstName != firstName || sub.LastName != lastName {
		t.Errorf("another display name wrote the names %q and %q, want Augusta and King", sub.FirstName, sub.LastName)
	}
	if sub.DisplayName != "Countess" {
		t.Errorf("the display name is %q, want Countess", sub.DisplayName)
	}

	got := b.onPage(page, "/account/profile", "first_name", "Ada Augusta", "last_name", "", "display_name", "Countess")
	wantStatus(t, "a name that somebody else has changed", got, http.StatusUnprocessableEntity)
	wantText(t, "a name that somebody else has changed", got, "changed this to “Augusta”", `value="Ada Augusta"`)
	if sub := stored(); sub.FirstName != firstName {
		t.Errorf("a refused form wrote the name %q, want Augusta", sub.FirstName)
	}
	b.onPage(got, "/account/profile", "first_name", "Ada Augusta", "last_name", lastName, "display_name", "Countess")
	if sub := stored(); sub.FirstName != "Ada Augusta" {
		t.Errorf("after the form was saved again, the name is %q, want Ada Augusta", sub.FirstName)
	}
}

// TestProfileWithSpaces shows that a name stored with spaces around it can be changed, and stays as it
// is if the form does not change it.
func TestProfileWithSpaces(t *testing.T) {
	w := newWorld(t)
	firstName, lastName := "Ada ", " King"
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Profile: fabric.Profile{FirstName: &firstName, LastName: &lastName}})
	must(t, err)

	b := w.newBrowser()
	b.onPage(b.account(), "/account/profile", "first_name", "Augusta", "last_name", lastName)
	sub, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, w.ada.ID)
	must(t, err)
	if sub.FirstName != "Augusta" {
		t.Errorf("the first name is %q, want Augusta", sub.FirstName)
	}
	if sub.LastName != lastName {
		t.Errorf("the last name is %q, want %q", sub.LastName, lastName)
	}
}
