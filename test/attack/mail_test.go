package attack

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/inbox"
)

// A mailed is a project with a first-party client. Its server sends emails to an inbox.
type mailed struct {
	*harness.Project
	inbox *inbox.Server
	spa   *harness.Client
}

func newMailed(t *testing.T, env ...string) mailed {
	t.Helper()
	in := inbox.Start(t, inbox.Config{TLS: true, Auth: true})
	s := harness.StartConfig(t, harness.Config{Env: append([]string{
		"SELVAGE_MAIL__URL=smtp://" + url.QueryEscape(inbox.User) + "@localhost:" +
			in.Port() + "?tls=starttls", "SELVAGE_MAIL__PASSWORD=" + inbox.Password,
		"SELVAGE_MAIL__CA=" + in.CAFile, "SELVAGE_MAIL__FROM=no-reply@acme.example",
	}, env...)})
	p := s.NewProject(t)
	return mailed{Project: p, inbox: in, spa: p.NewClient(t, "spa", "--first-party")}
}

// next waits for the nth email to an address and returns it.
func (m mailed) next(t *testing.T, to string, n int) inbox.Mail {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("mail %d to %s", n, to), func() error {
		if got := len(m.inbox.To(to)); got < n {
			return fmt.Errorf("there are %d mails; the log: %s", got, m.Log())
		}
		return nil
	})
	return m.inbox.To(to)[n-1]
}

// link waits for the nth email to an address, counting only emails with a link, and returns this
// link.
func (m mailed) link(t *testing.T, to string, n int) string {
	t.Helper()
	var links []string
	harness.Eventually(t, time.Minute, fmt.Sprintf("link %d to %s", n, to), func() error {
		links = nil
		for _, mail := range m.inbox.To(to) {
			if l := mail.Link(); l != "" {
				links = append(links, l)
			}
		}
		if len(links) < n {
			return fmt.Errorf("there are %d links; the log: %s", len(links), m.Log())
		}
		return nil
	})
	return links[n-1]
}

// about waits for an email to an address whose subject contains the given words, and returns this
// email.
func (m mailed) about(t *testing.T, to, words string) (found inbox.Mail) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("a mail to %s about %q", to, words), func() error {
		var there []string
		for _, found = range m.inbox.To(to) {
			if strings.Contains(found.Subject, words) {
				return nil
			}
			there = append(there, found.Subject)
		}
		return fmt.Errorf("there are mails about %q; the log: %s", there, m.Log())
	})
	return found
}

// subjects waits until the queue is empty, and returns the subjects of the emails to an address.
func (m mailed) subjects(t *testing.T, to string) (all []string) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the queue to be empty", func() error {
		if pending := m.Command(t, "", "mail", "list", "--state", "pending", "-o", "id"); pending != "" {
			return errors.New("pending mails: " + pending)
		}
		return nil
	})
	for _, mail := range m.inbox.To(to) {
		all = append(all, mail.Subject)
	}
	return all
}

// forgot requests a password reset in a browser, and returns the resulting page.
func (m mailed) forgot(t *testing.T, b *harness.Browser, email string) harness.Page {
	t.Helper()
	login := b.Open(t, m.spa.NewFlow(loginScope).URL())
	id := login.URL.Query().Get("id")
	return b.Submit(t, b.Open(t, "/forgot?id="+url.QueryEscape(id)), "forgot-submit",
		map[string]string{"username": email})
}

