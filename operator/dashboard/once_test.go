package dashboard_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// valid holds a value for each required field that a dashboard form leaves empty.
var valid = map[string]string{
	"name": "Made by a form", "email": "new@example.com", "url": "https://hooks.example/new", "days": "30",
	"issuer": "https://other.example/", "client_id": "an-id", "client_secret": "a-secret",
	"allowed_addresses": "/private/ada", "redirect_uri": "https://app.example/cb",
}

// needed lists the fields that the server requires although the browser does not.
var needed = map[string][]string{
	"/tokens/make/guest$":     {"allowed_addresses"},
	"/clients$":               {"name", "redirect_uri"},
	"/kinds/conference_rooms": {"name"},
}

// quoted matches the text that a confirmation field asks the operator to type.
var quoted = regexp.MustCompile(`“([^”]+)”`)

// confirmation returns the text that a form asks its sender to type.
func confirmation(form *html.Node) string {
	for _, label := range elements(form, func(n *html.Node) bool { return n.Data == "label" }) {
		field := find(form, attribute(label, "for"))
		if field == nil || attribute(field, "name") != "confirm" {
			continue
		}
		if names := elements(label, func(n *html.Node) bool { return n.Data == "bdi" }); len(names) > 0 {
			return textOf(names[0])
		}
		if m := quoted.FindStringSubmatch(textOf(label)); m != nil {
			return m[1]
		}
		words := strings.Fields(textOf(label))
		return words[len(words)-1]
	}
	return ""
}

// validInput returns the form filled in with values that are accepted. The first row of a list is
// selected, and the first button is used.
func (f shownForm) validInput() url.Values {
	sent := f.untouched()
	for _, n := range f.fields {
		name, kind := attribute(n, "name"), attribute(n, "type")
		switch {
		case kind == "hidden", kind == "file":
		case name == "confirm" && kind != "checkbox":
			sent.Set(name, confirmation(f.node))
		case kind == "checkbox" && (has(n, "required") || attribute(n, "form") != "" && !sent.Has(name)),
			kind == "radio" && !sent.Has(name):
			sent.Set(name, attribute(n, "value"))
		case sent.Get(name) == "" && has(n, "required"):
			sent.Set(name, valid[name])
		}
	}

	for action, names := range needed {
		for _, name := range names {
			if regexp.MustCompile(action).MatchString(f.action) {
				sent.Set(name, valid[name])
			}
		}
	}
	if strings.HasSuffix(f.action, "/link") { // the form's first button has used the valid names
		for _, name := range []string{"email", "name"} {
			if sent.Has(name) {
				sent.Set(name, "linked-"+valid["email"])
			}
		}
	}
	named := func(n *html.Node) bool { return n.Data == "button" && attribute(n, "name") != "" }
	if buttons := elements(f.node, named); len(buttons) > 0 {
		sent.Set(attribute(buttons[0], "name"), attribute(buttons[0], "value"))
	}
	return sent
}

// notTwice matches forms that end the session, that need a device, or that only show something. The
// code of an authenticator app and the answer of a passkey are valid once.
var notTwice = regexp.MustCompile("^/dashboard/(logout|confirm|account/(password|app|passkey))$|/tokens/inspect$")

// repeatable matches forms that are handled each time they are sent, because that does no harm.
var repeatable = regexp.MustCompile(
	// They store the same values again.
	`/(edit|settings|branding|mark|role|name|theme|language|bulk|upstreams/[^/]+)$` +
		// They delete or end something that is already gone.
		`|/(delete|remove|revoke|disable|unlock)$` +
		// They only show something. The first button of a new retention rule shows a preview.
		`|/(signing-key|retention)$`)

// deletesProject and endsSomething match the actions of forms that make other forms fail.
var (
	deletesProject = regexp.MustCompile("/projects/[^/]+/delete$")
	endsSomething  = regexp.MustCompile("delete|revoke|remove|withdraw|disable|old-secret")
)

// lateness orders forms so that those that delete something come last.
func (f shownForm) lateness() int {
	switch {
	case deletesProject.MatchString(f.action):
		return 2
	case endsSomething.MatchString(f.action):
		return 1
	}
	return 0
}

// harmless matches audit actions that change nothing when they are repeated.
var harmless = regexp.MustCompile(`\.(updated|revoked|disabled|roles_changed|ended_all)$`)

// actions counts the audit events by their action. For a harmless action, it counts each target
// once.
func (w *world) actions() map[string]int {
	w.Helper()
	counts, counted := make(map[string]int), make(map[string]bool)
	query := page.Query{Size: page.MaxSize}
	for {
		found, err := w.rows.ListAudit(w.Context(), audit.Filter{Outcome: audit.Done}, query)
		must(w, err)
		for _, e := range found.Items {
			action := e.Action + " " + e.Target.ID
			if harmless.MatchString(e.Action) && counted[action] {
				continue
			}
			counted[action] = true
			counts[e.Action]++
		}
		if found.Next == "" {
			return counts
		}
		query.From = found.Next
	}
}

// afterwards is a time after which the server no longer keeps the response for the second click.
const afterwards = 4 * time.Second

// sendTogether sends the same form several times at once.
func (b browser) sendTogether(f shownForm, sent url.Values, times int) []answer {
	b.Helper()
	answers, errs := make([]answer, times), make([]error, times)
	var sending sync.WaitGroup
	for i := range times {
		r := b.submit(f, sent)
		sending.Go(func() { answers[i], errs[i] = b.exchange(r) })
	}
	sending.Wait()
	for _, err := range errs {
		must(b, err)
	}
	return answers
}

