package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// elements returns the elements of a page below n that match.
func elements(n *html.Node, matches func(*html.Node) bool) (all []*html.Node) {
	for at := range n.Descendants() {
		if at.Type == html.ElementNode && matches(at) {
			all = append(all, at)
		}
	}
	return all
}

// attribute returns the value of an attribute, or "".
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// isField matches elements with a value that a form sends.
func isField(n *html.Node) bool {
	return slices.Contains([]string{"input", "textarea", "select"}, n.Data) && attribute(n, "name") != ""
}

// wrongly fills in a form. Each text gets a value that no field accepts. typed holds the values
// that must be in the response.
func wrongly(form *html.Node) (sent url.Values, typed []string) {
	sent = url.Values{}
	for _, n := range elements(form, isField) {
		name, kind := attribute(n, "name"), attribute(n, "type")

		switch {
		case kind == "hidden":
			sent.Set(name, attribute(n, "value"))
		case n.Data == "select":
			chosen := elements(n, func(o *html.Node) bool { return o.Data == "option" })
			if len(chosen) > 0 {
				sent.Set(name, attribute(chosen[0], "value"))
			}
		case kind == "radio":
			sent.Set(name, attribute(n, "value"))
		case kind == "checkbox", kind == "file":
		case kind == "password":
			sent.Set(name, strings.Repeat("\u0001", 300))
		default:
			text := "not \u0001 a <" + name + "> " + strings.Repeat("x", 300)
			sent.Set(name, text)
			if name != "confirm" && name != "token" {
				typed = append(typed, text)
			}
		}
	}
	return sent, typed
}

// checkRefused checks the page that refuses a form: it keeps what was typed, and each error leads
// to a field that is marked and described by the error.
func checkRefused(t *testing.T, what string, a answer, typed []string) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(a.body))
	must(t, err)
	kept := make(map[string]bool)
	byID := make(map[string]*html.Node)
	for _, n := range elements(page, func(*html.Node) bool { return true }) {
		if id := attribute(n, "id"); id != "" {
			byID[id] = n
		}
		kept[attribute(n, "value")] = true
		if n.Data == "textarea" && n.FirstChild != nil {
			kept[strings.TrimPrefix(n.FirstChild.Data, "\n")] = true
		}
	}
	for _, text := range typed {
		if !kept[text] {
			t.Errorf("%s loses %.40q", what, text)
		}
	}

	summary := byID["faults"]
	if summary == nil {
		t.Errorf("%s does not say what is wrong", what)
		return
	}
	links := elements(summary, func(n *html.Node) bool { return n.Data == "a" })
	if len(links) == 0 {
		t.Errorf("%s leads to no field: %s", what, between(a.body, `id="faults"`, "</div>"))
	}
	for _, link := range links {
		id := strings.TrimPrefix(attribute(link, "href"), "#")
		if byID[id] == nil || byID[id+"-fault"] == nil ||
			!strings.Contains(attribute(byID[id], "aria-describedby"), id+"-fault") {
			t.Errorf("%s: the field %s is not described by its error", what, id)
		}
	}
}

// checkExpired sends a form after the session has ended. A page keeps the typed text until the next
// login, and then sends it. No page keeps a form with a secret. For such a form, the login leads
// back to the form's page.
func checkExpired(t *testing.T, nobody, b browser, f shownForm, sent url.Values, typed []string) {
	t.Helper()
	kept := nobody.send(nobody.submit(f, sent))
	if kept.StatusCode == http.StatusSeeOther {
		isSecret := func(n *html.Node) bool {
			return attribute(n, "type") == "password" || attribute(n, "name") == "token"
		}
		want := "/dashboard/login?next=" + url.QueryEscape(f.page)
		if at := kept.Header.Get("Location"); at != want || len(elements(f.node, isSecret)) == 0 {
			t.Errorf("POST %s without a session leads to %s, and does not keep the form", f.action, at)
		}
		return
	}

	kept = b.sendAgain(kept) // the page in another session asks before it sends the form
	if kept.StatusCode != http.StatusForbidden || !strings.Contains(kept.body, "Send the form now?") {
		t.Errorf("POST %s after the next login: %s, want a page that asks before it sends the form",
			f.action, kept.Status)
		return
	}
	a := b.sendAgain(kept)
	if a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("POST %s, sent after the next login, returned %s, want 422", f.action, a.Status)
		return
	}
	checkRefused(t, "POST "+f.action+" after the next login", a, typed)
}

// elsewhere are forms with other errors. Codes of an authenticator app and passkeys are valid once, so
// they are not kept.
var elsewhere = []string{"/dashboard/account/app", "/dashboard/account/passkey"}

// TestWrongValues posts each form that has text fields, with values that no field accepts. The
// response keeps what was typed and marks each wrong field. If the session has ended, the text is
// kept until the next login.
func TestWrongValues(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("owner@example.com", ofAll)

	nobody, tried := w.browser(), 0
	for _, f := range b.everyForm(ids) {
		sent, typed := wrongly(f.node)
		isEmpty := len(typed) == 0 && !sent.Has("confirm")
		if f.isFile || isEmpty || slices.Contains(elsewhere, f.action) {
			continue
		}
		tried++
		what := "POST " + f.action
		a := b.send(b.submit(f, sent))
		if a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s of %s returned %s, want 422", what, f.page, a.Status)
			continue
		}
		checkRefused(t, what, a, typed)
		checkExpired(t, nobody, b, f, sent, typed)
	}
	if tried < 20 {
		t.Errorf("only %d forms were tried", tried)
	}
}

// TestWrongTags shows that the page of a recording names the invalid tags, next to their field.
func TestWrongTags(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := "/dashboard/projects/" + w.one.ID + "/recordings/" + w.record(w.one.ID, "a-call").Sid
	a := b.post(one, one+"/mark", url.Values{"tags": {"Complaint!, vip"}, "hold": {"a dispute"}})
	if a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an invalid tag returned %s, want 422", a.Status)
	}
	checkRefused(t, "an invalid tag", a, []string{"Complaint!, vip", "a dispute"})
	if fault := between(a.body, `id="tags-fault"`, "</p>"); !strings.Contains(fault, "complaint!") ||
		strings.Contains(fault, "vip") {
		t.Errorf("the error of the field is %q, want only the invalid tag", fault)
	}

	b.post(one, one+"/mark", url.Values{"tags": {"Complaint, VIP vip"}}).leadsTo(t, one+"?done=changed")
	if page := b.get(one).body; !strings.Contains(page, `value="complaint vip"`) {
		t.Error("the recording lacks the tags that were typed with capitals and commas")
	}
}