// TestMailReset shows that an emailed link sets a new password once. Opening the link does not use
// it up. If the form is posted many times concurrently, one post succeeds. All earlier logins and
// tokens end.
func TestMailReset(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	old, _ := m.spa.SignIn(t, sub, loginScope)

	b := m.Browser()
	page := m.forgot(t, b, strings.ToUpper(sub.Email))
	if !page.Has("mail-sent") {
		t.Fatalf("forgot = %d %s, want #mail-sent", page.Status, page.Body)
	}

	link := m.link(t, sub.Email, 1)
	if !strings.HasPrefix(link, m.Issuer()+"reset?token=") {
		t.Fatalf("the link in the mail is %q, want a link to the issuer's page /reset", link)
	}
	for range 3 { // like a mail scanner, which has no cookies
		m.Browser().Open(t, link).Want(t, 200)
	}
	m.Browser().Submit(t, m.Browser().Open(t, link), "password-submit",
		map[string]string{"new-password": "short"}).Want(t, 422)

	var won atomic.Int64
	var winner atomic.Value
	var all sync.WaitGroup
	_, token, _ := strings.Cut(link, "?token=")
	for i := range 20 {
		all.Go(func() {
			password := "heron-marble-" + strconv.Itoa(i) + "-quilt"
			a, err := m.TryPatiently("POST", "/reset",
				harness.Form(url.Values{"token": {token}, "password": {password}}))
			switch {
			case err != nil:
				t.Error(err)
			case a.Status == 200:
				won.Add(1)
				winner.Store(password)
			case a.Status != 410:
				t.Errorf("POST /reset = %d %s, want 410", a.Status, a.Body)
			}
		})
	}
	all.Wait()

	if won.Load() != 1 {
		t.Fatalf("%d posts of the form succeeded, want 1", won.Load())
	}

	m.Browser().Open(t, link).WantErrorPage(t, 410)

	// The tokens from before the reset are revoked, and the old password no longer works.
	harness.WithinASecond(t, "the refresh token from before the reset to be revoked", func() error {
		a := m.spa.Refresh(t, old.RefreshToken)
		if a.Status == 200 {
			return errors.New("the refresh token is still valid")
		}
		return nil
	})
	harness.WithinASecond(t, "the access token from before the reset to be revoked", func() error {
		if a := m.Get(t, "/oauth/userinfo", harness.Bearer(old.AccessToken)); a.Status != 401 {
			return fmt.Errorf("userinfo = %d, want 401", a.Status)
		}
		return nil
	})
	wrong := m.Browser()
	p := wrong.Open(t, m.spa.NewFlow(loginScope).URL())
	wrong.Submit(t, p, "login-submit", map[string]string{"username": sub.Email,
		"password": sub.Password}).Want(t, 422)
	sub.Password = winner.Load().(string)
	m.spa.SignIn(t, sub, loginScope)

	// The owner gets a notice, without a link.
	if notice := m.about(t, sub.Email, "has changed"); !strings.Contains(notice.Subject, "password") ||
		notice.Link() != "" || !strings.Contains(notice.Text, "IP address: 127.0.0.1") {
		t.Errorf("the owner got %q with the link %q, want a notice without a link:\n%s", notice.Subject,
			notice.Link(), notice.Text)
	}
	if log := m.Log(); strings.Contains(log, token) {
		t.Error("the log contains the token of the link")
	}
}

// TestMailResetGoesOn shows that a login continues after a password reset that was requested during
// it.
func TestMailResetGoesOn(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	b := m.Browser()
	m.forgot(t, b, sub.Email)
	link := m.link(t, sub.Email, 1)

	done := b.Submit(t, b.Open(t, link), "password-submit", map[string]string{"new-password": "granite-otter-nine"})
	done.Want(t, 200)
	login := b.Open(t, done.Attribute(t, "notice-go", "href"))
	answer := b.Submit(t, login, "login-submit",
		map[string]string{"username": sub.Email, "password": "granite-otter-nine"}).Callback(t)
	if answer.Get("code") == "" {
		t.Errorf("the app got %v, want a code", answer)
	}

	// If the link is opened in another browser, the login does not continue, because it belongs to
	// the first browser.
	m.forgot(t, m.Browser(), sub.Email)
	link = m.link(t, sub.Email, 2)
	elsewhere := m.Browser()
	done = elsewhere.Submit(t, elsewhere.Open(t, link), "password-submit",
		map[string]string{"new-password": "granite-otter-ten"})
	if done.Want(t, 200); done.Has("notice-go") {
		t.Error("the login continues in another browser")
	}
}

