package attack

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// newOpen returns a project in which anybody can register.
func newOpen(t *testing.T, env ...string) mailed {
	t.Helper()
	m := newMailed(t, env...)
	m.Command(t, "", "project", "update", m.ID, "--registration", "open")
	return m
}

// register requests an account during a login.
func (m mailed) register(t *testing.T, b *harness.Browser, email, password string) harness.Page {
	t.Helper()
	page := b.Open(t, m.spa.NewFlow(loginScope).With("prompt", "create").URL())
	return b.Submit(t, page, "register-submit",
		map[string]string{"username": email, "new-password": password, "first-name": "Grace", "last-name": "Hopper"})
}

const chosen = "granite-otter-nine"

// TestRegister shows that an account is created only when the form behind the link in the email is
// posted. The app then gets its code in the browser that started the registration.
func TestRegister(t *testing.T) {
	m := newOpen(t)
	b := m.Browser()
	login := b.Open(t, m.spa.NewFlow(loginScope).URL())
	if !login.Has("login-register") {
		t.Error("the login page has no link to registration")
	}

	b.Submit(t, b.Open(t, "/register?id="+url.QueryEscape(login.URL.Query().Get("id"))), "register-submit",
		map[string]string{"username": "grace@example.com", "new-password": "password"}).Want(t, 422)
	if page := m.register(t, b, "Grace@Example.com", chosen); !page.Has("mail-sent") {
		t.Fatalf("requesting an account returned %d %s, want #mail-sent", page.Status, page.Body)
	}

	link := m.link(t, "grace@example.com", 1)
	form := b.Open(t, link) // opening the link does not use it up
	early := m.Browser()
	page := early.Open(t, m.spa.NewFlow(loginScope).URL())
	early.Submit(t, page, "login-submit",
		map[string]string{"username": "grace@example.com", "password": chosen}).Want(t, 422)

	// The browser that requested the account continues to the app. The link does not work a second
	// time.
	answer := b.Submit(t, form, "confirm-submit", nil).Callback(t)
	if answer.Get("code") == "" {
		t.Fatalf("the app received %v, want a code", answer)
	}
	b.Submit(t, form, "confirm-submit", nil).Want(t, 410)

	sub := harness.Subscriber{Email: "grace@example.com", Password: chosen}
	if email, verified := m.says(t, sub); email != sub.Email || !verified {
		t.Errorf("the account has the email %q (verified: %v), want the new email, verified", email, verified)
	}
}

// TestRegisterElsewhere opens the link in a browser that did not request the account. The person
// must choose another password there. Otherwise, an attacker who requests an account with somebody
// else's address would know its password.
func TestRegisterElsewhere(t *testing.T) {
	m := newOpen(t)
	stranger := m.Browser()
	m.register(t, stranger, "grace@example.com", chosen).Want(t, 200)
	link := m.link(t, "grace@example.com", 1)

	b := m.Browser()
	form := b.Open(t, link)
	if form.Has("confirm-submit") || !form.Has("password-submit") {
		t.Fatalf("in another browser, the link does not ask for a new password: %s", form.Body)
	}

	_, token, _ := strings.Cut(link, "?token=")
	m.Post(t, "/welcome", harness.Form(url.Values{"token": {token}})).Want(t, 422)
	done := b.Submit(t, form, "password-submit", map[string]string{"new-password": "another-quilted-heron"})
	if !done.Has("account-made") {
		t.Fatalf("choosing a password returned %d %s, want #account-made", done.Status, done.Body)
	}

	// The password typed in the first browser does not work.
	page := stranger.Open(t, m.spa.NewFlow(loginScope).URL())
	stranger.Submit(t, page, "login-submit",
		map[string]string{"username": "grace@example.com", "password": chosen}).Want(t, 422)
	m.spa.SignIn(t, harness.Subscriber{Email: "grace@example.com", Password: "another-quilted-heron"}, loginScope)
}

// requestIn matches the id of an authorization request in a page.
var requestIn = regexp.MustCompile(`id=[A-Z0-9]+`)

