package dashboard_test

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
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
	created := b.post(base+"/new", base, url.Values{
		"email":      {"Ada@Example.com"},
		"first_name": {"Ada"},
		"last_name":  {"Lovelace"},
		"password":   {good},
	})
	page, ok := strings.CutSuffix(created.Header.Get("Location"), "?done=subscriberadded")
	if !ok {
		t.Fatalf("%s, want a redirect to the new subscriber\n%s", created, created.body)
	}
	return page
}

// TestSubscribers shows that the form creates and changes subscribers, and shows errors next to
// their fields, such as an email that is already in use.
func TestSubscribers(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/subscribers"
	ctx := t.Context()

	invalid := b.post(base+"/new", base,
		url.Values{"email": {"nobody"}, "first_name": {"Ada"}, "password": {"short"}})
	invalid.wantRefused(t, `id="f-email-fault"`, `id="f-password-fault"`, `value="Ada"`)
	invalid.wantNoText(t, "short\"")

	one := w.ada(t, b)
	b.post(one+"/edit", one+"/edit", url.Values{
		"email":      {"ada@example.com"},
		"first_name": {"Ada"},
		"last_name":  {"King"},
		"country":    {"GB"},
	}).leadsTo(t, one+"?done=changed")
	s, err := w.fabric.Subscribers.Find(ctx, w.one.ID, path.Base(one))
	must(t, err)
	for _, tt := range []struct{ name, got, want string }{
		{"first name", s.FirstName, "Ada"},
		{"last name", s.LastName, "King"},
		{"country", s.Country, "GB"},
		{"setting for recording", string(s.RecordCalls), string(fabric.RecordInherit)}, // not in the form
	} {
		if tt.got != tt.want {
			t.Errorf("after the change, the %s is %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if s.PasswordHash == "" {
		t.Error("after the change, the subscriber has no password")
	}

	// The email must be unique, and a subscriber with a password is not invited.
	email := "bob@example.com"
	_, err = w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	b.post(one+"/edit", one+"/edit", url.Values{"email": {email}}).wantRefused(t, `id="f-email-fault"`)
	b.post(one, one+"/invite", nil).wantRefused(t, "Subscribers with a password are not invited")
}

// TestCommandsToCopy shows that the commands to copy quote a reference that contains quotes.
func TestCommandsToCopy(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	tokens, err := w.fabric.Tokens.IssueSubscriber(
		t.Context(), fabric.Issuer{ProjectID: w.one.ID}, fabric.SubscriberTokenInput{Reference: "x'; id #"})
	must(t, err)

	b.get("/dashboard/projects/"+w.one.ID+"/subscribers/"+tokens.SubscriberID).wantText(t,
		template.HTMLEscapeString(`--reference='x'\''; id #'`),
		template.HTMLEscapeString(`-d '{"reference":"x'\''; id #"}'`))
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
		t.Errorf("after unlocking: %v, want a login", err)
	}
	b.get(one).wantText(t, "Firefox on Linux",
		"/tokens/make/subscriber?reference=ada%40example.com",
		"None. They sign in with their password alone")
}

// TestExportAndErase shows that a subscriber's data can be exported, and that erasing it requires
// the email and a recent confirmation.
func TestExportAndErase(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, base := w.ada(t, b), "/dashboard/projects/"+w.one.ID+"/subscribers"
	export := b.get(one + "/export")
	export.wantStatus(t, http.StatusOK)
	export.wantText(t, "Lovelace")
	export.wantHeader(t, "Cache-Control", "no-store")
	if got := export.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") {
		t.Errorf("the export is sent as %q, want an attachment", got)
	}

	wrongName := url.Values{"remove": {"person"}, "confirm": {"ada"}}
	b.post(one, one+"/delete", wrongName).wantRefused(t)
	noChoice := url.Values{"confirm": {"ada@example.com"}}
	b.post(one, one+"/delete", noChoice).wantRefused(t)

	w.pass(operator.Freshness)
	person := url.Values{"remove": {"person"}, "confirm": {"ada@example.com"}}
	b.post(one, one+"/delete", person).asksToConfirm(t, one)
	b.post("/dashboard/confirm", "/dashboard/confirm", url.Values{"password": {good}, "next": {one}}).leadsTo(t, one)
	b.post(one, one+"/delete", person).leadsTo(t, base+"?done=erased")

	b.get(one).wantStatus(t, http.StatusNotFound)
}

