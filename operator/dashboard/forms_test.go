package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// elements returns the elements below n for which matches returns true.
func elements(n *html.Node, matches func(*html.Node) bool) (all []*html.Node) {
	for below := range n.Descendants() {
		if below.Type == html.ElementNode && matches(below) {
			all = append(all, below)
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

// isField reports whether n is an element with a value that a form sends.
func isField(n *html.Node) bool {
	return slices.Contains([]string{"input", "textarea", "select"}, n.Data) && attribute(n, "name") != ""
}

// wrongValues fills in a form. Each text field gets a value that no field accepts. typed holds the
// values that must be in the response.
func wrongValues(form *html.Node) (sent url.Values, typed []string) {
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
	byID := make(map[string]*html.Node)
	values := make(map[string]bool)
	for _, n := range elements(page, func(*html.Node) bool { return true }) {
		if id := attribute(n, "id"); id != "" {
			byID[id] = n
		}
		values[attribute(n, "value")] = true
		if n.Data == "textarea" && n.FirstChild != nil {
			values[strings.TrimPrefix(n.FirstChild.Data, "\n")] = true
		}
	}
	for _, text := range typed {
		if !values[text] {
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
		field := byID[id]
		if field == nil {
			t.Errorf("%s: an error leads to %q, which is not a field", what, id)
			continue
		}
		if byID[id+"-fault"] == nil {
			t.Errorf("%s: the field %s has no error", what, id)
		}
		if by := attribute(field, "aria-describedby"); !strings.Contains(by, id+"-fault") {
			t.Errorf("%s: the field %s is described by %q, want its error", what, id, by)
		}
	}
}

// checkExpired sends a form from nobody, a browser without a session. A page keeps the typed text
// until b, which is signed in, sends it. No page keeps a form with a secret. For such a form, the
// login leads back to the form's page.
func checkExpired(t *testing.T, nobody, b browser, f shownForm, sent url.Values, typed []string) {
	t.Helper()
	kept := nobody.send(nobody.submit(f, sent))
	if kept.StatusCode == http.StatusSeeOther {
		if !f.hasSecret() {
			t.Errorf("%s without a session, want a page that keeps the form", kept)
		}
		kept.wantHeader(t, "Location", "/dashboard/login?next="+url.QueryEscape(f.page))
		return
	}

	asked := b.sendAgain(kept) // the page in another session asks before it sends the form
	asked.wantStatus(t, http.StatusForbidden)
	asked.wantText(t, "Send the form now?")
	if t.Failed() {
		return
	}
	refused := b.sendAgain(asked)
	refused.wantRefused(t)
	if t.Failed() {
		return
	}
	checkRefused(t, "the form after the next login", refused, typed)
}

// hasSecret reports whether a form has a field for a password or a token.
func (f shownForm) hasSecret() bool {
	isSecret := func(n *html.Node) bool {
		return attribute(n, "type") == "password" || attribute(n, "name") == "token"
	}
	return len(elements(f.node, isSecret)) > 0
}

// leftOut lists the actions of forms that TestWrongValues leaves out. Codes of an authenticator app
// and passkeys are valid only once, so the page does not keep them.
var leftOut = []string{"/dashboard/account/app", "/dashboard/account/passkey"}

// TestWrongValues shows that the response to a form with values that no field accepts keeps what was
// typed and marks each wrong field. It tries each form that has text fields. If the session has ended,
// the text is kept until the next login.
func TestWrongValues(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("owner@example.com", ofAll)

	nobody, tried := w.browser(), 0
	for _, f := range b.everyForm(ids) {
		sent, typed := wrongValues(f.node)
		isEmpty := len(typed) == 0 && !sent.Has("confirm")
		if f.isFile || isEmpty || slices.Contains(leftOut, f.action) {
			continue
		}
		tried++
		t.Run("POST "+f.action, func(t *testing.T) {
			a := b.send(b.submit(f, sent))
			a.wantRefused(t)
			if t.Failed() {
				return
			}
			checkRefused(t, "the form", a, typed)
			checkExpired(t, nobody, b, f, sent, typed)
		})
	}
	if tried < 20 {
		t.Errorf("only %d forms were tried, want at least 20", tried)
	}
}

// TestWrongTags shows that the page of a recording names the invalid tags, next to their field.
func TestWrongTags(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := "/dashboard/projects/" + w.one.ID + "/recordings/" + w.record(w.one.ID, "a-call").Sid
	wrong := b.post(one, one+"/mark", url.Values{"tags": {"Complaint!, vip"}, "hold": {"a dispute"}})
	wrong.wantRefused(t)
	checkRefused(t, "an invalid tag", wrong, []string{"Complaint!, vip", "a dispute"})
	fault := between(wrong.body, `id="tags-fault"`, "</p>")
	if !strings.Contains(fault, "complaint!") {
		t.Errorf("the error of the field is %q, want the tag complaint!", fault)
	}
	if strings.Contains(fault, "vip") {
		t.Errorf("the error of the field is %q, want it not to name the valid tag", fault)
	}

	// Tags may be typed with capitals and commas.
	b.post(one, one+"/mark", url.Values{"tags": {"Complaint, VIP vip"}}).leadsTo(t, one+"?done=changed")
	b.get(one).wantText(t, `value="complaint vip"`)
}
