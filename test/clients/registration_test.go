package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestRegistration shows that openid-client and oauth4webapi register themselves and complete a login.
func TestRegistration(t *testing.T) { register(t, "registration.mjs") }

// TestRegistrationFAPI is like TestRegistration, but for clients that choose the profile fapi2.
func TestRegistrationFAPI(t *testing.T) { register(t, "registration-fapi.mjs") }

// register runs a script that registers clients in a new project.
func register(t *testing.T, script string) {
	t.Helper()
	harness.OneBackend(t)
	p := harness.Shared(t).NewProject(t)
	p.CLI(t, "", "project", "update", p.ID, "--client-registration", "token")
	made := p.CLI(t, "", "client-registration", "token", "create", "--project", p.ID)
	sub, b := p.NewSubscriber(t), p.Browser()
	visit := func(url string) string { return harness.RedirectURI + "?" + b.SignIn(t, url, sub).Encode() }
	runNode(t, script, map[string]string{
		"issuer":       p.Issuer(),
		"token":        made["token"].(string),
		"redirect_uri": harness.RedirectURI,
		"sub":          sub.ID,
		"email":        sub.Email,
	}, visit)
}
