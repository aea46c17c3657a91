package clients

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// An upstream is another OpenID provider. signIn takes the steps on its pages.
type upstream struct {
	issuer, clientID, secret string
	signIn                   func(b tab, email string)
}

// startProvider starts node-oidc-provider, with the server s as its client.
func startProvider(t *testing.T, s *harness.Server) upstream {
	t.Helper()
	needNode(t)
	up := upstream{
		issuer:   fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort(t)),
		clientID: "selvage",
		secret:   rand.Text(),
	}
	text, err := json.Marshal(map[string]string{
		"issuer":        up.issuer,
		"client_secret": up.secret,
		"redirect_uri":  s.Issuer() + "login/upstream/callback/" + strings.TrimPrefix(up.issuer, "http://"),
		"logout_uri":    s.Issuer() + "logout/upstream",
	})
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command("node", "provider.mjs")
	cmd.Env = append(os.Environ(), "SETTINGS="+string(text))
	var faults bytes.Buffer
	cmd.Stderr = &faults
	in, out := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("node-oidc-provider: %v\n%s", err, faults.String())
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("node-oidc-provider did not start: %q, %v", line, err)
	}

	up.signIn = func(b tab, email string) {
		b.Helper()
		b.until("the provider's login page", "document.querySelector('input[name=login]')")
		b.do(write("input[name=login]", email), write("input[name=password]", "any"),
			chromedp.Click(chromedp.CSS("button[type=submit]")))
		b.until("the provider's consent page", "document.querySelector('input[name=prompt][value=consent]')")
		b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
	}
	return up
}

// TestUpstreamInChromium shows that people can sign in through node-oidc-provider in a browser. A
// person without an account gets one. A person with an account must first link it. Signing out also
// signs the person out at the provider.
func TestUpstreamInChromium(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_EGRESS__ALLOW=127.0.0.1"}})
	p := s.NewProject(t)
	up := startProvider(t, s)
	p.CLI(t, "", "project", "update", p.ID, "--registration", "open")
	p.CLI(t, up.secret, "upstream", "create", "--project", p.ID, "--name", "Node ID", "--issuer", up.issuer,
		"--client-id", up.clientID, "--client-secret-stdin", "--sign-up", "--logout")
	origin := app(t, p)

	const email = "grace@example.com"
	b := newTab(t)
	made := b.signInWith(up, origin, email, "")
	if made.User == nil || made.User.Profile.Sub == "" {
		t.Fatalf("after the login, the app has %+v, want a user", made)
	}
	b.wantInfo(200, email)

	b.leave("(delete window.outcome, signOut())")
	b.until("the provider's logout page", "document.querySelector('button[name=logout]')")
	b.do(chromedp.Click(chromedp.CSS("button[name=logout]")))
	if o := b.arrived(origin); o.State != "bye" || o.User != nil {
		t.Errorf("after the logout, the app has %+v, want no user and the state bye", o)
	}
	if again := b.signInWith(up, origin, email, ""); again.User == nil ||
		again.User.Profile.Sub != made.User.Profile.Sub {
		t.Errorf("after the second login, the app has %+v, want the subscriber %s", again,
			made.User.Profile.Sub)
	}

	sub, other := p.NewSubscriber(t), newTab(t)
	if linked := other.signInWith(up, origin, sub.Email, sub.Password); linked.User == nil ||
		linked.User.Profile.Sub != sub.ID {
		t.Errorf("after linking, the app has %+v, want the subscriber %s", linked, sub.ID)
	}
}

// signInWith signs in to the app with an account at the provider. If a subscriber with the same
// email exists, password is the subscriber's password, and the two accounts are linked.
func (b tab) signInWith(up upstream, origin, email, password string) outcome {
	b.Helper()
	b.do(goTo(origin))
	b.arrived(origin)
	b.leave("(delete window.outcome, manager.signinRedirect())")
	b.until("the provider's button", "document.querySelector('#upstream-0')")
	b.do(chromedp.Click(chromedp.CSS("#upstream-0")))
	up.signIn(b, email)

	if password != "" {
		b.until("the login page of the subscriber", "document.querySelector('#login-link')")
		b.do(write("#password", password), chromedp.Click(chromedp.CSS("#login-submit")))
		b.until("the question whether to link the accounts", "document.querySelector('#link-yes')")
		b.do(chromedp.Click(chromedp.CSS("#link-yes")))
	}
	b.until("an answer to the login", fmt.Sprintf(
		"location.origin === %q || document.querySelector('#consent-allow')", origin))
	if eval[bool](b, "Boolean(document.querySelector('#consent-allow'))") {
		b.do(chromedp.Click(chromedp.CSS("#consent-allow")))
	}
	return b.arrived(origin)
}
