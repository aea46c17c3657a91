package store

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

func TestMarkUsed(t *testing.T) { EachDatabase(t, testMarkUsed) }

// testMarkUsed shows that a value can be used only once. It can be used again only after it has
// expired and a sweep has deleted it.
func testMarkUsed(t *testing.T, c Config) {
	s, _, ahead := grantRows(t, c)
	refusal := errors.New("used before")
	use := func(hash string) idp.Use {
		return idp.Use{Hash: hash, Expires: time.Now().Add(time.Minute), Refusal: refusal}
	}

	var won atomic.Int64
	var marking sync.WaitGroup
	for i := range 50 {
		marking.Go(func() {
			err := s.MarkUsed(t.Context(), use("h"), use(strconv.Itoa(i)))
			switch {
			case err == nil:
				won.Add(1)
			case err != refusal:
				t.Errorf("MarkUsed = %v, want the refusal of the use", err)
			}
		})
	}
	marking.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 50 callers stored a use, want 1", won.Load())
	}

	// The callers that failed have stored nothing.
	stored := 0
	for i := range 50 {
		used, err := s.WasUsed(t.Context(), strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		if used {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("%d other uses are stored, want only the winner's", stored)
	}

	sweep := func() {
		t.Helper()
		hourAgo := time.Now().Add(-time.Hour)
		if err := s.SweepLogins(t.Context(), hourAgo, hourAgo); err != nil {
			t.Fatal(err)
		}
	}

	sweep()
	if err := s.MarkUsed(t.Context(), use("h")); err != refusal {
		t.Errorf("after an early sweep: %v, want the refusal of the use", err)
	}

	wantLive := func(want int) {
		t.Helper()
		live, err := s.LiveUses(t.Context())
		if err != nil || len(live) != want {
			t.Errorf("LiveUses = %v, %v, want %d uses", live, err, want)
		}
	}
	wantLive(2) // h and the other use of its caller

	ahead.Store(int64(2 * time.Minute))
	wantLive(0) // both have expired
	sweep()
	if err := s.MarkUsed(t.Context(), use("h")); err != nil {
		t.Errorf("after a sweep of the expired use: %v, want success", err)
	}
}

func TestRedeemCodeUses(t *testing.T) { EachDatabase(t, testRedeemCodeUses) }

// testRedeemCodeUses shows that the uses of a request and its grant are either stored together or
// not at all.
func testRedeemCodeUses(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	refusal := errors.New("used before")
	redeem := func(code string, hashes ...string) (grantID string, err error) {
		grant := g
		grant.ID = newID()
		redeemed := idp.RedeemedCode{
			Hash:     code,
			ClientID: "c",
			GrantID:  grant.ID,
			Expires:  time.Now().Add(time.Hour),
		}
		for _, hash := range hashes {
			use := idp.Use{Hash: hash, Expires: redeemed.Expires, Refusal: refusal}
			redeemed.Uses = append(redeemed.Uses, use)
		}
		return grant.ID, s.RedeemCode(t.Context(), redeemed, grant)
	}

	var won atomic.Int64
	var redeeming sync.WaitGroup
	for i := range 20 {
		redeeming.Go(func() {
			_, err := redeem(strconv.Itoa(i), "a")
			switch {
			case err == nil:
				won.Add(1)
			case err != refusal:
				t.Errorf("RedeemCode = %v, want the refusal of the use", err)
			}
		})
	}
	redeeming.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 20 redemptions succeeded with the same use, want 1", won.Load())
	}

	if _, err := redeem("x", "b", "p"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, code string
		uses       []string
		want       error
	}{
		{
			name: "another code with a stored use",
			code: "y",
			uses: []string{"c", "p"},
			want: refusal,
		},
		{name: "the same request", code: "x", uses: []string{"b", "p"}, want: refusal},
		{name: "the same code", code: "x", uses: []string{"d", "e"}, want: problem.Conflict},
	} {
		grant, err := redeem(tt.code, tt.uses...)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if _, err := s.FindGrant(t.Context(), grant); !errors.Is(err, problem.NotFound) {
			t.Errorf("%s: FindGrant = %v, want not found", tt.name, err)
		}
	}

	for _, hash := range []string{"c", "d", "e"} {
		wantUnused(t, s, hash)
	}
}

