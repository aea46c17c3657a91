package attack

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// account signs a subscriber in with a new browser, and opens the account page there.
func (m mailed) account(t *testing.T, sub harness.Subscriber) (*harness.Browser, harness.Page) {
	t.Helper()
	b := m.Browser()
	login := b.Open(t, "/account?project="+m.ID)
	page := b.Submit(t, login, "login-submit", map[string]string{"username": sub.Email, "password": sub.Password})
	if page.Want(t, 200); !page.Has("account-page") {
		t.Fatalf("the login led to %s, want the account page", page.Body)
	}
	return b, page
}

// keeper returns the credentials of a key with the scope Management.
func (m mailed) keeper(t *testing.T) harness.Option {
	t.Helper()
	key := m.CLI(t, "", "key", "create", "--project", m.ID, "--scope", "Management")
	return harness.Basic(m.ID, key["key"].(string))
}

// says signs a subscriber in, and returns the email claims from userinfo.
func (m mailed) says(t *testing.T, sub harness.Subscriber) (email string, verified bool) {
	t.Helper()
	tokens, _ := m.spa.SignIn(t, sub, "openid email")
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	m.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(t, 200).Read(t, &claims)
	return claims.Email, claims.Verified
}

// TestMailVerification shows that an address is verified only when the form behind the link in the
// email is posted.
func TestMailVerification(t *testing.T) {
	m := newMailed(t)
	sub := m.NewSubscriber(t)
	b, page := m.account(t, sub)
	if page = b.Submit(t, page, "address-verify", nil); !page.Has("account-notice") {
		t.Fatalf("requesting a link returned %d %s, want #account-notice", page.Status, page.Body)
	}

	// A mail scanner also opens links. Opening a link must not verify anything.
	link := m.link(t, sub.Email, 1)
	form := m.Browser().Open(t, link)
	if _, verified := m.says(t, sub); verified {
		t.Error("opening the link verified the address")
	}

	// The link works once. A verified address cannot be verified again.
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 200)
	if email, verified := m.says(t, sub); !verified || email != sub.Email {
		t.Errorf("after the link was used, the email is %q (verified: %v), want %q, verified", email,
			verified, sub.Email)
	}
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 410)
	if page = b.Open(t, "/account?project="+m.ID); page.Has("address-verify") {
		t.Error("the account page offers to verify a verified address")
	}
	if _, err := m.TryCommand("subscriber", "verify", sub.ID); err == nil {
		t.Error("a subscriber with a verified address got another link")
	}

	// A second request replaces the first link.
	other := m.NewSubscriber(t)
	m.Post(t, "/api/fabric/resources/subscribers/"+other.ID+"/verification", m.keeper(t)).Want(t, 202)
	m.link(t, other.Email, 1)
	m.Command(t, "", "subscriber", "verify", other.ID)
	second := m.link(t, other.Email, 2)
	links := 0
	for _, mail := range m.inbox.To(other.Email) {
		if m.Browser().Open(t, mail.Link()).Status == 200 {
			links++
		}
	}
	if links != 1 || m.Browser().Open(t, second).Status != 200 {
		t.Errorf("%d verification links are valid, want only the newest", links)
	}

	// Disabling a subscriber ends its links permanently. Once it is enabled again, it can get new
	// links.
	form = m.Browser().Open(t, second)
	m.Command(t, "", "subscriber", "update", other.ID, "--disabled")
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 410)
	m.Command(t, "", "subscriber", "update", other.ID, "--disabled=false")
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 410)

	m.Command(t, "", "subscriber", "verify", other.ID)
	form = m.Browser().Open(t, m.link(t, other.Email, 3))
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 200)
}

