package clients

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestAccountForms shows that text typed on the account page survives the end of the login, but
// another subscriber does not see it. Once the subscriber has saved something, unsaved text is
// dropped.
func TestAccountForms(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	ada, bob := p.NewSubscriber(t), p.NewSubscriber(t)
	b := ownTab(t)
	account := s.AuthURL + "/account?project=" + p.ID
	b.do(goTo(account))
	b.fill("login-submit", "username", ada.Email, "password", ada.Password)
	b.arrive("/account")

	b.typeInto("display-name", "Countess")
	endLogin(b, p, ada)
	b.fill("login-submit", "username", bob.Email, "password", bob.Password)
	b.arrive("/account")
	if name := eval[string](b, "document.getElementById('display-name').value"); name == "Countess" {
		t.Error("another subscriber sees the typed text")
	}

	endLogin(b, p, bob)
	b.fill("login-submit", "username", ada.Email, "password", ada.Password)
	b.arrive("/account")
	b.until("the name after the login", "document.getElementById('display-name')?.value === 'Countess'")
	b.leave("document.getElementById('profile-submit').click()")
	b.until("the saved name", "document.getElementById('account-notice')")
	b.typeInto("display-name", "Nobody")
	b.do(goTo(account + "&done=profile"))
	b.until("the saved name again", "document.getElementById('display-name')?.value === 'Countess'")

	// A download does not leave the page, so its form can be sent again.
	if sent := eval[int](b, `(() => {
		let sent = 0;
		const button = document.getElementById("data-download");
		button.form.addEventListener("submit", (event) => {
			sent += event.defaultPrevented ? 0 : 1;
			event.preventDefault();
		});
		for (let i = 0; i < 2; i++) button.click();
		return sent;
	})()`); sent != 2 {
		t.Errorf("two clicks on the download button sent %d forms, want 2", sent)
	}
}

// endLogin revokes the subscriber's logins, and reloads the account page until it asks to sign in
// again.
func endLogin(b tab, p *harness.Project, sub harness.Subscriber) {
	b.Helper()
	p.Command(b, "", "subscriber", "revoke", sub.ID)
	harness.Eventually(b, time.Minute, "the end of the login", func() error {
		b.do(goTo(p.AuthURL + "/account?project=" + p.ID))
		if !eval[bool](b, "document.getElementById('username') !== null") {
			return errors.New("the account page is still open")
		}
		return nil
	})
}
