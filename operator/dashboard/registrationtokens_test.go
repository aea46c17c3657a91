package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// TestRegistrationTokenPage shows that an operator can permit registrations and create an initial
// access token. The token is shown once. A client that registers with it is shown with its origin.
// The token can be revoked.
func TestRegistrationTokenPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	path := base + "/registration-tokens"
	empty := b.get(path)
	if empty.StatusCode != http.StatusOK || !strings.Contains(empty.body, "There are no initial access tokens yet") ||
		!strings.Contains(empty.body, "Change the rules") {
		t.Errorf("the page without tokens = %d %s, want a link to the rules", empty.StatusCode, empty.body)
	}

	rules := base + "/rules/edit"
	b.post(rules, rules, url.Values{"client_registration": {"token"}}).leadsTo(t, base+"/rules?done=changed")
	for _, wrong := range []url.Values{{"uses": {"many"}, "expires": {"30d"}}, {"uses": {"-1"}, "expires": {"30d"}},
		{"expires": {"forever"}}, {"expires": {""}}} {
		if a := b.post(path, path, wrong); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("creating a token with %v = %d, want 422", wrong, a.StatusCode)
		}
	}
	created := b.post(path, path, url.Values{"name": {"partner"}, "uses": {"1"}, "expires": {"90d"}})
	secret := regexp.MustCompile(`rt_[0-9a-f]{48}`).FindString(created.body)
	if created.StatusCode != http.StatusOK || secret == "" {
		t.Fatalf("creating = %d %s, want 200 with the token", created.StatusCode, created.body)
	}

	by, err := w.idp.Registrations.Admit(t.Context(), secret, "192.0.2.1")
	must(t, err)
	c, err := w.idp.Registrations.Register(t.Context(), by,
		idp.ClientMetadata{Name: "<b>Parrot", RedirectURIs: []string{"https://parrot.example/cb"}})
	must(t, err)
	for _, page := range []string{base + "/clients", base + "/clients/" + c.ID} {
		if a := b.get(page); !strings.Contains(a.body, "Registered itself with an initial access token") ||
			!strings.Contains(a.body, "&lt;b&gt;Parrot") {
			t.Errorf("%s does not have the origin of the client: %s", page, a.body)
		}
	}

	listed := b.get(path)
	if strings.Contains(listed.body, secret) || !strings.Contains(listed.body, "Used up") ||
		!strings.Contains(listed.body, "1 of 1") {
		t.Errorf("the list of tokens: %s, want a used-up token without its secret", listed.body)
	}
	b.post(path, path+"/"+by.TokenID+"/revoke", nil).leadsTo(t, path+"?done=tokenrevoked")
	_, err = w.fabric.RegistrationTokens.Authenticate(t.Context(), secret)
	if !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("Authenticate after the token was revoked = %v, want unauthenticated", err)
	}
}

// TestOpenRule shows that only one project can be open for client registration, and that the form
// explains this.
func TestOpenRule(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	open := fabric.ClientsOpen
	_, err := w.fabric.Projects.Update(t.Context(), w.one.ID, fabric.ProjectChange{ClientRegistration: &open})
	must(t, err)
	rules := "/dashboard/projects/" + w.two.ID + "/rules/edit"
	a := b.post(rules, rules, url.Values{"client_registration": {"open"}})
	if !strings.Contains(a.body, "Another project already has open client registration") {
		t.Errorf("opening a second project = %d %s, want the reason", a.StatusCode, a.body)
	}
}