// TestRegisterKnown shows that a request for an account gets the same response whether or not the
// address already has an account. Only the email to this address reveals the difference.
func TestRegisterKnown(t *testing.T) {
	m := newOpen(t)
	known, disabled := m.NewSubscriber(t), m.NewSubscriber(t)
	m.Command(t, "", "subscriber", "update", disabled.ID, "--disabled")

	want := ""
	for _, email := range []string{known.Email, "nobody@example.com", disabled.Email} {
		page := m.register(t, m.Browser(), email, chosen)
		if got := fmt.Sprint(page.Status, requestIn.ReplaceAllString(plain(page.Answer, email), "id=ID")); want == "" {
			want = got
		} else if got != want {
			t.Errorf("the response for %q differs:\n%s\n%s", email, got, want)
		}
	}

	if mail := m.about(t, known.Email, "already have"); mail.Link() != "" {
		t.Errorf("the owner of an existing account got the link %s, want no link to create an account", mail.Link())
	}
	m.link(t, "nobody@example.com", 1)
	if got := m.subjects(t, disabled.Email); len(got) != 0 {
		t.Errorf("a disabled subscriber got the email %q", got)
	}
	m.spa.SignIn(t, known, loginScope)

	// Two links were sent to one address. The first creates the account, and the second is
	// refused.
	m.register(t, m.Browser(), "twice@example.com", chosen)
	m.register(t, m.Browser(), "twice@example.com", chosen)
	first, second := m.link(t, "twice@example.com", 1), m.link(t, "twice@example.com", 2)
	b := m.Browser()
	b.Submit(t, b.Open(t, first), "password-submit", map[string]string{"new-password": chosen}).Want(t, 200)
	b.Submit(t, b.Open(t, second), "password-submit", map[string]string{"new-password": chosen}).Want(t, 409)
}

// TestRegisterClosed shows that nobody can create an account in a project whose registration is
// off. The test tries the page, prompt=create, and a link that was sent while registration was
// open.
func TestRegisterClosed(t *testing.T) {
	m := newMailed(t)
	prompts := func() []string {
		var doc struct {
			Prompts []string `json:"prompt_values_supported"`
		}
		m.Get(t, "/.well-known/openid-configuration").Want(t, 200).Read(t, &doc)
		return doc.Prompts
	}

	b := m.Browser()
	login := b.Open(t, m.spa.NewFlow(loginScope).URL())
	if login.Has("login-register") || slices.Contains(prompts(), "create") {
		t.Error("registration is off, but the server offers it")
	}

	id := login.URL.Query().Get("id")
	b.Open(t, "/register?id="+url.QueryEscape(id)).WantErrorPage(t, 404)
	if answer := b.Open(t, m.spa.NewFlow(loginScope).With("prompt", "create").URL()).Callback(
		t); answer.Get("error") != "invalid_request" {
		t.Errorf("prompt=create returned %v, want invalid_request", answer)
	}

	// Open registration, and close it again before the link is used.
	m.Command(t, "", "project", "update", m.ID, "--registration", "open")
	harness.WithinASecond(t, "prompt=create in discovery", func() error {
		if !slices.Contains(prompts(), "create") {
			return fmt.Errorf("discovery has the prompts %q, want create among them", prompts())
		}
		return nil
	})

	m.register(t, b, "grace@example.com", chosen).Want(t, 200)
	link := m.link(t, "grace@example.com", 1)
	form := b.Open(t, link)
	m.Command(t, "", "project", "update", m.ID, "--registration", "off")
	harness.WithinASecond(t, "the link to expire", func() error {
		if page := b.Submit(t, form, "confirm-submit", nil); page.Status != 410 {
			return fmt.Errorf("posting the form behind the link returned %d, want 410", page.Status)
		}
		return nil
	})
}

// TestRegisterFlood shows that registrations are limited per network, and their emails per address.
func TestRegisterFlood(t *testing.T) {
	m := newOpen(t, "SELVAGE_LIMITS__REGISTER_PER_NETWORK=5", "SELVAGE_LIMITS__MAIL_PER_ADDRESS=2")
	for range 4 {
		m.register(t, m.Browser(), "grace@example.com", chosen).Want(t, 200)
	}

	if got := m.subjects(t, "grace@example.com"); len(got) != 2 {
		t.Errorf("one address got %q, want two emails", got)
	}

	m.register(t, m.Browser(), "edsger@example.com", chosen).Want(t, 200)
	m.register(t, m.Browser(), "barbara@example.com", chosen).Want(t, 429)
}