// TestFormsSentTwice shows what happens if a form is sent twice at once, as by a double click without
// scripts, and then once more, as by a browser that has gone back. Only the first request makes or
// changes something. The second succeeds, too, because the browser shows its response. The response
// to the third says that the form was sent before, unless the form is repeatable.
func TestFormsSentTwice(t *testing.T) {
	w := newWorld(t)
	ids := w.things(t)
	_, b := w.operator("owner@example.com", ofAll)

	forms := b.everyForm(ids)
	slices.SortStableFunc(forms, func(a, b shownForm) int { return cmp.Compare(a.lateness(), b.lateness()) })
	tried := 0
	for _, f := range forms {
		if notTwice.MatchString(f.action) {
			continue
		}
		t.Run(fmt.Sprintf("POST %s of %s", f.action, f.page), func(t *testing.T) {
			if checkSentTwice(t, b, f) {
				tried++
			}
		})
	}
	if tried < 40 {
		t.Errorf("only %d forms were tried, want at least 40", tried)
	}
}

// checkSentTwice sends a form twice at once and then once more. It reports whether the form was
// accepted.
func checkSentTwice(t *testing.T, b browser, f shownForm) bool {
	before, sent := b.actions(), f.validInput()
	both := b.sendTogether(f, sent, 2)
	b.pass(afterwards)
	third := b.send(b.submit(f, sent))
	for _, a := range both {
		if a.StatusCode >= http.StatusBadRequest {
			t.Errorf("%s with %v, want a success\n%s", a, sent, between(a.body, `id="faults"`, "</div>"))
			return false
		}
	}
	for i, a := range append(both, third) {
		if a.StatusCode >= http.StatusInternalServerError || a.StatusCode == http.StatusForbidden {
			t.Errorf("request %d: %s, want neither 403 nor a server error", i, a)
		}
	}

	refused := third.StatusCode == http.StatusConflict && strings.Contains(third.body, `id="sent"`)
	if want := !repeatable.MatchString(f.action); refused != want {
		t.Errorf("%s, sent again later, is refused as sent before: %t, want %t", third, refused, want)
	}
	for action, n := range b.actions() {
		if n > before[action]+1 {
			t.Errorf("sending the form three times recorded %s %d times, want at most once",
				action, n-before[action])
		}
	}
	return true
}

// TestSecretShownTwice shows that both requests of a double click show the same new secret, that a
// third request shows no secret, and that the form on a newly loaded page creates another key.
func TestSecretShownTwice(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	keys := "/dashboard/projects/" + w.one.ID + "/keys"
	f := shownForm{page: keys + "/new", action: keys}
	sent := url.Values{"form": {b.token(f.page)}, "name": {"billing"}, "scope": {"Voice"}}

	both := b.sendTogether(f, sent, 2)
	secret := both[0].find(t, shownSecret)
	if second := both[1].find(t, shownSecret); second != secret {
		t.Errorf("a double click showed the secrets %q and %q, want the same", secret, second)
	}

	w.pass(afterwards)
	again := b.send(b.submit(f, sent))
	again.wantStatus(t, http.StatusConflict)
	again.wantText(t, `id="sent"`)
	again.wantNoText(t, secret)
	if page := again.find(t, `id="sent-form" href="([^"]+)"`); page != f.page {
		t.Errorf("the page about a form that was sent before leads to %s, want %s", page, f.page)
	}

	sent.Set("form", b.token(f.page))
	b.send(b.submit(f, sent)).wantStatus(t, http.StatusOK)
	found, err := w.fabric.APIKeys.List(t.Context(), w.one.ID, firstPage)
	must(t, err)
	if n := len(found.Items); n != 2 {
		t.Errorf("there are %d keys, want 2", n)
	}
}

// TestSentToTwoNodes shows that the page about a form that another node is still handling does not
// say that the form's secret is lost, and that it does not wait for a node that must have stopped.
func TestSentToTwoNodes(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	keys := "/dashboard/projects/" + w.one.ID + "/keys"
	f := shownForm{page: keys + "/new", action: keys}
	sent := url.Values{"form": {b.token(f.page)}, "name": {"billing"}, "scope": {"Voice"}}

	id := f.action + "\n" + sent.Encode() // the id of the form on each node
	_, err := w.forms.Begin(t.Context(), id)
	must(t, err)
	wantExplanation := func(want string) {
		t.Helper()
		again := b.send(b.submit(f, sent))
		again.wantStatus(t, http.StatusConflict)
		if said := between(again.body, `id="sent"`, "</p>"); !strings.Contains(said, want) {
			t.Errorf("the page about the form sent again says %q, want %q", said, want)
		}
	}
	wantExplanation("is still being handled: reload this page.")
	w.pass(4 * time.Minute)
	wantExplanation("The server stopped while it was handling this form")
	must(t, w.forms.End(t.Context(), id, ""))
	wantExplanation("A secret is shown only once")
}

// TestRefusedFormSentAgain shows that a form that was refused can be sent again unchanged.
func TestRefusedFormSentAgain(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	f := shownForm{page: base + "/subscribers/new", action: base + "/subscribers"}
	sent := url.Values{"form": {b.token(f.page)}, "email": {"not an address"}}
	for range 2 {
		b.send(b.submit(f, sent)).wantRefused(t)
	}
	sent.Set("email", "ada@example.com")
	created := b.send(b.submit(f, sent))
	if created.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s, want 303\n%s", created, created.body)
	}
	w.pass(afterwards)
	again := b.send(b.submit(f, sent))
	if result := again.find(t, `id="sent-result" href="([^"]+)"`); result != created.Header.Get("Location") {
		t.Errorf("the form sent again leads to %s, want %s", result, created.Header.Get("Location"))
	}
}