// TestMailUnknownAddress shows that the response to a request for a reset is the same for every
// address. Only an enabled account with a password gets an email.
func TestMailUnknownAddress(t *testing.T) {
	m := newMailed(t)
	known := m.NewSubscriber(t)
	disabled := m.NewSubscriber(t)
	m.Command(t, "", "subscriber", "update", disabled.ID, "--disabled")

	// This account has no password.
	bare := m.CLI(t, "", "subscriber", "create", "--project", m.ID, "--email", "bare@example.com")
	if bare["email"] != "bare@example.com" {
		t.Fatal(bare)
	}

	idPattern := func(p harness.Page) string { return p.Attribute(t, "notice-go", "href") }
	want := ""
	for _, email := range []string{known.Email, "nobody@example.com", disabled.Email, "bare@example.com",
		"not an address"} {
		page := m.forgot(t, m.Browser(), email)
		page.Want(t, 200)
		got := plain(page.Answer, idPattern(page), email) // the page names the address as it was typed
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("the answer for %q differs from the first one:\n%s\n%s", email, got, want)
		}
		if len(page.Header.Values("Set-Cookie")) != 0 {
			t.Errorf("the answer for %q sets a cookie", email)
		}
	}
	page := m.forgot(t, m.Browser(), "")
	page.Want(t, 200)
	if !page.Has("mail-sent") {
		t.Errorf("the answer without an address is\n%s\nwant the page that says that an email was sent",
			page.Body)
	}

	m.next(t, known.Email, 1)
	harness.Eventually(t, time.Minute, "the queue to be empty", func() error {
		if pending := m.Command(t, "", "mail", "list", "--state", "pending", "-o", "id"); pending != "" {
			return errors.New("pending mails: " + pending)
		}
		return nil
	})
	if all := m.inbox.Mails(); len(all) != 1 {
		t.Errorf("there are %d mails, want only the one to the enabled account with a password: %v", len(all),
			all)
	}
}

// TestMailLinkBound shows that the token of a link is valid only on the page that the link names. A
// new password or a new email address makes the link invalid.
func TestMailLinkBound(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	ask := func(n int) string {
		m.forgot(t, m.Browser(), sub.Email)
		return m.link(t, sub.Email, n)
	}
	link := ask(1)
	_, token, _ := strings.Cut(link, "?token=")

	for _, page := range []string{"/verify", "/invite"} {
		m.Browser().Open(t, page+"?token="+token).WantErrorPage(t, 410)
		m.Post(t, page, harness.Form(url.Values{"token": {token}, "password": {"granite-otter-nine"}})).Want(t, 410)
	}

	for _, bad := range []string{"", token[1:], token + "A", strings.ToLower(token),
		strings.Repeat("A", len(token)), "' OR 1=1--"} {
		m.Post(t, "/reset", harness.Form(url.Values{"token": {bad}, "password": {"granite-otter-nine"}})).Want(t, 410)
	}

	m.Post(t, "/reset", harness.Form(url.Values{"token": {token}, "password": {"granite-otter-nine"}}),
		harness.Header("Origin", "https://evil.example")).Want(t, 403)
	m.Browser().Open(t, link).Want(t, 200)

	m.Command(t, "another-quilted-heron\n", "subscriber", "update", sub.ID, "--password-stdin")
	m.Browser().Open(t, link).WantErrorPage(t, 410)
	link = ask(2)
	m.Command(t, "", "subscriber", "update", sub.ID, "--email", "moved-"+sub.Email)
	m.Browser().Open(t, link).WantErrorPage(t, 410)
}

// TestMailInvitationFactor shows that accepting an invitation does not sign anybody in if the
// project requires a second factor.
func TestMailInvitationFactor(t *testing.T) {
	m := newMailed(t)
	m.Command(t, "", "project", "update", m.ID, "--require-factor")
	m.Command(t, "", "subscriber", "invite", "--project", m.ID, "--email", "hedy@example.com")
	b := m.Browser()
	done := b.Submit(t, b.Open(t, m.next(t, "hedy@example.com", 1).Link()), "password-submit",
		map[string]string{"new-password": "granite-otter-nine"})
	if account := b.Open(t, done.Attribute(t, "notice-account", "href")); !account.Has("login-submit") {
		t.Errorf("after an invitation, the link to the account leads to %s, want the login page",
			account.Body)
	}
}

