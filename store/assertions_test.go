package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

func TestUseAssertion(t *testing.T) { EachDatabase(t, testUseAssertion) }

// testUseAssertion shows that an assertion can be used only once. It can be used again only after
// it has expired and was deleted by a sweep.
func testUseAssertion(t *testing.T, c Config) {
	s, _, ahead := grantRows(t, c)
	var won atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := s.UseAssertion(t.Context(), "h", time.Now().Add(time.Minute)); err == nil {
				won.Add(1)
			} else if !errors.Is(err, problem.Conflict) {
				t.Errorf("UseAssertion = %v, want a conflict", err)
			}
		})
	}

	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 50 callers used an assertion, want 1", won.Load())
	}

	sweep := func() {
		t.Helper()
		if err := s.SweepLogins(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	sweep()
	if err := s.UseAssertion(t.Context(), "h", time.Now().Add(time.Minute)); !errors.Is(err, problem.Conflict) {
		t.Errorf("after an early sweep: %v, want a conflict", err)
	}

	ahead.Store(int64(2 * time.Minute))
	sweep()
	if err := s.UseAssertion(t.Context(), "h", time.Now().Add(time.Hour)); err != nil {
		t.Errorf("after a sweep of the expired assertion: %v", err)
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
		all = append(all, revocation.Revocation{Kind: revocation.Session, ID: id,
			Until: time.Now().Add(time.Hour), Expires: time.Now().Add(time.Hour)})
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
