package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// TestRegistrationTokenPage shows that an operator can permit registrations, and can create and revoke an
// initial access token. The token is shown only once. Pages say that a client has registered with a token.
func TestRegistrationTokenPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	path := base + "/registration-tokens"
	b.get(path).wantText(t, "There are no initial access tokens yet", "Change the rules")

	rules := base + "/rules/edit"
	b.post(rules, rules, url.Values{"client_registration": {"token"}}).leadsTo(t, base+"/rules?done=changed")
	for _, wrong := range []url.Values{
		{"uses": {"many"}, "expires": {"30d"}},
		{"uses": {"-1"}, "expires": {"30d"}},
		{"expires": {"forever"}},
		{"expires": {""}},
	} {
		b.post(path, path, wrong).wantRefused(t)
	}
	created := b.post(path, path, url.Values{"name": {"partner"}, "uses": {"1"}, "expires": {"90d"}})
	created.wantStatus(t, http.StatusOK)
	secret := created.find(t, `(rt_[0-9a-f]{48})`)

	token, err := w.idp.Registrations.Admit(t.Context(), secret, "192.0.2.1")
	must(t, err)
	c, err := w.idp.Registrations.Register(t.Context(), token,
		idp.ClientMetadata{Name: "<b>Parrot", RedirectURIs: []string{"https://parrot.example/cb"}})
	must(t, err)
	for _, page := range []string{base + "/clients", base + "/clients/" + c.ID} {
		b.get(page).wantText(t, "Registered itself with an initial access token", "&lt;b&gt;Parrot")
	}

	list := b.get(path)
	list.wantText(t, "Used up", "1 of 1")
	list.wantNoText(t, secret)
	b.post(path, path+"/"+token.TokenID+"/revoke", nil).leadsTo(t, path+"?done=tokenrevoked")
	_, err = w.fabric.RegistrationTokens.Authenticate(t.Context(), secret)
	if !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("Authenticate with a revoked token = %v, want unauthenticated", err)
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
	b.post(rules, rules, url.Values{"client_registration": {"open"}}).
		wantText(t, "Another project already has open client registration")
}