// TestMailInvitation shows that an invited person chooses a password once and is signed in. People
// who already have a password cannot be invited. The inviter's name cannot inject markup or
// headers.
func TestMailInvitation(t *testing.T) {
	m := newMailed(t)
	m.Command(t, "", "subscriber", "invite", "--project", m.ID, "--email", "Grace@example.com", "--inviter",
		"<b>Ada</b>")
	mail := m.next(t, "grace@example.com", 1)
	if strings.Contains(mail.HTML, "<b>Ada") || !strings.Contains(mail.Text, "<b>Ada</b>") ||
		!strings.HasPrefix(mail.Link(), m.Issuer()+"invite?token=") {
		t.Errorf("the invitation is %q with the link %q, want no markup and a link", mail.HTML, mail.Link())
	}

	b := m.Browser()
	form := b.Open(t, mail.Link())
	if strings.Contains(string(form.Body), "<b>Ada") {
		t.Error("the page contains the inviter's name as markup")
	}

	done := b.Submit(t, form, "password-submit", map[string]string{"new-password": "granite-otter-nine"})
	if account := b.Open(t, done.Attribute(t, "notice-go", "href")); !account.Has("account-page") {
		t.Errorf("after accepting an invitation, the person is not signed in: %s", account.Body)
	}
	another := m.Browser().Open(t, done.Attribute(t, "notice-go", "href"))
	if !another.Has("login-submit") {
		t.Errorf("the invitation signed in another browser: %s", another.Body)
	}

	over := b.Submit(t, form, "password-submit", map[string]string{"new-password": "granite-otter-ten"})
	over.WantErrorPage(t, 410)
	for _, page := range []harness.Page{over, b.Open(t, mail.Link())} {
		if !strings.Contains(string(page.Body), "ask the person who invited you for a new one") ||
			strings.Contains(string(page.Body), "Go back to the app") {
			t.Errorf("the page of an accepted invitation is %s, want advice to ask for a new one", page.Body)
		}
	}

	m.spa.SignIn(t, harness.Subscriber{Email: "grace@example.com", Password: "granite-otter-nine"}, loginScope)
	if _, err := m.TryCommand("subscriber", "invite", "--project", m.ID, "--email", "grace@example.com"); err == nil {
		t.Error("a subscriber with a password was invited")
	}
	if _, err := m.TryCommand("subscriber", "invite", "--project", m.ID, "--email", "eve@example.com",
		"--inviter", "Ada\r\nBcc: eve@example.com"); err == nil {
		t.Error("a name of two lines was accepted for the inviter")
	}
}

// TestMailHost shows that links always begin with the public URL, whatever host a request names.
func TestMailHost(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	b := m.Browser()
	login := b.Open(t, m.spa.NewFlow(loginScope).URL())
	page := b.Open(t, "/forgot?id="+url.QueryEscape(login.URL.Query().Get("id")))
	b.Submit(t, page, "forgot-submit", map[string]string{"username": sub.Email},
		harness.Header("X-Forwarded-Host", "evil.example"),
		harness.Header("Forwarded", "host=evil.example")).Want(t, 200)
	if mail := m.next(t, sub.Email, 1); !strings.HasPrefix(mail.Link(), m.Issuer()) ||
		strings.Contains(mail.Raw, "evil.example") {
		t.Errorf("the link in the mail is %q, want a link to the public URL only",
			mail.Link())
	}
}

// TestMailFlood shows that emails are limited per network, and per address in all its spellings.
func TestMailFlood(t *testing.T) {
	m := newMailed(t, "SELVAGE_LIMITS__MAIL_PER_ADDRESS=2", "SELVAGE_LIMITS__MAIL_PER_NETWORK=8")
	sub := m.NewSubscriber(t)
	spellings := []string{sub.Email, strings.ToUpper(sub.Email), " " + sub.Email, sub.Email, sub.Email}
	for _, email := range spellings {
		m.forgot(t, m.Browser(), email).Want(t, 200)
	}
	m.next(t, sub.Email, 2)

	for range 3 {
		m.forgot(t, m.Browser(), "nobody@example.com").Want(t, 200)
	}
	m.forgot(t, m.Browser(), "somebody@example.com").WantErrorPage(t, 429)
	if got := len(m.inbox.To(sub.Email)); got != 2 {
		t.Errorf("%d mails were sent to one address, want 2", got)
	}
}

