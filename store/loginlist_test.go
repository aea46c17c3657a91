package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
)

func TestListLogins(t *testing.T) { store.EachDatabase(t, testListLogins) }

func testListLogins(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	sub, address := subscriber(p, "ada@example.com", "", "ada")
	if err := rows.CreateSubscriber(ctx, sub, address); err != nil {
		t.Fatal(err)
	}
	app := idp.Client{ID: newID(), ProjectID: p.ID, Name: "Dialer", Created: time.Now()}
	if err := rows.CreateClient(ctx, app); err != nil {
		t.Fatal(err)
	}

	now := time.Now().Truncate(time.Microsecond).UTC()
	var sids []string
	for number := range 5 { // each login has as many grants as its number
		l := idp.Login{
			ID:           newID(),
			ProjectID:    p.ID,
			SubscriberID: sub.ID,
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

		for range number {
			g := idp.Grant{
				ID:           newID(),
				ProjectID:    p.ID,
				ClientID:     app.ID,
				SubscriberID: sub.ID,
				SessionID:    l.ID,
				Scope:        []string{"openid", "Voice"},
				Created:      now,
				IdleUntil:    now.Add(time.Minute),
				Expires:      now.Add(time.Hour),
			}
			code := idp.RedeemedCode{Hash: newID(), GrantID: g.ID, ClientID: app.ID, Expires: now}
			if err := rows.RedeemCode(ctx, code, g); err != nil {
				t.Fatal(err)
			}
		}
	}

	var listed []fabric.Login
	for q := (page.Query{Size: 2}); ; {
		found, err := rows.ListLogins(ctx, p.ID, sub.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Items) == 0 || len(found.Items) > 2 {
			t.Fatalf("ListLogins(%+v) = %+v, want one or two logins", q, found.Items)
		}
		listed = append(listed, found.Items...)
		if found.Next == "" {
			break
		}
		q.From = found.Next
	}
	if len(listed) != len(sids) {
		t.Fatalf("the pages have %d logins, want %d", len(listed), len(sids))
	}
	grant := fabric.Grant{
		ClientID:   app.ID,
		ClientName: "Dialer",
		Scope:      []string{"openid", "Voice"},
		Created:    now,
		Expires:    now.Add(time.Minute),
	}
	for number := range sids {
		got := listed[len(sids)-1-number] // the newest login is first
		if got.ID != sids[number] {
			t.Errorf("login %d is %s, want %s", number, got.ID, sids[number])
		}
		if got.UserAgent != "Firefox" {
			t.Errorf("the user agent of login %d is %q, want Firefox", number, got.UserAgent)
		}
		if len(got.AMR) != 2 {
			t.Errorf("the methods of login %d are %q, want two", number, got.AMR)
		}
		if !got.Ended.IsZero() {
			t.Errorf("the end of login %d is %v, want none", number, got.Ended)
		}
		if len(got.Grants) != number {
			t.Errorf("login %d has %d grants, want %d", number, len(got.Grants), number)
		}
		for _, g := range got.Grants {
			if diff := cmp.Diff(grant, g); diff != "" {
				t.Errorf("a grant of login %d (-want +got):\n%s", number, diff)
			}
		}
	}

	elsewhere, err := rows.ListLogins(ctx, newID(), sub.ID, page.Query{Size: 2})
	if err != nil || len(elsewhere.Items) != 0 {
		t.Errorf("ListLogins of another project = %+v, %v, want no logins", elsewhere.Items, err)
	}
}