// wantUnused fails the test unless a value of a refused request is not stored as used.
func wantUnused(t *testing.T, s *Store, hash string) {
	t.Helper()
	used, err := s.WasUsed(t.Context(), hash)
	if err != nil || used {
		t.Errorf("WasUsed(%q) after a refused request = %v, %v, want false", hash, used, err)
	}
}

func TestMarkedSessions(t *testing.T) { EachDatabase(t, testMarkedSessions) }

// testMarkedSessions shows that the logins with a browser's mark are found and ended together.
func testMarkedSessions(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	marks := []string{"a", "a", "b", "", ""}
	ids := make([]string, len(marks))
	for i, mark := range marks {
		l := login(g)
		l.ID, l.Mark = newID(), mark
		ids[i] = l.ID
		if i == 0 {
			g.SessionID = l.ID
		}
		if err := s.CreateLogin(t.Context(), l, "hash"); err != nil {
			t.Fatal(err)
		}
	}

	count := func(mark string) int {
		t.Helper()
		logins, err := s.LoginsMadeIn(t.Context(), mark)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range logins {
			if l.Mark != mark {
				t.Errorf("LoginsMadeIn(%q) returns a login with the mark %q", mark, l.Mark)
			}
		}
		return len(logins)
	}

	for mark, want := range map[string]int{"a": 2, "b": 1, "": 0} {
		if n := count(mark); n != want {
			t.Errorf("%d logins have the mark %q, want %d", n, mark, want)
		}
	}
	var ends []revocation.Revocation
	for _, id := range append(ids[:2], newID()) {
		ends = append(ends, revocation.Revocation{
			Kind:    revocation.Session,
			ID:      id,
			Until:   time.Now().Add(time.Hour),
			Expires: time.Now().Add(time.Hour),
		})
	}

	if err := s.EndLogins(t.Context(), time.Now(), ends...); err != nil {
		t.Fatal(err)
	}

	found, _, err := s.RevocationsSince(t.Context(), 0)
	if err != nil || len(found) != 2 {
		t.Errorf("%d revocations, %v, want those of the two logins", len(found), err)
	}
	for mark, want := range map[string]int{"a": 0, "b": 1} {
		if n := count(mark); n != want {
			t.Errorf("after EndLogins, %d logins have the mark %q, want %d", n, mark, want)
		}
	}
}

func TestRotateGrantUses(t *testing.T) { EachDatabase(t, testRotateGrantUses) }

// testRotateGrantUses shows that the uses of a request and its new refresh token are either stored
// together or not at all.
func testRotateGrantUses(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	g.ID = newID()
	code := idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c"}
	if err := s.RedeemCode(t.Context(), code, g); err != nil {
		t.Fatal(err)
	}

	refusal := errors.New("used before")
	rotate := func(old, next, hash string) error {
		use := idp.Use{Hash: hash, Expires: time.Now().Add(time.Minute), Refusal: refusal}
		return s.RotateGrant(t.Context(), idp.Grant{ID: g.ID, RefreshHash: next}, old, use)
	}

	if err := rotate("first", "second", "a"); err != nil {
		t.Fatal(err)
	}
	if err := rotate("second", "third", "a"); err != refusal {
		t.Errorf("rotating with a stored use: %v, want the refusal of the use", err)
	}

	if err := rotate("first", "third", "b"); !errors.Is(err, problem.Conflict) {
		t.Errorf("rotating an old token: %v, want a conflict", err)
	}
	wantUnused(t, s, "b")

	grant, err := s.FindGrant(t.Context(), g.ID)
	if err != nil || grant.RefreshHash != "second" {
		t.Errorf("the refresh token is %q, %v, want second", grant.RefreshHash, err)
	}
}
