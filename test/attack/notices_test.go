package attack

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestMailNewDevice shows that a login from a new browser sends one notice to the account's owner.
// The first login of an account and a login from a known browser send none.
func TestMailNewDevice(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	signIn := func(b *harness.Browser) {
		t.Helper()
		login := b.Open(t, m.spa.NewFlow(loginScope).With("prompt", "login").URL())
		if told := b.Submit(t, login, "login-submit",
			map[string]string{"username": sub.Email, "password": sub.Password}).Callback(t); told.Get("code") == "" {
			t.Fatalf("the app got %v, want a code", told)
		}
	}

	first, other := m.Browser(), m.Browser()
	signIn(first)
	if got := m.subjects(t, sub.Email); len(got) != 0 {
		t.Errorf("the mails after the first login are %q, want none", got)
	}

	signIn(first)
	signIn(other)
	signIn(other)
	if got := m.subjects(t, sub.Email); len(got) != 1 || !strings.HasPrefix(got[0], "A new sign-in to ") {
		t.Errorf("the mails after logins from another browser are %q, want one", got)
	}

	mail := m.about(t, sub.Email, "new sign-in")
	if !strings.Contains(mail.Text, "When: ") || !strings.Contains(mail.Text, "Device: ") ||
		!strings.Contains(mail.Text, "IP address: 127.0.0.1") || mail.Link() != "" {
		t.Errorf("the mail says:\n%s", mail.Text)
	}

	// A new password makes all devices unknown again.
	m.Command(t, "another-quilted-heron\n", "subscriber", "update", sub.ID, "--password-stdin")
	sub.Password = "another-quilted-heron"
	if mail := m.about(t, sub.Email, "password"); !strings.Contains(mail.Text, "By: the operators of") ||
		strings.Contains(mail.Text, "IP address") {
		t.Errorf("the mail about a password that an operator set says:\n%s", mail.Text)
	}

	signIn(first)
	if got := m.subjects(t, sub.Email); len(got) != 3 {
		t.Errorf("the mails after a new password and a login are %q, want another one about the known device",
			got)
	}
}

// TestMailToOperators shows that an operator who signs in with only a password gets one notice
// without a link. Owners get one notice for each new operator.
func TestMailToOperators(t *testing.T) {
	m := newMailed(t)
	owner := newOperator(t, m.Project, "owner")
	for range 2 {
		b := m.Browser()
		page := b.Submit(t, b.Open(t, "/dashboard"), "login-submit",
			map[string]string{"username": owner, "password": operatorPassword})
		if !page.Has("sign-out") {
			t.Fatalf("%s is not signed in: %d %s", owner, page.Status, page.Body)
		}
	}

	if got := m.subjects(t, owner); len(got) != 1 ||
		!strings.HasPrefix(got[0], "A new sign-in to the dashboard of selvage at ") {
		t.Errorf("the mails after two logins are %q, want one", got)
	}
	if told := m.about(t, owner, "new sign-in"); !strings.Contains(told.Text, "IP address: 127.0.0.1") ||
		told.Link() != "" {
		t.Errorf("the mail says:\n%s", told.Text)
	}

	viewer := newOperator(t, m.Project, "viewer@"+m.ID)
	if told := m.about(t, owner, viewer); !strings.Contains(told.Text, "with the role viewer") ||
		!strings.Contains(told.Text, "By: the operators of") || told.Link() != "" {
		t.Errorf("the mail about a new operator says:\n%s", told.Text)
	}
}
