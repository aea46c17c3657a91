package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestConsentNamesFabricAccess shows that the consent page mentions fabric access. A fabric token
// reveals more than the scope openid allows, so people must know this before they agree. A client
// with JWT access tokens learns no more than the scope allows.
func TestConsentNamesFabricAccess(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	for format, reveals := range map[string]bool{"fabric": true, "jwt": false} {
		c := p.NewClient(t, "spa", "--access-token", format)
		f, b := c.NewFlow("openid"), c.Browser()
		page := b.Submit(t, b.Open(t, f.URL()), "login-submit",
			map[string]string{"username": sub.Email, "password": sub.Password})
		if !page.Has("consent-allow") {
			t.Errorf("with %s tokens, the page has no #consent-allow: %s", format, page.Body)
		}
		if got := strings.Contains(string(page.Body), "Call as you"); got != reveals {
			t.Errorf("with %s tokens, the page says that the app can call as the subscriber: %v, want %v\n%s",
				format, got, reveals, page.Body)
		}

		var tokens harness.Tokens
		f.Redeem(t, b.Submit(t, page, "consent-allow", nil).Callback(t).Get("code")).Want(t, 200).Read(t, &tokens)
		info := p.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Want(t, 200, 401)
		if got := strings.Contains(string(info.Body), sub.Email); got != reveals {
			t.Errorf("the %s token with the scope openid reveals the email: %v, want %v", format, got,
				reveals)
		}
	}
}

// TestFabricAccessNeedsConsent shows that a client gets a fabric token only after the subscriber
// has agreed that the client may act as the subscriber. Two clients try to reuse another consent:
// the subscriber has agreed to an ID token for the first client, and to JWT access tokens for the
// second.
func TestFabricAccessNeedsConsent(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	signIn := func(c *harness.Client, f *harness.Flow) *harness.Browser {
		b := c.Browser()
		b.SignIn(t, f.URL(), sub)
		return b
	}

	// A consent to an ID token does not cover a fabric token.
	both := p.NewClient(t, "spa", "--access-token", "fabric", "--response-type", "code,id_token")
	b := signIn(both, both.NewFlow("openid").With("response_type", "id_token").With("nonce", "n").
		Without("code_challenge", "code_challenge_method"))
	b.Open(t, both.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "consent_required")

	// A consent given while tokens were JWTs does not cover fabric tokens.
	c := p.NewClient(t, "spa", "--access-token", "jwt")
	b = c.Browser()
	tokens := c.SignInWith(t, b, sub, loginScope)
	c.Refresh(t, tokens.RefreshToken).Want(t, 200).Read(t, &tokens)

	p.Command(t, "", "client", "update", c.ID, "--access-token", "fabric")
	harness.WithinASecond(t, "a code without a new consent", func() error {
		got := b.Open(t, c.NewFlow(loginScope).With("prompt", "none").URL()).Callback(t)
		if got.Get("error") != "consent_required" {
			return fmt.Errorf("the client got %v, want consent_required", got)
		}
		return nil
	})
	c.Refresh(t, tokens.RefreshToken).WantError(t, 400, "invalid_grant")

	// After the consent, the account page lists the app's access. If the access is revoked, the app
	// must ask again.
	page := b.Open(t, c.NewFlow(loginScope).URL())
	if !strings.Contains(string(page.Body), "Call as you") {
		t.Fatalf("the page does not ask whether the app may call as the subscriber: %s", page.Body)
	}
	b.Submit(t, page, "consent-allow", nil).Callback(t)
	b.Open(t, c.NewFlow(loginScope).With("prompt", "none").URL()).Callback(t)
	if apps := string(b.Open(t, p.AuthURL+"/account").Body); !strings.Contains(apps, "Call as you") {
		t.Error("the account page does not show that an app may call as the subscriber")
	}
	p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub.ID+"/consents/"+c.ID, p.Basic()).Want(t, 204)
	b.Open(t, c.NewFlow(loginScope).With("prompt", "none").URL()).WantCallbackError(t, "consent_required")
}
