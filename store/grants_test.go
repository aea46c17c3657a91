package store

import (
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
)

func TestRedeemCodeOnce(t *testing.T) { EachDatabase(t, testRedeemCodeOnce) }

func testRedeemCodeOnce(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	won, lost := crowd(t, func() error {
		grant := g
		grant.ID = newID()
		code := idp.RedeemedCode{
			Hash:     "h",
			GrantID:  grant.ID,
			ClientID: "c",
			Expires:  time.Now().Add(time.Hour),
		}
		return s.RedeemCode(t.Context(), code, grant)
	})
	if won != 1 {
		t.Errorf("%d redemptions of one code succeeded, want 1", won)
	}
	if lost != 49 {
		t.Errorf("%d redemptions of one code failed, want 49", lost)
	}

	first, err := s.FindRedeemedCode(t.Context(), "h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindGrant(t.Context(), first.GrantID); err != nil {
		t.Errorf("FindGrant of the redeemed code's grant = %v", err)
	}
}

func TestRotateGrantOnce(t *testing.T) { EachDatabase(t, testRotateGrantOnce) }

func testRotateGrantOnce(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	storeGrant(t, s, &g)
	next := func(hash string) idp.Grant {
		return idp.Grant{
			ID:          g.ID,
			RefreshHash: hash,
			Seed:        "sealed " + hash,
			Rotated:     time.UnixMicro(5).UTC(),
			IdleUntil:   time.UnixMicro(7).UTC(),
		}
	}

	won, lost := crowd(t, func() error { return s.RotateGrant(t.Context(), next(newID()), "first") })
	if won != 1 {
		t.Errorf("%d rotations of one token succeeded, want 1", won)
	}
	if lost != 49 {
		t.Errorf("%d rotations of one token failed, want 49", lost)
	}

	got, err := s.FindGrant(t.Context(), g.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.RefreshHash == "first" {
		t.Error("after a rotation the grant has its first token")
	}
	want := next(got.RefreshHash)
	if got.Seed != want.Seed {
		t.Errorf("after a rotation the seed is %q, want %q", got.Seed, want.Seed)
	}
	if got.Rotated != want.Rotated {
		t.Errorf("after a rotation the time of the rotation is %v, want %v", got.Rotated, want.Rotated)
	}
	if got.IdleUntil != want.IdleUntil {
		t.Errorf("after a rotation the grant may idle until %v, want %v", got.IdleUntil, want.IdleUntil)
	}
}

// storeGrant sets a new id in the grant, and stores the grant as the grant of the redeemed code h.
func storeGrant(t *testing.T, s *Store, g *idp.Grant) {
	t.Helper()
	g.ID = newID()
	code := idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c", Expires: time.Now().Add(time.Hour)}
	if err := s.RedeemCode(t.Context(), code, *g); err != nil {
		t.Fatal(err)
	}
}
