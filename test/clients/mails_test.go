package clients

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/inbox"
)

// waitLink waits for the nth email to an address, counting only emails with a link, and returns
// this link.
func waitLink(t *testing.T, in *inbox.Server, to string, n int) string {
	t.Helper()
	var links []string
	harness.Eventually(t, patience, fmt.Sprintf("link %d in an email to %s", n, to), func() error {
		links = nil
		for _, m := range in.To(to) {
			if l := m.Link(); l != "" {
				links = append(links, l)
			}
		}
		if len(links) < n {
			return fmt.Errorf("there are only %d emails with a link", len(links))
		}
		return nil
	})
	return links[n-1]
}

// TestMailsInChromium shows that people can follow the links in emails, which are sent over TLS
// with a password. One person has forgotten the password and sets a new one. An invited person sets
// a first password. A third person registers and confirms the email address.
func TestMailsInChromium(t *testing.T) {
	harness.OneBackend(t)
	in := inbox.Start(t, inbox.Config{TLS: true, Auth: true})
	n := harness.StartNodes(t, nil, harness.Config{Env: []string{
		"SELVAGE_MAIL__URL=smtp://" + url.QueryEscape(inbox.User) + "@localhost:" +
			in.Port() + "?tls=starttls", "SELVAGE_MAIL__PASSWORD=" + inbox.Password,
		"SELVAGE_MAIL__CA=" + in.CAFile, "SELVAGE_MAIL__FROM=no-reply@acme.example",
	}})

	p := n.NewProject(t)
	sub := p.NewSubscriber(t)
	p.Command(t, "", "project", "update", p.ID, "--registration", "open")
	b := newTab(t)
	account := p.Issuer() + "account?project=" + p.ID

	there := func(what string) {
		t.Helper()
		b.until(what, "document.getElementById("+quoted(what)+")")
	}
	signOut := func() {
		t.Helper()
		b.do(goTo(p.Issuer() + "logout"))
		b.click("logout-confirm")
		there("logged-out")
	}

	// A forgotten password is reset.
	b.do(goTo(account))
	b.click("login-forgot")
	there("forgot-submit")
	b.typeInto("username", strings.ToUpper(sub.Email))
	b.click("forgot-submit")
	there("mail-sent")
	b.do(goTo(waitLink(t, in, sub.Email, 1)))

	old := sub.Password
	sub.Password = "a loom of their own"
	b.typeInto("new-password", sub.Password)
	b.picture("mail-reset")
	b.click("password-submit")
	there("password-set")
	b.do(goTo(account))
	b.password(harness.Subscriber{Email: sub.Email, Password: old})
	there("login-error")
	b.password(sub)
	there("account-page")
	signOut()

	// An invited person sets a password.
	grace := harness.Subscriber{Email: "grace@example.com", Password: "granite-otter-nine"}
	p.Command(t, "", "subscriber", "invite", "--project", p.ID, "--email", grace.Email, "--inviter", "Ada Lovelace")
	b.do(goTo(waitLink(t, in, grace.Email, 1)))
	b.typeInto("new-password", grace.Password)
	b.picture("mail-invitation")
	b.click("password-submit")
	there("password-set")
	b.click("notice-go")
	there("account-page")
	signOut()

	// A person registers.
	alan := harness.Subscriber{Email: "alan@example.com", Password: "another-quilted-heron"}
	b.do(goTo(account))
	b.click("login-register")
	there("register-submit")
	b.typeInto("username", alan.Email)
	b.typeInto("new-password", alan.Password)
	b.typeInto("first-name", "Alan")
	b.typeInto("last-name", "Turing")
	b.picture("mail-register")
	b.click("register-submit")
	there("mail-sent")
	b.do(goTo(waitLink(t, in, alan.Email, 1)))
	b.picture("mail-welcome")
	b.click("confirm-submit")
	there("account-page")
	b.until("the name", "document.body.innerText.includes('Alan Turing')")

	for _, m := range in.Mails() {
		if !m.Secure || m.User != inbox.User || strings.Contains(m.Raw, sub.Password) {
			t.Errorf("the email %q was sent without TLS (%v), by the user %q, or with a password in it",
				m.Subject,
				!m.Secure, m.User)
		}
	}
	if got := len(in.To(alan.Email)); got != 1 {
		t.Errorf("a person who registered got %d emails, want 1", got)
	}
}
