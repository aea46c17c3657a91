package attack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestP01Timing compares how long an unknown e-mail and a wrong password take. A
// difference that is there shows each time; one of a busy machine does not.
func TestP01Timing(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)
	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())
	var differences []string
	for range 5 {
		wrong, unknown := failedLogins(t, b, page, sub)
		if diff := (wrong - unknown).Abs(); diff <= wrong/4 {
			return
		}
		differences = append(differences, fmt.Sprintf("a wrong password takes %v, an unknown e-mail %v", wrong, unknown))
	}
	t.Errorf("each time: %s", strings.Join(differences, "; "))
}

// failedLogins gives the least times that two kinds of failed logins take, by turns:
// those that nothing else on the machine has made longer.
func failedLogins(t *testing.T, b *harness.Browser, page harness.Page, sub harness.Subscriber) (wrong, unknown time.Duration) {
	t.Helper()
	const tries = 15
	took := map[bool][]time.Duration{}
	for i := range 2 * tries {
		known := i%2 == 0
		email := sub.Email
		if !known {
			email = fmt.Sprintf("nobody%d@example.com", i)
		}
		began := time.Now()
		page = b.Submit(t, page, "login-submit", map[string]string{"username": email, "password": "wrong"})
		took[known] = append(took[known], time.Since(began))
	}
	return slices.Min(took[true]), slices.Min(took[false])
}

// TestP02OneAnswer fails a login in every way: nothing tells them apart.
func TestP02OneAnswer(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	known, disabled := p.NewSubscriber(t), p.NewSubscriber(t)
	p.Command(t, "", "subscriber", "update", disabled.ID, "--disabled")
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(map[string]string{"reference": "passwordless@example.com"})).Want(t, 200)
	logins := []harness.Subscriber{
		{Email: known.Email, Password: "wrong"}, {Email: "nobody@example.com", Password: "wrong"},
		{Email: disabled.Email, Password: disabled.Password}, {Email: "passwordless@example.com", Password: "wrong"},
		{Email: "no-address", Password: "wrong"}, {Email: "", Password: "wrong"}, {Email: known.Email, Password: strings.Repeat("x", 8<<10)},
	}
	var want string
	for _, l := range logins {
		b := c.Browser()
		page := b.Open(t, c.NewFlow("openid").URL())
		page = b.Submit(t, page, "login-submit", map[string]string{"username": l.Email, "password": l.Password})
		id := page.URL.Query().Get("id")
		got := fmt.Sprint(page.Status, len(page.Header.Values("Set-Cookie")), plain(page.Answer, `value="`+l.Email+`"`, requestOf(page), id))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("a login as %q differs from the others:\n%s\n%s", l.Email, got, want)
		}
		b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
	}
}

// requestOf gives the value of the login form's hidden field id.
func requestOf(p harness.Page) string {
	_, after, found := strings.Cut(string(p.Body), `name="id" value="`)
	id, _, _ := strings.Cut(after, `"`)
	if !found || id == "" {
		return "no such field"
	}
	return id
}

// TestP10NoPassword signs in as a subscriber who has no password, or as whom a
// pattern might match.
func TestP10NoPassword(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)
	const email = "ada@example.com"
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(map[string]string{"reference": email})).Want(t, 200)
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(map[string]string{"reference": email, "password": ""})).Want(t, 200)
	for _, bad := range []any{nil, 0, false, "short", strings.Repeat("x", 73), []string{"long-enough"}} {
		p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(), harness.JSON(map[string]any{"reference": email, "password": bad})).Want(t, 200, 422)
	}
	var logins []harness.Subscriber
	for _, pattern := range []string{"%", "*", "' OR 1=1--", "person_@example.com", sub.Email + "\u200b"} {
		logins = append(logins, harness.Subscriber{Email: pattern, Password: sub.Password})
	}
	for _, password := range []string{"", "null", "0", "false", "short", "[]"} {
		logins = append(logins, harness.Subscriber{Email: email, Password: password})
	}
	for _, l := range logins {
		b := c.Browser()
		page := b.Submit(t, b.Open(t, c.NewFlow("openid").URL()), "login-submit", map[string]string{"username": l.Email, "password": l.Password})
		if page.Left != nil || page.Has("consent-allow") || !page.Has("login-submit") {
			t.Errorf("%q with the password %q = %d, want the login page again", l.Email, l.Password, page.Status)
		}
	}
	c.SignIn(t, harness.Subscriber{Email: strings.ToUpper(sub.Email), Password: sub.Password}, loginScope)
}
