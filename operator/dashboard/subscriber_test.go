package dashboard_test

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// ada creates the subscriber ada@example.com through the form, and returns the path of her page.
func (w *world) ada(t *testing.T, b browser) (page string) {
	t.Helper()
	base := "/dashboard/projects/" + w.one.ID + "/subscribers"
	created := b.post(base+"/new", base, url.Values{"email": {"Ada@Example.com"}, "first_name": {"Ada"},
		"last_name": {"Lovelace"}, "password": {good}})
	page, ok := strings.CutSuffix(created.Header.Get("Location"), "?done=subscriberadded")
	if !ok {
		t.Fatalf("creating a subscriber returned %s: %s", created.Status, created.body)
	}
	return page
}

// TestSubscribers shows that the form creates and changes subscribers, and shows errors next to
// their fields, such as an email that is already in use.
func TestSubscribers(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, ctx := "/dashboard/projects/"+w.one.ID+"/subscribers", t.Context()

	if a := b.post(base+"/new", base, url.Values{"email": {"nobody"}, "first_name": {"Ada"},
		"password": {"short"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-email-fault"`) ||
		!strings.Contains(a.body, `id="f-password-fault"`) || !strings.Contains(a.body, `value="Ada"`) ||
		strings.Contains(a.body, "short\"") {
		t.Errorf("creating an invalid subscriber returned %s: %s", a.Status, between(a.body, "<form id", "</form>"))
	}

	one := w.ada(t, b)
	b.post(one+"/edit", one+"/edit", url.Values{"email": {"ada@example.com"}, "first_name": {"Ada"},
		"last_name": {"King"}, "country": {"GB"}}).leadsTo(t, one+"?done=changed")
	s, err := w.fabric.Subscribers.Find(ctx, w.one.ID, one[strings.LastIndex(one, "/")+1:])
	if err != nil || s.LastName != "King" || s.Country != "GB" || s.FirstName != "Ada" || s.PasswordHash == "" {
		t.Errorf("after the change the subscriber is %+v, %v", s, err)
	}

	if s.RecordCalls != fabric.RecordInherit {
		t.Errorf("a form without record_calls set it to %q", s.RecordCalls)
	}

	// The email must be unique, and a subscriber with a password is not invited.
	mail := "bob@example.com"
	_, err = w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)
	if a := b.post(one+"/edit", one+"/edit",
		url.Values{"email": {mail}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-email-fault"`) {
		t.Errorf("saving an email that is already in use returned %s, want 422 with an error at the email", a.Status)
	}

	if a := b.post(one, one+"/invite", nil); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "Subscribers with a password are not invited") {
		t.Errorf("inviting a subscriber with a password returned %s, want 422 with the reason", a.Status)
	}
}

// TestCommandsToCopy shows that the commands to copy quote a reference that contains quotes.
func TestCommandsToCopy(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	tokens, err := w.fabric.Tokens.IssueSubscriber(
		t.Context(), fabric.Issuer{ProjectID: w.one.ID}, fabric.SubscriberTokenInput{Reference: "x'; id #"})
	must(t, err)

	a := b.get("/dashboard/projects/" + w.one.ID + "/subscribers/" + tokens.SubscriberID)
	if !strings.Contains(a.body, template.HTMLEscapeString(`--reference='x'\''; id #'`)) ||
		!strings.Contains(a.body, template.HTMLEscapeString(`-d '{"reference":"x'\''; id #"}'`)) {
		t.Errorf("a command to copy does not quote the reference: %s", a.body)
	}
}

// TestUnlock shows that wrong passwords lock an account until an operator unlocks it. The page then
// lists the subscriber's login.
func TestUnlock(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	logIn := func(password, agent string) error {
		_, err := w.idp.Logins.LogIn(t.Context(), w.one.ID, "ada@example.com", password, idp.Visitor{UserAgent: agent})
		return err
	}

	for range 6 {
		if err := logIn("wrong", ""); err == nil {
			t.Fatal("a wrong password was accepted")
		}
	}
	if err := logIn(good, ""); !errors.Is(err, problem.RateLimited) {
		t.Errorf("the right password after many wrong ones: %v, want RateLimited", err)
	}

	b.post(one, one+"/unlock", nil).leadsTo(t, one+"?done=unlocked")
	if err := logIn(good, "Firefox/1 Linux"); err != nil {
		t.Errorf("after unlocking: %v", err)
	}

	if a := b.get(one); !strings.Contains(a.body, "Firefox on Linux") ||
		!strings.Contains(a.body, "/tokens/make/subscriber?reference=ada%40example.com") ||
		!strings.Contains(a.body, "None. They sign in with their password alone") {
		t.Errorf("the subscriber's page returned %s", a.Status)
	}
}

// TestExportAndErase shows that a subscriber's data can be exported, and that erasing it requires
// the email and a recent confirmation.
func TestExportAndErase(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, base := w.ada(t, b), "/dashboard/projects/"+w.one.ID+"/subscribers"
	if a := b.get(one + "/export"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Lovelace") ||
		!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") ||
		a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the export: %s %v, want an attachment that is not cached", a.Status, a.Header)
	}

	for what, wrong := range map[string]url.Values{
		"a wrong name": {"remove": {"person"}, "confirm": {"ada"}},
		"no choice":    {"confirm": {"ada@example.com"}},
	} {
		if a := b.post(one, one+"/delete", wrong); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("erasing with %s returned %s, want 422", what, a.Status)
		}
	}

	w.pass(operator.Freshness)
	person := url.Values{"remove": {"person"}, "confirm": {"ada@example.com"}}
	b.post(one, one+"/delete", person).asksToConfirm(t, one)
	b.post("/dashboard/confirm", "/dashboard/confirm", url.Values{"password": {good}, "next": {one}}).leadsTo(t, one)
	b.post(one, one+"/delete", person).leadsTo(t, base+"?done=erased")

	if a := b.get(one); a.StatusCode != http.StatusNotFound {
		t.Errorf("the page of an erased subscriber returned %s, want 404", a.Status)
	}
}

// TestSubscriberForwarding shows that the form sets where a subscriber's calls are forwarded, and
// that the page shows this.
func TestSubscriberForwarding(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	sent := url.Values{"email": {"ada@example.com"}, "forward_busy": {"/private/bob"},
		"forward_no_answer": {"0049 30 123456"}, "ring_seconds": {"15"}}
	b.post(one+"/edit", one+"/edit", sent).leadsTo(t, one+"?done=changed")
	if got := between(b.get(one).body, `id="forwarding">`, "</dd>"); !strings.Contains(got, "/private/bob") ||
		!strings.Contains(got, "4930123456") {
		t.Errorf("the page of the subscriber shows %q, want /private/bob and 4930123456", got)
	}
	s, err := w.fabric.Subscribers.Find(t.Context(), w.one.ID, one[strings.LastIndex(one, "/")+1:])
	if err != nil || s.Forwarding.RingSeconds != 15 {
		t.Errorf("after the change the subscriber is %+v, %v", s, err)
	}

	for name, value := range map[string]string{"forward_busy": "bob", "ring_seconds": "soon"} {
		wrong := url.Values{"email": {"ada@example.com"}, name: {value}}
		if a := b.post(one+"/edit", one+"/edit", wrong); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, `id="f-`+name+`-fault"`) {
			t.Errorf("saving the %s %q returned %s, want 422 with an error at the field", name, value, a.Status)
		}
	}
}

