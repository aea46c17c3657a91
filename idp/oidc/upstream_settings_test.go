package oidc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
)

// TestUpstreamSettings shows which settings an upstream provider may not have, and that the stored secret
// of a provider is sealed.
func TestUpstreamSettings(t *testing.T) {
	f := federate(t, nil)
	ctx := context.Background()
	opened, err := f.idp.Upstreams.OpenSecret(f.u)
	must(t, err)
	if opened == "" {
		t.Error("the provider has no secret, want one")
	}
	if strings.Contains(f.u.Secret, opened) {
		t.Error("the stored secret is not sealed")
	}

	for _, issuer := range []string{"https://id.example/a//b", "https://id.example/../a", "https://id.example//a"} {
		change := idp.UpstreamInput{Issuer: &issuer, Secret: &opened}
		_, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, change)
		wantProblem(t, "the issuer "+issuer, err, "issuer")
	}

	for param, change := range map[string]idp.UpstreamInput{
		"name":          {Name: new(" ")},
		"issuer":        {Issuer: new("http://id.example/")},
		"client_id":     {ClientID: new("")},
		"client_secret": {Secret: new("ä")},
		"scopes":        {Scopes: &[]string{"email"}},
		"claims":        {Claims: &map[string]string{"password": "x"}},
	} {
		_, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, change)
		wantProblem(t, "an invalid "+param, err, param)
	}

	sameName := idp.UpstreamInput{Name: &f.u.Name, Issuer: &f.u.Issuer, ClientID: new("x")}
	_, err = f.idp.Upstreams.Create(ctx, f.project.ID, sameName)
	wantProblem(t, "the same name", err, "name")

	must(t, f.idp.Upstreams.Delete(ctx, f.project.ID, f.u.ID))
	left, err := f.idp.Upstreams.List(ctx, f.project.ID, page.Query{Size: 10})
	must(t, err)
	if len(left.Items) != 0 {
		t.Errorf("after deleting the provider, the list is %v, want an empty list", left.Items)
	}
}

// TestUpstreamSecretStays shows that a stored secret is never sent to a new issuer. A change of the
// issuer must either include the secret again or remove it.
func TestUpstreamSecretStays(t *testing.T) {
	f, other := federate(t, nil), newForger(t)
	ctx := context.Background()

	_, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &other.url})
	wantProblem(t, "a new issuer without the secret", err, "client_secret")
	unchanged, err := f.idp.Upstreams.Find(ctx, f.project.ID, f.u.ID)
	must(t, err)
	if unchanged.Issuer != f.u.Issuer {
		t.Errorf("after a refused change, the issuer is %q, want %q", unchanged.Issuer, f.u.Issuer)
	}

	sameIssuer := idp.UpstreamInput{Issuer: &f.u.Issuer}
	_, err = f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, sameIssuer)
	must(t, err)

	withoutSecret := idp.UpstreamInput{Issuer: &other.url, Secret: new("")}
	changed, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, withoutSecret)
	must(t, err)
	if changed.Secret != "" {
		t.Error("the secret was not removed")
	}
}