// TestMailbox shows that the development mailbox opens only on this machine, under a local host
// name and without a proxy, and only if no mail server is configured.
func TestMailbox(t *testing.T) {
	s := harness.Start(t)
	s.Command(t, "", "mail", "test", "--to", "ada@example.com")
	list := s.Get(t, "/dev/mail").Want(t, 200)
	key := strings.TrimPrefix(harness.Page{Answer: list}.Attribute(t, "mail-0", "href"), "/dev/mail/")

	for _, path := range []string{"/dev/mail", "/dev/mail/" + key, "/dev/mail/" + key + "/html"} {
		s.Get(t, path).Want(t, 200)
		s.Get(t, path, harness.Header("Host", "evil.example")).Want(t, 404)
		s.Get(t, path, harness.Header("Host", "evil.example:8080")).Want(t, 404)
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded",
			"Via", "X-Real-IP", "CF-Connecting-IP"} {
			s.Get(t, path, harness.Header(name, "203.0.113.9")).Want(t, 404)
		}
		s.Get(t, path, func(r *http.Request) {
			r.Header["X-Forwarded-For"] = []string{"", "203.0.113.9"}
		}).Want(t, 404)
	}

	// The link back leads only to the dashboard.
	for back, want := range map[string]bool{"/dashboard/mails": true, "https://evil.example/dashboard/": false,
		"//evil.example": false, "/dashboard/../demo": false, "javascript:alert(1)": false} {
		page := s.Get(t, "/dev/mail?back="+url.QueryEscape(back)).Want(t, 200)
		if got := strings.Contains(string(page.Body), `id="mailbox-back"`); got != want {
			t.Errorf("the mailbox links back to %s: %t, want %t", back, got, want)
		}
	}

	// A trusted proxy does not help, because a forwarded request is never local.
	behind := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_TRUSTED_PROXIES=127.0.0.1,203.0.113.9"}})
	behind.Get(t, "/dev/mail").Want(t, 200)
	for _, way := range []string{"127.0.0.1", "203.0.113.9", "198.51.100.1", "unknown", "198.51.100.1, 127.0.0.1"} {
		behind.Get(t, "/dev/mail", harness.Header("X-Forwarded-For", way)).Want(t, 404)
	}

	html := s.Get(t, "/dev/mail/"+key+"/html").Want(t, 200)
	if csp := html.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none'") {
		t.Errorf("the mail's own page has the policy %q, want a sandbox", csp)
	}

	for _, bad := range []string{"index", "..%2findex", strings.Repeat("A", 43), key[1:]} {
		s.Get(t, "/dev/mail/"+bad).Want(t, 404)
	}

	newMailed(t).Get(t, "/dev/mail").Want(t, 404)
	harness.Start(t, "--listen-tls=off", "--public-url", "https://id.example.org").Get(t, "/dev/mail").Want(t, 404)
}

// TestMailKept shows that emails are stored if there is no mail server. They cannot be retried.
func TestMailKept(t *testing.T) {
	p := harness.Start(t).NewProject(t)
	p.Command(t, "", "subscriber", "invite", "--project", p.ID, "--email", "grace@example.com")
	harness.Eventually(t, time.Minute, "the mail to be stored", func() error {
		if all := p.Command(t, "", "mail", "list", "--state", "kept", "-o", "json"); !strings.Contains(
			all, `"to":"grace@example.com","state":"kept"`) {
			return errors.New(all)
		}
		return nil
	})
	if id := strings.TrimSpace(p.Command(t, "", "mail", "list", "-o", "id")); id != "" {
		if _, err := p.TryCommand("mail", "retry", id); err == nil {
			t.Error("a kept mail can be retried")
		}
	}
}
