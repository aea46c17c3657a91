// Package sessiontest is the test suite that every session.Store passes.
package sessiontest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A check is one test case. If waits is set, the case waits until an entry expires or a rate
// recovers, and runs in parallel.
type check struct {
	name  string
	run   func(*testing.T, session.Store)
	waits bool
}

// Run tests a backend. open returns an empty store, or a store that other tests use at the same
// time, since each case uses its own keys.
func Run(t *testing.T, open func(t *testing.T) session.Store) {
	checks := []check{
		{"Put", put, false}, {"Get", get, false}, {"Take", take, false}, {"Add", add, false},
		{"CompareAndSwap", compareAndSwap, false},
		{"Delete", remove, false}, {"Incr", incr, false}, {"Kinds", kinds, false}, {"Values", values, false},
		{"Rates", rates, false}, {"RateReturned", rateReturned, false}, {"RateExact", rateExact, false},
		{"RateClockBack", rateClockBack, false},
		{"RateRefills", rateRefills, true},
		{"Cancelled", cancelled, false}, {"Leaving", leaving, false},
		{"Expiry", expiry, true}, {"AddAfterExpiry", addAfterExpiry, true},
		{"IncrAfterExpiry", incrAfterExpiry, true},
		{"TTLRestarts", ttlRestarts, true}, {"TTLStays", ttlStays, true}, {"TTLOfNothing", ttlOfNothing, true},
		{"OneTakes", oneTakes, false}, {"OneAdds", oneAdds, false}, {"OneSwaps", oneSwaps, false},
		{"AllCount", allCount, false}, {"AllSwap", allSwap, false}, {"NoneMixedUp", noneMixedUp, false},
	}

	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if c.waits {
				t.Parallel()
			}
			c.run(t, open(t))
		})
	}
}

// key returns a key that no other case uses.
func key(t *testing.T, kind string) session.Key {
	return session.Key{Kind: kind, ID: session.Digest(t.Name() + rand.Text())}
}

func put(t *testing.T, s session.Store) {
	k := key(t, "code")
	mustPut(t, s, k, "one", time.Minute)
	mustPut(t, s, k, "two", time.Minute)
	wantValue(t, s, k, "two")
}

func get(t *testing.T, s session.Store) {
	k := key(t, "code")
	wantNone(t, s, k)
	mustPut(t, s, k, "one", time.Minute)
	wantValue(t, s, k, "one")
	wantValue(t, s, k, "one")
}

func take(t *testing.T, s session.Store) {
	k := key(t, "code")
	mustPut(t, s, k, "one", time.Minute)
	if got, err := s.Take(t.Context(), k); string(got) != "one" || err != nil {
		t.Errorf("Take = %q, %v, want one", got, err)
	}
	if got, err := s.Take(t.Context(), k); !errors.Is(err, problem.NotFound) || got != nil {
		t.Errorf("second Take = %q, %v, want not found", got, err)
	}
	wantNone(t, s, k)
}

func add(t *testing.T, s session.Store) {
	k := key(t, "jti")
	wantErr(t, "Add", s.Add(t.Context(), k, []byte("one"), time.Minute), nil)
	wantErr(t, "second Add", s.Add(t.Context(), k, []byte("two"), time.Minute), problem.Conflict)
	wantErr(t, "Add of the same value", s.Add(t.Context(), k, []byte("one"), time.Minute), problem.Conflict)
	wantValue(t, s, k, "one")
}

func compareAndSwap(t *testing.T, s session.Store) {
	k := key(t, "login")
	swap := func(old, new string) error {
		return s.CompareAndSwap(t.Context(), k, []byte(old), []byte(new), time.Minute)
	}
	wantErr(t, "CompareAndSwap of an absent key", swap("one", "two"), problem.NotFound)

	mustPut(t, s, k, "one", time.Minute)
	wantErr(t, "CompareAndSwap with another old value", swap("zero", "two"), problem.Conflict)
	wantErr(t, "CompareAndSwap to the current value, with another old value", swap("zero", "one"), problem.Conflict)
	wantValue(t, s, k, "one")

	wantErr(t, "CompareAndSwap", swap("one", "two"), nil)
	wantValue(t, s, k, "two")
	wantErr(t, "CompareAndSwap to the same value", swap("two", "two"), nil)
}

func remove(t *testing.T, s session.Store) {
	k := key(t, "login")
	wantErr(t, "Delete of an absent key", s.Delete(t.Context(), k), nil)
	mustPut(t, s, k, "one", time.Minute)
	wantErr(t, "Delete", s.Delete(t.Context(), k), nil)
	wantNone(t, s, k)
}

