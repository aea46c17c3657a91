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

// consents holds ada's consents for three apps, and bob's for the first of them. Ada has two grants
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
	ada, a := subscriber(p, "ada@example.com", "", "ada")
	bob, b := subscriber(p, "bob@example.com", "", "bob")
	now := time.Now().Truncate(time.Microsecond).UTC()
	errs := []error{rows.CreateSubscriber(ctx, ada, a), rows.CreateSubscriber(ctx, bob, b)}
	var apps []string
	for range 3 {
		app := idp.Client{ID: newID(), ProjectID: p.ID, Name: "Dialer", Created: now}
		apps = append(apps, app.ID)
		errs = append(errs, rows.CreateClient(ctx, app),
			rows.AddConsent(ctx, ada.ID, app.ID, []string{"openid", "Voice"}, now))
	}

	errs = append(errs, rows.AddConsent(ctx, bob.ID, apps[0], []string{"openid"}, now))
	l := idp.Login{ID: newID(), ProjectID: p.ID, SubscriberID: ada.ID, AuthTime: now, Expires: now.Add(time.Hour)}
	errs = append(errs, rows.CreateLogin(ctx, l, ""))
	var grants []string
	for _, app := range []string{apps[0], apps[0], apps[1]} {
		g := idp.Grant{
			ID:           newID(),
			ProjectID:    p.ID,
			ClientID:     app,
			SubscriberID: ada.ID,
			SessionID:    l.ID,
			Created:      now,
			IdleUntil:    now.Add(time.Hour),
			Expires:      now.Add(time.Hour),
		}
		grants = append(grants, g.ID)
		errs = append(errs, rows.RedeemCode(
			ctx, idp.RedeemedCode{
				Hash:     newID(),
				GrantID:  g.ID,
				ClientID: app,
				Rights:   []string{"openid"},
				Expires:  now,
			}, g))
	}

	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return consents{rows, p, ada, bob, apps, l, grants, now}
}

// revoke revokes a consent and the grants that are based on it.
func (c consents) revoke(subscriberID, clientID string) error {
	return c.RevokeConsent(context.Background(), subscriberID, clientID, c.now,
		func(id string) revocation.Revocation {
			return revocation.Revocation{
				Kind:    revocation.Grant,
				ID:      "of " + id,
				Until:   c.now,
				Expires: c.now.Add(time.Hour),
			}
		})
}

func TestListConsents(t *testing.T) { store.EachDatabase(t, testListConsents) }

func testListConsents(t *testing.T, config store.Config) {
	c, ctx := newConsents(t, config), t.Context()
	found, err := c.ListConsents(ctx, c.project.ID, c.ada.ID, page.Query{Size: 2})
	if err != nil || len(found.Items) != 2 || found.Next != c.apps[2] ||
		found.Items[0].ClientName != "Dialer" || len(found.Items[1].Scope) != 2 || found.Items[1].Updated != c.now {
		t.Errorf("ListConsents = %+v, %v, want the first two apps", found, err)
	}
	if found, err := c.ListConsents(ctx, newID(), c.ada.ID, page.Query{Size: 2}); err != nil ||
		len(found.Items) != 0 {
		t.Errorf("ListConsents of another project = %+v, %v, want none", found, err)
	}
}

func TestRevokeConsent(t *testing.T) { store.EachDatabase(t, testRevokeConsent) }

// testRevokeConsent shows that revoking a consent ends the client's grants and makes its unredeemed
// codes invalid, and that it has no other effect.
func testRevokeConsent(t *testing.T, config store.Config) {
	c, ctx := newConsents(t, config), t.Context()
	apps := c.apps
	if err := c.revoke(c.ada.ID, apps[0]); err != nil {
		t.Fatal(err)
	}

	for i, id := range c.grants {
		if g, err := c.FindGrant(ctx, id); err != nil || g.Revoked.IsZero() != (i == 2) {
			t.Errorf("grant %d after the first consent was revoked: %+v, %v, want only 0 and 1 revoked", i, g, err)
		}
	}

	revoked, _, err := c.RevocationsSince(ctx, 0)
	if err != nil || len(revoked) != 2 || revoked[0].ID != "of "+c.grants[0] || revoked[1].ID != "of "+c.grants[1] {
		t.Errorf("revocations = %+v, %v, want one for each grant", revoked, err)
	}
	if err := c.revoke(c.ada.ID, apps[0]); !errors.Is(err, problem.NotFound) {
		t.Errorf("revoking again = %v, want not found", err)
	}

	if _, err := c.FindConsent(ctx, c.bob.ID, apps[0]); err != nil {
		t.Errorf("bob's consent: %v", err)
	}
	if err := errors.Join(c.revoke(c.ada.ID, apps[1]), c.revoke(c.ada.ID, apps[2])); err != nil {
		t.Errorf("revoking with a grant, and without one: %v", err)
	}

	g := idp.Grant{
		ID:           newID(),
		ProjectID:    c.project.ID,
		ClientID:     apps[1],
		SubscriberID: c.ada.ID,
		SessionID:    c.login.ID,
	}
	if err := c.RedeemCode(ctx, idp.RedeemedCode{
		Hash:     newID(),
		GrantID:  g.ID,
		ClientID: apps[1],
		Rights:   []string{"openid"},
	}, g); !errors.Is(err, problem.NotFound) {
		t.Errorf("a code from before the revocation = %v, want not found", err)
	}

	if err := c.AddConsent(ctx, c.ada.ID, apps[1], []string{"openid"}, c.now); err != nil {
		t.Fatal(err)
	}

	wider := idp.RedeemedCode{Hash: newID(), GrantID: g.ID, ClientID: apps[1], Rights: []string{"openid", "Voice"}}
	if err := c.RedeemCode(ctx, wider, g); !errors.Is(err, problem.NotFound) {
		t.Errorf("an earlier code with more rights than the new consent = %v, want not found", err)
	}
}
