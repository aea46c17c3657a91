package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
)

func TestListLogins(t *testing.T) { store.EachDatabase(t, testListLogins) }

func testListLogins(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	s, a := subscriber(p, "ada@example.com", "", "ada")
	app := idp.Client{ID: newID(), ProjectID: p.ID, Name: "Dialer", Created: time.Now()}
	if err := errors.Join(rows.CreateSubscriber(ctx, s, a), rows.CreateClient(ctx, app)); err != nil {
		t.Fatal(err)
	}

	now := time.Now().Truncate(time.Microsecond).UTC()
	var sids []string
	for i := range 5 {
		l := idp.Login{
			ID:           newID(),
			ProjectID:    p.ID,
			SubscriberID: s.ID,
			AuthTime:     now,
			AMR:          []string{"pwd", "otp"},
			UserAgent:    "Firefox",
			Address:      "::1",
			Expires:      now.Add(time.Hour),
		}
		sids = append(sids, l.ID)
		if err := rows.CreateLogin(ctx, l, ""); err != nil {
			t.Fatal(err)
		}

		for range i {
			g := idp.Grant{
				ID:           newID(),
				ProjectID:    p.ID,
				ClientID:     app.ID,
				SubscriberID: s.ID,
				SessionID:    l.ID,
				Scope:        []string{"openid", "Voice"},
				Created:      now,
				IdleUntil:    now.Add(time.Minute),
				Expires:      now.Add(time.Hour),
			}
			if err := rows.RedeemCode(ctx,
				idp.RedeemedCode{Hash: newID(), GrantID: g.ID, ClientID: app.ID, Expires: now}, g); err != nil {
				t.Fatal(err)
			}
		}
	}

	q := page.Query{Size: 2}
	for i := 4; i >= 0; q.From = sids[max(i, 0)] {
		found, err := rows.ListLogins(ctx, p.ID, s.ID, q)
		if err != nil || len(found.Items) != min(2, i+1) {
			t.Fatalf("ListLogins(%+v) = %+v, %v, want up to two", q, found, err)
		}

		for _, l := range found.Items {
			if l.ID != sids[i] || len(l.Grants) != i || l.UserAgent != "Firefox" || len(l.AMR) != 2 ||
				!l.Ended.IsZero() {
				t.Errorf("login %d is %+v", i, l)
			}

			if want := (fabric.Grant{
				ClientID:   app.ID,
				ClientName: "Dialer",
				Created:    now,
				Expires:    now.Add(time.Minute),
			}); i > 0 {
				got := l.Grants[0]
				if len(got.Scope) != 2 || got.ClientID != want.ClientID ||
					got.ClientName != want.ClientName || got.Expires != want.Expires || !got.Revoked.IsZero() {
					t.Errorf("a grant of login %d is %+v, want %+v", i, got, want)
				}
			}
			i--
		}
	}

	if found, err := rows.ListLogins(ctx, newID(), s.ID, page.Query{Size: 2}); err != nil || len(found.Items) != 0 {
		t.Errorf("ListLogins of another project = %+v, %v, want none", found, err)
	}
}