// TestMailChangeAddress shows that an account gets a new email address only when the link sent to
// that address is used. The previous address gets a notice. The page does not reveal which
// addresses have an account.
func TestMailChangeAddress(t *testing.T) {
	m := newMailed(t)
	sub, taken := m.NewSubscriber(t), m.NewSubscriber(t)
	fresh := "moved-" + sub.Email
	b, _ := m.account(t, sub)

	ask := func(email string) harness.Page {
		t.Helper()
		return b.Submit(t, b.Open(t, "/account?project="+m.ID), "address-submit",
			map[string]string{"new-address": email})
	}

	// A taken address gets the same response as a free one. Its owner gets a notice without a link.
	ask("not an address").Want(t, 422)
	free, used := ask(strings.ToUpper(fresh)), ask(taken.Email)
	if free.Status != 200 || plain(free.Answer) != plain(used.Answer) {
		t.Errorf("a taken address returned %d, and a free one %d, want the same page", used.Status,
			free.Status)
	}
	if got := m.about(t, taken.Email, "was entered"); got.Link() != "" {
		t.Errorf("the owner of the address got the link %s, want no link", got.Link())
	}

	link := m.link(t, fresh, 1)
	if email, _ := m.says(t, sub); email != sub.Email {
		t.Errorf("before the link was used, the address is %q, want the old one", email)
	}

	// The token is valid only for its own purpose, and only once.
	form := m.Browser().Open(t, link)
	_, token, _ := strings.Cut(link, "?token=")
	for _, other := range []string{"/verify", "/reset", "/invite"} {
		m.Post(t, other, harness.Form(url.Values{"token": {token}, "password": {"granite-otter-nine"}})).Want(t, 410)
	}
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 200)
	m.Browser().Submit(t, form, "confirm-submit", nil).Want(t, 410)

	if notice := m.about(t, sub.Email, "address"); !strings.Contains(notice.Text, fresh) || notice.Link() != "" {
		t.Errorf("the previous address got this email, want the new address in it and no link:\n%s",
			notice.Text)
	}

	old := sub
	sub.Email = fresh
	if email, verified := m.says(t, sub); email != fresh || !verified {
		t.Errorf("after the link was used, the email is %q (verified: %v), want %q, verified", email,
			verified, fresh)
	}

	// The old address no longer signs in.
	wrong := m.Browser()
	login := wrong.Open(t, m.spa.NewFlow(loginScope).URL())
	wrong.Submit(t, login, "login-submit",
		map[string]string{"username": old.Email, "password": old.Password}).Want(t, 422)

	// A link is invalid if another account has taken the address, or if the password changed
	// after the request.
	ask("again-"+fresh).Want(t, 200)
	link = m.link(t, "again-"+fresh, 1)
	m.Command(t, "", "subscriber", "create", "--project", m.ID, "--email", "again-"+fresh)
	m.Browser().Submit(t, m.Browser().Open(t, link), "confirm-submit", nil).Want(t, 409)
	m.Command(t, "another-quilted-heron\n", "subscriber", "update", sub.ID, "--password-stdin")
	m.Browser().Open(t, link).WantErrorPage(t, 410)
}

// TestMailInvitationAgain shows that a second invitation over the API replaces the first link, and
// that keys without Management cannot invite.
func TestMailInvitationAgain(t *testing.T) {
	m := newMailed(t)
	sub := m.CLI(t, "", "subscriber", "create", "--project", m.ID, "--email", "grace@example.com")
	invite := "/api/fabric/resources/subscribers/" + sub["id"].(string) + "/invitation"
	keeper := m.keeper(t)

	m.Post(t, invite, keeper).Want(t, 202)
	first := m.link(t, "grace@example.com", 1)
	m.Post(t, invite, keeper, harness.JSON(map[string]string{"inviter": "Ada"})).Want(t, 202)
	second := m.link(t, "grace@example.com", 2)
	m.Browser().Open(t, first).WantErrorPage(t, 410)

	b := m.Browser()
	b.Submit(t, b.Open(t, second), "password-submit",
		map[string]string{"new-password": "granite-otter-nine"}).Want(t, 200)

	// A key with Management in the same project can invite only people without a password.
	m.Post(t, invite, keeper).Want(t, 422)
	m.Post(t, invite, m.Basic()).Want(t, 401)
	other := mailed{Project: m.NewProject(t)}
	m.Post(t, invite, other.keeper(t)).Want(t, 404)
}