// TestSubscriberForwarding shows that the form sets where a subscriber's calls are forwarded, and
// that the page shows this.
func TestSubscriberForwarding(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	b.post(one+"/edit", one+"/edit", url.Values{
		"email":             {"ada@example.com"},
		"forward_busy":      {"/private/bob"},
		"forward_no_answer": {"0049 30 123456"},
		"ring_seconds":      {"15"},
	}).leadsTo(t, one+"?done=changed")
	forwarding := between(b.get(one).body, `id="forwarding">`, "</dd>")
	for _, want := range []string{"/private/bob", "4930123456"} {
		if !strings.Contains(forwarding, want) {
			t.Errorf("the page of the subscriber shows %q, want it to contain %s", forwarding, want)
		}
	}
	s, err := w.fabric.Subscribers.Find(t.Context(), w.one.ID, path.Base(one))
	must(t, err)
	if got := s.Forwarding.RingSeconds; got != 15 {
		t.Errorf("the subscriber's calls ring for %d seconds, want 15", got)
	}

	for name, value := range map[string]string{"forward_busy": "bob", "ring_seconds": "soon"} {
		wrong := url.Values{"email": {"ada@example.com"}, name: {value}}
		b.post(one+"/edit", one+"/edit", wrong).wantRefused(t, `id="f-`+name+`-fault"`)
	}
}

// TestSubscriberRecordCalls shows that the form sets whether a subscriber's calls are recorded, and
// says that the law may require consent.
func TestSubscriberRecordCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	b.get(one+"/edit").wantText(t, `value="inherit" selected`, "must consent to its recording")

	sent := url.Values{"email": {"ada@example.com"}, "first_name": {"Ada"}, "record_calls": {"on"}}
	b.post(one+"/edit", one+"/edit", sent).leadsTo(t, one+"?done=changed")
	s, err := w.fabric.Subscribers.Find(t.Context(), w.one.ID, path.Base(one))
	must(t, err)
	if s.RecordCalls != fabric.RecordOn {
		t.Errorf("after the change, record_calls is %q, want %q", s.RecordCalls, fabric.RecordOn)
	}
	if s.FirstName != "Ada" {
		t.Errorf("after the change, the first name is %q, want Ada", s.FirstName)
	}
	if got := between(b.get(one).body, `id="record-calls">`, "</dd>"); !strings.Contains(got, "On") {
		t.Errorf("the page of the subscriber shows %q, want On", got)
	}

	sent.Set("record_calls", "sometimes")
	b.post(one+"/edit", one+"/edit", sent).wantRefused(t, `id="f-record_calls-fault"`)
}

// TestGeneratedPassword shows that the server generates a password on request, and shows it only
// in the response. The form states the rule for passwords, and focuses the field that is wrong.
func TestGeneratedPassword(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/subscribers"
	b.get(base+"/new").wantText(t, "8 to 72 characters that are hard to guess")

	weak := b.post(base+"/new", base, url.Values{"email": {"ada@example.com"}, "password": {"short"}})
	if field := between(weak.body, `<input id="f-password"`, ">"); !strings.Contains(field, " autofocus") {
		t.Errorf("after a weak password, its field is %s, want it focused", field)
	}
	if field := between(weak.body, `<input id="f-email"`, ">"); strings.Contains(field, "autofocus") {
		t.Errorf("after a weak password, the field of the email is %s, want no focus on it", field)
	}

	both := url.Values{"email": {"ada@example.com"}, "password": {good}, "generate": {"yes"}}
	b.post(base+"/new", base, both).wantRefused(t, `id="f-password-fault"`)

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
	b.get(one).wantNoText(t, first) // it was shown once

	second := b.post(one+"/edit", one+"/edit", both).find(t, shownSecret)
	if first == second {
		t.Errorf("the second generated password is also %q, want another one", second)
	}
	if err := logIn(second); err != nil {
		t.Errorf("with the second generated password %q: %v, want a login", second, err)
	}
	if logIn(first) == nil {
		t.Errorf("the first generated password %q is still accepted", first)
	}
}
