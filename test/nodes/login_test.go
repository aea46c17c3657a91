package nodes

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestLoginAcrossNodes sends each step of a login to the node that did not handle the previous
// step.
func TestLoginAcrossNodes(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	for _, kind := range []string{"fabric", "jwt"} {
		t.Run(kind, func(t *testing.T) {
			c := p.NewClient(t, "web", "--access-token", kind)
			sub := p.NewSubscriber(t)
			tokens, b := c.SignIn(t, sub, loginScope)
			for i := range 6 {
				for _, node := range n.Each {
					node.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(t, 200)
				}
				used := tokens.RefreshToken
				c.Refresh(t, used).Want(t, 200).Read(t, &tokens)
				if tokens.RefreshToken == used {
					t.Fatalf("refresh %d returned the old token", i)
				}
			}

			// The browser is signed in at both nodes, so it gets a code without a page.
			for range n.Each {
				if _, err := c.NewFlow(loginScope).QuickCode(b.Cookies()); err != nil {
					t.Errorf("the browser is not signed in at both nodes: %v", err)
				}
			}
		})
	}
}

// TestAtOnce sends requests that may succeed only once to both nodes, many times and concurrently.
func TestAtOnce(t *testing.T) {
	n := two(t)
	for name, ask := range map[string]func(harness.T, *harness.Project){
		"redemption":     harness.RedeemAtOnce,
		"refresh":        harness.RefreshAtOnce,
		"fabric refresh": harness.RefreshFabricAtOnce,
		"reference":      harness.ReferAtOnce,
	} {
		t.Run(name, func(t *testing.T) { ask(t, n.NewProject(t)) })
	}
}

// TestNodeDies kills one of two nodes. The other node must know everything that the killed node
// acknowledged.
func TestNodeDies(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	c := p.NewClient(t, "web", "--first-party", "--access-token", "fabric")
	tokens, b := c.SignIn(t, p.NewSubscriber(t), loginScope)
	f := c.NewFlow(loginScope)
	code, err := f.QuickCode(b.Cookies())
	if err != nil {
		t.Fatal(err)
	}

	n.Each[0].Kill()
	n.HTTP = n.Each[1].HTTP
	if _, err := f.QuickRedeem(code); err != nil {
		t.Errorf("redeeming a code after the node was killed: %v", err)
	}
	c.Refresh(t, tokens.RefreshToken).Want(t, 200)
	n.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Want(t, 200)
}

// TestDeviceElsewhere signs a device in, and sends each step to the node that did not handle the
// previous step.
func TestDeviceElsewhere(t *testing.T) {
	n := two(t)
	p := n.NewProject(t)
	c := p.NewClient(t, "native", "--grant", "device_code,refresh_token")
	sub, b := p.NewSubscriber(t), n.Browser()
	for _, answer := range []string{"consent-allow", "consent-deny"} {
		begun := c.Post(t, "/oauth/device_authorization",
			c.Authenticated(url.Values{"scope": {loginScope}})...).Want(t, 200).Object(t)
		poll := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
			"device_code": {fmt.Sprint(begun["device_code"])}}
		began := time.Now()
		c.Token(t, poll).WantError(t, 400, "authorization_pending")
		c.WantSlowDown(t, poll, began)

		page := b.Submit(t, b.Open(t, "/device"), "device-submit",
			map[string]string{"user-code": fmt.Sprint(begun["user_code"])})
		if page.Has("username") {
			page = b.Submit(t, page, "login-submit",
				map[string]string{"username": sub.Email, "password": sub.Password})
		}
		if !page.Has("device-warning") {
			t.Fatalf("the browser is at %s with %d %s, want the confirmation page of the device", page.URL.Path,
				page.Status, page.Body)
		}

		b.Submit(t, page, answer, nil).Want(t, 200)
		if answer == "consent-deny" {
			c.Token(t, poll).WantError(t, 400, "access_denied")
			continue
		}

		var tokens harness.Tokens
		c.Token(t, poll).Want(t, 200).Read(t, &tokens)
		for _, node := range n.Each {
			node.Get(t, "/oauth/userinfo", harness.Bearer(tokens.AccessToken)).Want(t, 200)
		}
		c.Refresh(t, tokens.RefreshToken).Want(t, 200)
	}
}