func incr(t *testing.T, s session.Store) {
	k := key(t, "tries")
	for want := int64(1); want <= 3; want++ {
		wantCount(t, s, k, want, time.Minute)
	}
	wantErr(t, "Delete", s.Delete(t.Context(), k), nil)
	wantCount(t, s, k, 1, time.Minute)
}

// kinds shows that an entry of one kind never appears under another, even with the same id.
func kinds(t *testing.T, s session.Store) {
	code, login := key(t, "code"), session.Key{Kind: "login"}
	login.ID = code.ID
	mustPut(t, s, code, "one", time.Minute)
	wantNone(t, s, login)

	_, err := s.Take(t.Context(), login)
	wantErr(t, "Take of a different kind", err, problem.NotFound)
	err = s.CompareAndSwap(t.Context(), login, []byte("one"), []byte("two"), time.Minute)
	wantErr(t, "CompareAndSwap of a different kind", err, problem.NotFound)
	wantErr(t, "Delete of a different kind", s.Delete(t.Context(), login), nil)
	wantValue(t, s, code, "one")

	wantErr(t, "Add", s.Add(t.Context(), login, []byte("two"), time.Minute), nil)
	wantCount(t, s, session.Key{Kind: "tries", ID: code.ID}, 1, time.Minute)
	wantCount(t, s, session.Key{Kind: "guesses", ID: code.ID}, 1, time.Minute)
	wantValue(t, s, code, "one")
	wantValue(t, s, login, "two")
}

// values shows that values are returned unchanged, whatever bytes they contain.
func values(t *testing.T, s session.Store) {
	big := make([]byte, 64<<10)
	for i := range big {
		big[i] = byte(i)
	}

	for _, want := range []string{"", "\x00", "\xff\xfe", "\r\n$-1\r\n", "it's {\"json\"}", "naïve", "123",
		"-1", string(big)} {
		put, added := key(t, "value"), key(t, "value")

		mustPut(t, s, put, want, time.Minute)
		wantValue(t, s, put, want)

		wantErr(t, "CompareAndSwap", s.CompareAndSwap(t.Context(), put, []byte(want), []byte(want+"!"),
			time.Minute), nil)
		wantValue(t, s, put, want+"!")
		wantErr(t, "CompareAndSwap back",
			s.CompareAndSwap(t.Context(), put, []byte(want+"!"), []byte(want), time.Minute), nil)

		if got, err := s.Take(t.Context(), put); string(got) != want || err != nil {
			t.Errorf("Take = %s, %v, want %s", brief(got), err, brief([]byte(want)))
		}
		wantErr(t, "Add", s.Add(t.Context(), added, []byte(want), time.Minute), nil)
		wantValue(t, s, added, want)
	}

	none := key(t, "value")
	wantErr(t, "Put of nil", s.Put(t.Context(), none, nil, time.Minute), nil)
	wantValue(t, s, none, "")
	wantErr(t, "CompareAndSwap of nil", s.CompareAndSwap(t.Context(), none, nil, []byte("one"), time.Minute), nil)
	wantValue(t, s, none, "one")
}

func mustPut(t *testing.T, s session.Store, k session.Key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), k, []byte(value), ttl); err != nil {
		t.Fatalf("Put(%v) = %v", k, err)
	}
}

func wantValue(t *testing.T, s session.Store, k session.Key, want string) {
	t.Helper()
	if got, err := s.Get(t.Context(), k); string(got) != want || err != nil {
		t.Errorf("Get(%v) = %s, %v, want %s", k, brief(got), err, brief([]byte(want)))
	}
}

func wantNone(t *testing.T, s session.Store, k session.Key) {
	t.Helper()
	if got, err := s.Get(t.Context(), k); !errors.Is(err, problem.NotFound) {
		t.Errorf("Get(%v) = %s, %v, want not found", k, brief(got), err)
	}
}

func wantCount(t *testing.T, s session.Store, k session.Key, want int64, ttl time.Duration) {
	t.Helper()
	if err := count(t, s, k, want, ttl); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, s session.Store, k session.Key, want int64, ttl time.Duration) error {
	if got, err := s.Incr(t.Context(), k, ttl); got != want || err != nil {
		return fmt.Errorf("Incr(%v) = %d, %v, want %d", k, got, err, want)
	}
	return nil
}

func wantErr(t *testing.T, doing string, got, want error) {
	t.Helper()
	if (want == nil && got != nil) || !errors.Is(got, want) {
		t.Errorf("%s = %v, want %v", doing, got, want)
	}
}

func brief(value []byte) string {
	if len(value) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", value[:40], len(value))
	}
	return fmt.Sprintf("%q", value)
}
