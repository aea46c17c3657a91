package dashboard_test

import (
	"cmp"
	"fmt"
	"io"
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

// valid holds a value for each text that a form of the dashboard requires and does not fill in.
var valid = map[string]string{
	"name": "Made by a form", "email": "new@example.com", "url": "https://hooks.example/new", "days": "30",
	"issuer": "https://other.example/", "client_id": "an-id", "client_secret": "a-secret",
	"allowed_addresses": "/private/ada", "redirect_uri": "https://app.example/cb",
}

// needed are fields that forms require although the browser does not enforce it.
var needed = map[string][]string{"/tokens/make/guest$": {"allowed_addresses"},
	"/clients$": {"name", "redirect_uri"}, "/kinds/conference_rooms": {"name"}}

// quoted matches the text that a field for a confirmation asks for.
var quoted = regexp.MustCompile(`“([^”]+)”`)

// confirmation returns what a form asks its sender to type.
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

// rightly fills in a form with values that are accepted, selects the first row of a list, and uses the
// first button.
func (f shownForm) rightly() url.Values {
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
	if strings.HasSuffix(f.action, "/link") { // the same names are taken by the form's first button
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
		// They delete or end something, which has happened already.
		`|/(delete|remove|revoke|disable|unlock)$` +
		// They only show something. The first button of a new retention rule shows a preview.
		`|/(signing-key|retention)$`)

// lateness orders forms so that those that delete something come last.
func (f shownForm) lateness() int {
	for i, words := range []string{"/projects/[^/]+/delete$", "delete|revoke|remove|withdraw|disable|old-secret"} {
		if regexp.MustCompile(words).MatchString(f.action) {
			return 2 - i
		}
	}
	return 0
}

// harmless are actions that change nothing the second time.
var harmless = regexp.MustCompile(`\.(updated|revoked|disabled|roles_changed|ended_all)$`)

// actions counts the audit events by their action. For a harmless action, it counts each target
// once.
func (w *world) actions() map[string]int {
	w.Helper()
	n, targets := make(map[string]int), make(map[string]bool)
	for q := (page.Query{Size: page.MaxSize}); ; {
		found, err := w.rows.ListAudit(w.Context(), audit.Filter{Outcome: audit.Done}, q)
		must(w, err)
		for _, e := range found.Items {
			if of := e.Action + " " + e.Target.ID; !harmless.MatchString(e.Action) || !targets[of] {
				targets[of] = true
				n[e.Action]++
			}
		}
		if q.From = found.Next; q.From == "" {
			return n
		}
	}
}

// afterwards is the time after which the server has dropped the response that it keeps for the
// second click.
const afterwards = 4 * time.Second

// sendTogether sends the same form several times at once.
func (b browser) sendTogether(f shownForm, sent url.Values, times int) []answer {
	b.Helper()
	all, errs := make([]answer, times), make([]error, times)
	var sending sync.WaitGroup
	for i := range all {
		r := b.submit(f, sent)
		sending.Go(func() {
			resp, err := b.client.Do(r)
			if err != nil {
				errs[i] = err
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			all[i], errs[i] = answer{resp, string(body)}, err
		})
	}
	sending.Wait()
	for _, err := range errs {
		must(b, err)
	}
	return all
}

// TestFormsSentTwice sends each form twice at once, as a double click without scripts does, and
// then once more, as a browser does after going back. Only the first request makes or changes
// something. The third gets a page that says that the form was sent before, unless the form is
// repeatable.
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
		before, sent := w.actions(), f.rightly()
		all := b.sendTogether(f, sent, 2)
		w.pass(afterwards)
		all = append(all, b.send(b.submit(f, sent)))
		what := fmt.Sprintf("POST %s of %s", f.action, f.page)
		if all[0].StatusCode >= http.StatusBadRequest && all[1].StatusCode >= http.StatusBadRequest {
			t.Errorf("%s with %v: %s, want a success\n%s", what, sent, all[0].Status,
				between(all[0].body, `id="faults"`, "</div>"))
			continue
		}
		tried++
		for i, a := range all {
			if a.StatusCode >= http.StatusInternalServerError || a.StatusCode == http.StatusForbidden {
				t.Errorf("%s, request %d: %s", what, i, a.Status)
			}
		}
		third := all[2]
		refused := third.StatusCode == http.StatusConflict && strings.Contains(third.body, `id="sent"`)
		if refused == repeatable.MatchString(f.action) {
			t.Errorf("%s, sent again later: %s, says that it was sent before: %t", what, third.Status, refused)
		}
		for action, n := range w.actions() {
			if n > before[action]+1 {
				t.Errorf("%s, sent three times, did %s %d times", what, action, n-before[action])
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d forms were tried", tried)
	}
}

// TestSecretShownTwice shows that both requests of a double click show the same new secret, that a
// third shows no secret, and that the form of a new page makes another key.
func TestSecretShownTwice(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	keys := "/dashboard/projects/" + w.one.ID + "/keys"
	f := shownForm{page: keys + "/new", action: keys}
	sent := url.Values{"form": {b.token(f.page)}, "name": {"billing"}, "scope": {"Voice"}}

	const secret = `id="secret"><span class="copy"><code>([^<]+)<`
	all := b.sendTogether(f, sent, 2)
	if one, two := all[0].find(t, secret), all[1].find(t, secret); one != two {
		t.Errorf("a double click showed the secrets %q and %q", one, two)
	}
	w.pass(afterwards)
	again := b.send(b.submit(f, sent))
	if again.StatusCode != http.StatusConflict || !strings.Contains(again.body, `id="sent"`) ||
		strings.Contains(again.body, all[0].find(t, secret)) {
		t.Errorf("a form that was sent before: %s\n%s", again.Status, again.body)
	}
	if page := again.find(t, `id="sent-form" href="([^"]+)"`); page != f.page {
		t.Errorf("the page about a form that was sent before leads to %s, want %s", page, f.page)
	}

	sent.Set("form", b.token(f.page))
	if a := b.send(b.submit(f, sent)); a.StatusCode != http.StatusOK {
		t.Errorf("the form of a new page: %s, want 200", a.Status)
	}
	found, err := w.fabric.APIKeys.List(t.Context(), w.one.ID, firstPage)
	if err != nil || len(found.Items) != 2 {
		t.Errorf("there are %d keys, want 2: %v", len(found.Items), err)
	}
}

// TestSentToTwoNodes shows that the page about a form that another node is still handling does not call
// the form's secret lost, and that it does not wait for a node that must have stopped.
func TestSentToTwoNodes(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	keys := "/dashboard/projects/" + w.one.ID + "/keys"
	f := shownForm{page: keys + "/new", action: keys}
	sent := url.Values{"form": {b.token(f.page)}, "name": {"billing"}, "scope": {"Voice"}}

	id := f.action + "\n" + sent.Encode() // the id of the form on each node
	_, err := w.forms.Begin(t.Context(), id)
	must(t, err)
	says := func(want string) {
		t.Helper()
		again := b.send(b.submit(f, sent))
		said := between(again.body, `id="sent"`, "</p>")
		if again.StatusCode != http.StatusConflict || !strings.Contains(said, want) {
			t.Errorf("the form sent again: %s, %q, want %q", again.Status, said, want)
		}
	}
	says("is still being handled: reload this page.")
	w.pass(4 * time.Minute)
	says("The server stopped while it was handling this form")
	must(t, w.forms.End(t.Context(), id, ""))
	says("A secret is shown only once")
}

// TestRefusedFormSentAgain shows that a form that was refused can be sent again unchanged.
func TestRefusedFormSentAgain(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	f := shownForm{page: base + "/subscribers/new", action: base + "/subscribers"}
	sent := url.Values{"form": {b.token(f.page)}, "email": {"not an address"}}
	for range 2 {
		if a := b.send(b.submit(f, sent)); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a wrong email: %s, want 422", a.Status)
		}
	}
	sent.Set("email", "ada@example.com")
	created := b.send(b.submit(f, sent))
	if created.StatusCode != http.StatusSeeOther {
		t.Fatalf("the corrected form: %s, want 303\n%s", created.Status, created.body)
	}
	w.pass(afterwards)
	again := b.send(b.submit(f, sent))
	if result := again.find(t, `id="sent-result" href="([^"]+)"`); result != created.Header.Get("Location") {
		t.Errorf("the form sent again leads to %s, want %s", result, created.Header.Get("Location"))
	}
}