// TestSubscriberRecordCalls shows that the form sets whether a subscriber's calls are recorded, and
// says that the law may require consent.
func TestSubscriberRecordCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	id := one[strings.LastIndex(one, "/")+1:]
	if a := b.get(one + "/edit"); !strings.Contains(a.body, `value="inherit" selected`) ||
		!strings.Contains(a.body, "must consent to its recording") {
		t.Errorf("the form of a new subscriber: %s", between(a.body, `id="f-record_calls"`, "</div>"))
	}

	sent := url.Values{"email": {"ada@example.com"}, "first_name": {"Ada"}, "record_calls": {"on"}}
	b.post(one+"/edit", one+"/edit", sent).leadsTo(t, one+"?done=changed")
	s, err := w.fabric.Subscribers.Find(t.Context(), w.one.ID, id)
	if err != nil || s.RecordCalls != fabric.RecordOn || s.FirstName != "Ada" {
		t.Errorf("after the change the subscriber is %+v, %v", s, err)
	}
	if got := between(b.get(one).body, `id="record-calls">`, "</dd>"); !strings.Contains(got, "On") {
		t.Errorf("the page of the subscriber shows %q, want On", got)
	}

	sent.Set("record_calls", "sometimes")
	if a := b.post(one+"/edit", one+"/edit", sent); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-record_calls-fault"`) {
		t.Errorf("saving an unknown setting returned %s, want 422 with an error at the field", a.Status)
	}
}

// TestGeneratedPassword shows that the server generates a password on request, and shows it only
// in its response. The form states the rule for passwords, and focuses the field that is wrong.
func TestGeneratedPassword(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/subscribers"
	form := b.get(base + "/new").body
	if !strings.Contains(form, "8 to 72 characters that are hard to guess") {
		t.Errorf("the form does not state the rule for passwords: %s", between(form, "<form id", "</form>"))
	}

	weak := b.post(base+"/new", base, url.Values{"email": {"ada@example.com"}, "password": {"short"}})
	if field := between(weak.body, `<input id="f-password"`, ">"); !strings.Contains(field, " autofocus") ||
		strings.Contains(between(weak.body, `<input id="f-email"`, ">"), "autofocus") {
		t.Errorf("a weak password returned %s, and its field is %s", weak.Status, field)
	}

	both := url.Values{"email": {"ada@example.com"}, "password": {good}, "generate": {"yes"}}
	if a := b.post(base+"/new", base, both); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, `id="f-password-fault"`) {
		t.Errorf("a password in addition to a generated one returned %s, want 422 with an error at the field",
			a.Status)
	}

	both.Del("password")
	created := b.post(base+"/new", base, both)
	logIn := func(secret string) error {
		_, err := w.idp.Logins.LogIn(t.Context(), w.one.ID, "ada@example.com", secret, idp.Visitor{})
		return err
	}
	first := created.find(t, shownSecret)
	if err := logIn(first); err != nil {
		t.Fatalf("with the generated password %q: %v, want a login", first, err)
	}
	one := created.find(t, `id="edit" href="([^"]+)/edit"`)
	if strings.Contains(b.get(one).body, first) {
		t.Error("the page shows the password again")
	}

	second := b.post(one+"/edit", one+"/edit", both).find(t, shownSecret)
	if err := logIn(second); err != nil || first == second || logIn(first) == nil {
		t.Errorf("after a new password %q instead of %q: %v", second, first, err)
	}
}
