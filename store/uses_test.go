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
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			err := s.MarkUsed(t.Context(), use("h"), use(strconv.Itoa(i)))
			if err == nil {
				won.Add(1)
			} else if err != refusal {
				t.Errorf("MarkUsed = %v, want the refusal of the use", err)
			}
		})
	}

	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 50 callers stored a use, want 1", won.Load())
	}

	// The callers that failed have stored nothing.
	stored := 0
	for i := range 50 {
		if was, err := s.WasUsed(t.Context(), strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		} else if was {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("%d other uses are stored, want that of the caller who won", stored)
	}

	sweep := func() {
		t.Helper()
		if err := s.SweepLogins(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	sweep()
	if err := s.MarkUsed(t.Context(), use("h")); err != refusal {
		t.Errorf("after an early sweep: %v, want the refusal of the use", err)
	}

	if live, err := s.LiveUses(t.Context()); err != nil || len(live) != 2 {
		t.Errorf("LiveUses = %v, %v, want h and the other use of its caller", live, err)
	}

	ahead.Store(int64(2 * time.Minute))
	if live, err := s.LiveUses(t.Context()); err != nil || len(live) != 0 {
		t.Errorf("LiveUses after they have expired = %v, %v, want none", live, err)
	}
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
		g := g
		g.ID = newID()
		c := idp.RedeemedCode{Hash: code, ClientID: "c", GrantID: g.ID, Expires: time.Now().Add(time.Hour)}
		for _, hash := range hashes {
			c.Uses = append(c.Uses, idp.Use{Hash: hash, Expires: c.Expires, Refusal: refusal})
		}
		return g.ID, s.RedeemCode(t.Context(), c, g)
	}

	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := redeem(strconv.Itoa(i), "a")
			if err == nil {
				won.Add(1)
			} else if err != refusal {
				t.Errorf("RedeemCode = %v, want the refusal of the use", err)
			}
		})
	}

	all.Wait()
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
		{"another code with a stored use", "y", []string{"c", "p"}, refusal},
		{"the same request", "x", []string{"b", "p"}, refusal},
		{"the same code", "x", []string{"d", "e"}, problem.Conflict},
	} {
		grant, err := redeem(tt.code, tt.uses...)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if _, err := s.FindGrant(t.Context(), grant); !errors.Is(err, problem.NotFound) {
			t.Errorf("%s: its grant: %v, want none", tt.name, err)
		}
	}

	for _, hash := range []string{"c", "d", "e"} {
		if was, err := s.WasUsed(t.Context(), hash); was || err != nil {
			t.Errorf("a use of a refused redemption is stored: %v, %v", was, err)
		}
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
		if ids[i] = l.ID; i == 0 {
			g.SessionID = l.ID
		}
		if err := s.CreateLogin(t.Context(), l, "hash"); err != nil {
			t.Fatal(err)
		}
	}

	count := func(mark string) int {
		t.Helper()
		all, err := s.LoginsMadeIn(t.Context(), mark)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Mark != mark {
				t.Errorf("a login of the mark %q has the mark %q", mark, one.Mark)
			}
		}
		return len(all)
	}

	if a, b, none := count("a"), count("b"), count(""); a != 2 || b != 1 || none != 0 {
		t.Errorf("%d, %d and %d logins, want 2, 1 and 0", a, b, none)
	}
	var all []revocation.Revocation
	for _, id := range append(ids[:2], newID()) {
		all = append(all, revocation.Revocation{
			Kind:    revocation.Session,
			ID:      id,
			Until:   time.Now().Add(time.Hour),
			Expires: time.Now().Add(time.Hour),
		})
	}

	if err := s.EndLogins(t.Context(), time.Now(), all...); err != nil {
		t.Fatal(err)
	}

	found, _, err := s.RevocationsSince(t.Context(), 0)
	if err != nil || len(found) != 2 {
		t.Errorf("%d revocations, %v, want those of the two logins", len(found), err)
	}
	if a, b := count("a"), count("b"); a != 0 || b != 1 {
		t.Errorf("%d and %d logins after the end, want 0 and 1", a, b)
	}
}

func TestRotateGrantUses(t *testing.T) { EachDatabase(t, testRotateGrantUses) }

// testRotateGrantUses shows that the uses of a request and its new refresh token are either stored
// together or not at all.
func testRotateGrantUses(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	g.ID = newID()
	if err := s.RedeemCode(t.Context(), idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c"}, g); err != nil {
		t.Fatal(err)
	}

	refusal := errors.New("used before")
	rotate := func(old, next, use string) error {
		return s.RotateGrant(t.Context(), idp.Grant{ID: g.ID, RefreshHash: next}, old,
			idp.Use{Hash: use, Expires: time.Now().Add(time.Minute), Refusal: refusal})
	}

	if err := rotate("first", "second", "a"); err != nil {
		t.Fatal(err)
	}
	if err := rotate("second", "third", "a"); err != refusal {
		t.Errorf("rotating with a stored use: %v, want its refusal", err)
	}

	if err := rotate("first", "third", "b"); !errors.Is(err, problem.Conflict) {
		t.Errorf("rotating an old token: %v, want a conflict", err)
	}
	if was, err := s.WasUsed(t.Context(), "b"); err != nil || was {
		t.Errorf("the use of a refused rotation is stored: %v, %v", was, err)
	}

	if got, err := s.FindGrant(t.Context(), g.ID); err != nil || got.RefreshHash != "second" {
		t.Errorf("the token is %q, %v, want the second", got.RefreshHash, err)
	}
}
