package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

// consents holds ada's consents for three apps, and bob's consent for the first app. Ada has two grants
// for the first app and one for the second, all in the same login.
type consents struct {
	*store.Store
	project  fabric.Project
	ada, bob fabric.Subscriber
	apps     []string
	login    idp.Login
	grants   []string
	now      time.Time
}

func newConsents(t *testing.T, c store.Config) consents {
	t.Helper()
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	ada, addressOfAda := subscriber(p, "ada@example.com", "", "ada")
	bob, addressOfBob := subscriber(p, "bob@example.com", "", "bob")
	now := time.Now().Truncate(time.Microsecond).UTC()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(rows.CreateSubscriber(ctx, ada, addressOfAda))
	check(rows.CreateSubscriber(ctx, bob, addressOfBob))

	var apps []string
	for range 3 {
		app := idp.Client{ID: newID(), ProjectID: p.ID, Name: "Dialer", Created: now}
		apps = append(apps, app.ID)
		check(rows.CreateClient(ctx, app))
		check(rows.AddConsent(ctx, ada.ID, app.ID, []string{"openid", "Voice"}, now))
	}
	check(rows.AddConsent(ctx, bob.ID, apps[0], []string{"openid"}, now))

	login := idp.Login{
		ID:           newID(),
		ProjectID:    p.ID,
		SubscriberID: ada.ID,
		AuthTime:     now,
		Expires:      now.Add(time.Hour),
	}
	check(rows.CreateLogin(ctx, login, ""))

	var grants []string
	for _, app := range []string{apps[0], apps[0], apps[1]} {
		g := idp.Grant{
			ID:           newID(),
			ProjectID:    p.ID,
			ClientID:     app,
			SubscriberID: ada.ID,
			SessionID:    login.ID,
			Created:      now,
			IdleUntil:    now.Add(time.Hour),
			Expires:      now.Add(time.Hour),
		}
		grants = append(grants, g.ID)
		check(rows.RedeemCode(ctx, idp.RedeemedCode{
			Hash:     newID(),
			GrantID:  g.ID,
			ClientID: app,
			Rights:   []string{"openid"},
			Expires:  now,
		}, g))
	}
	return consents{
		Store:   rows,
		project: p,
		ada:     ada,
		bob:     bob,
		apps:    apps,
		login:   login,
		grants:  grants,
		now:     now,
	}
}

// revoke revokes a consent and the grants that are based on it.
func (c consents) revoke(subscriberID, clientID string) error {
	end := func(id string) revocation.Revocation {
		return revocation.Revocation{
			Kind:    revocation.Grant,
			ID:      "of " + id,
			Until:   c.now,
			Expires: c.now.Add(time.Hour),
		}
	}
	return c.RevokeConsent(context.Background(), subscriberID, clientID, c.now, end)
}

func TestListConsents(t *testing.T) { store.EachDatabase(t, testListConsents) }

func testListConsents(t *testing.T, config store.Config) {
	ctx := t.Context()
	c := newConsents(t, config)
	found, err := c.ListConsents(ctx, c.project.ID, c.ada.ID, page.Query{Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 2 {
		t.Fatalf("ListConsents = %+v, want the first two apps", found.Items)
	}
	if found.Next != c.apps[2] {
		t.Errorf("the next page of ListConsents begins with %q, want the third app, %s", found.Next, c.apps[2])
	}
	first, second := found.Items[0], found.Items[1]
	if first.ClientName != "Dialer" {
		t.Errorf("the name of the first app is %q, want Dialer", first.ClientName)
	}
	if len(second.Scope) != 2 {
		t.Errorf("the scopes of the second consent are %q, want two", second.Scope)
	}
	if second.Updated != c.now {
		t.Errorf("the second consent was updated at %v, want %v", second.Updated, c.now)
	}

	none, err := c.ListConsents(ctx, newID(), c.ada.ID, page.Query{Size: 2})
	if err != nil || len(none.Items) != 0 {
		t.Errorf("ListConsents of another project = %+v, %v, want none", none.Items, err)
	}
}

func TestRevokeConsent(t *testing.T) { store.EachDatabase(t, testRevokeConsent) }

// testRevokeConsent shows that revoking a consent ends the client's grants and makes its unredeemed
// codes invalid, and that it has no other effect.
func testRevokeConsent(t *testing.T, config store.Config) {
	ctx := t.Context()
	c := newConsents(t, config)
	apps := c.apps
	if err := c.revoke(c.ada.ID, apps[0]); err != nil {
		t.Fatal(err)
	}

	for i, want := range []bool{true, true, false} {
		grant, err := c.FindGrant(ctx, c.grants[i])
		if err != nil {
			t.Fatal(err)
		}
		if revoked := !grant.Revoked.IsZero(); revoked != want {
			t.Errorf("after the first consent was revoked, grant %d is revoked: %v, want %v", i, revoked, want)
		}
	}

	revoked, _, err := c.RevocationsSince(ctx, 0)
	if err != nil || len(revoked) != 2 {
		t.Fatalf("revocations = %+v, %v, want two", revoked, err)
	}
	for i, r := range revoked {
		if want := "of " + c.grants[i]; r.ID != want {
			t.Errorf("the revocation %d is %q, want %q", i, r.ID, want)
		}
	}
	if err := c.revoke(c.ada.ID, apps[0]); !errors.Is(err, problem.NotFound) {
		t.Errorf("revoking again = %v, want not found", err)
	}

	if _, err := c.FindConsent(ctx, c.bob.ID, apps[0]); err != nil {
		t.Errorf("bob's consent: %v", err)
	}
	if err := c.revoke(c.ada.ID, apps[1]); err != nil {
		t.Errorf("revoking with a grant: %v", err)
	}
	if err := c.revoke(c.ada.ID, apps[2]); err != nil {
		t.Errorf("revoking without a grant: %v", err)
	}

	g := idp.Grant{
		ID:           newID(),
		ProjectID:    c.project.ID,
		ClientID:     apps[1],
		SubscriberID: c.ada.ID,
		SessionID:    c.login.ID,
	}
	code := idp.RedeemedCode{
		Hash:     newID(),
		GrantID:  g.ID,
		ClientID: apps[1],
		Rights:   []string{"openid"},
	}
	if err := c.RedeemCode(ctx, code, g); !errors.Is(err, problem.NotFound) {
		t.Errorf("redeeming a code from before the revocation = %v, want not found", err)
	}

	if err := c.AddConsent(ctx, c.ada.ID, apps[1], []string{"openid"}, c.now); err != nil {
		t.Fatal(err)
	}

	wider := code
	wider.Hash = newID()
	wider.Rights = []string{"openid", "Voice"}
	if err := c.RedeemCode(ctx, wider, g); !errors.Is(err, problem.NotFound) {
		t.Errorf("redeeming an earlier code with more rights than the new consent = %v, want not found", err)
	}
}
