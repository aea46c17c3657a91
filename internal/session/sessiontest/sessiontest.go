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

// Run tests a backend. open returns a store, which may be in use by other tests, since each case uses its
// own keys.
func Run(t *testing.T, open func(t *testing.T) session.Store) {
	checks := []check{
		{name: "Put", run: put},
		{name: "Get", run: get},
		{name: "Take", run: take},
		{name: "Add", run: add},
		{name: "CompareAndSwap", run: compareAndSwap},
		{name: "Delete", run: remove},
		{name: "Incr", run: incr},
		{name: "Kinds", run: kinds},
		{name: "Values", run: values},
		{name: "Rates", run: rates},
		{name: "RateReturned", run: rateReturned},
		{name: "RateExact", run: rateExact},
		{name: "RateClockBack", run: rateClockBack},
		{name: "RateRefills", run: rateRefills, waits: true},
		{name: "Cancelled", run: cancelled},
		{name: "Leaving", run: leaving},
		{name: "Expiry", run: expiry, waits: true},
		{name: "AddAfterExpiry", run: addAfterExpiry, waits: true},
		{name: "IncrAfterExpiry", run: incrAfterExpiry, waits: true},
		{name: "TTLRestarts", run: ttlRestarts, waits: true},
		{name: "TTLStays", run: ttlStays, waits: true},
		{name: "TTLOfNothing", run: ttlOfNothing, waits: true},
		{name: "OneTakes", run: oneTakes},
		{name: "OneAdds", run: oneAdds},
		{name: "OneSwaps", run: oneSwaps},
		{name: "AllCount", run: allCount},
		{name: "AllSwap", run: allSwap},
		{name: "NoneMixedUp", run: noneMixedUp},
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
	wantTaken(t, s, k, "one")
	if got, err := s.Take(t.Context(), k); !errors.Is(err, problem.NotFound) || got != nil {
		t.Errorf("second Take = %q, %v, want nil, problem.NotFound", got, err)
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
	wantErr(t, "CompareAndSwap with a wrong old value", swap("zero", "two"), problem.Conflict)
	wantErr(t, "CompareAndSwap to the current value, with a wrong old value", swap("zero", "one"), problem.Conflict)
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

// kinds shows that an entry of one kind never appears under a different kind, even with the same id.
func kinds(t *testing.T, s session.Store) {
	code := key(t, "code")
	login := session.Key{Kind: "login", ID: code.ID}
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

	for _, want := range []string{
		"", "\x00", "\xff\xfe", "\r\n$-1\r\n", "it's {\"json\"}", "naïve", "123", "-1", string(big),
	} {
		k := key(t, "value")
		mustPut(t, s, k, want, time.Minute)
		wantValue(t, s, k, want)

		longer := want + "!"
		err := s.CompareAndSwap(t.Context(), k, []byte(want), []byte(longer), time.Minute)
		wantErr(t, "CompareAndSwap", err, nil)
		wantValue(t, s, k, longer)
		err = s.CompareAndSwap(t.Context(), k, []byte(longer), []byte(want), time.Minute)
		wantErr(t, "CompareAndSwap back", err, nil)
		wantTaken(t, s, k, want)

		added := key(t, "value")
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
	if got, err := s.Get(t.Context(), k); err != nil || string(got) != want {
		t.Errorf("Get(%v) = %s, %v, want %s", k, brief(got), err, brief([]byte(want)))
	}
}

func wantTaken(t *testing.T, s session.Store, k session.Key, want string) {
	t.Helper()
	if got, err := s.Take(t.Context(), k); err != nil || string(got) != want {
		t.Errorf("Take(%v) = %s, %v, want %s", k, brief(got), err, brief([]byte(want)))
	}
}

func wantNone(t *testing.T, s session.Store, k session.Key) {
	t.Helper()
	if got, err := s.Get(t.Context(), k); !errors.Is(err, problem.NotFound) {
		t.Errorf("Get(%v) = %s, %v, want problem.NotFound", k, brief(got), err)
	}
}

func wantCount(t *testing.T, s session.Store, k session.Key, want int64, ttl time.Duration) {
	t.Helper()
	if err := count(t, s, k, want, ttl); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, s session.Store, k session.Key, want int64, ttl time.Duration) error {
	if got, err := s.Incr(t.Context(), k, ttl); err != nil || got != want {
		return fmt.Errorf("Incr(%v) = %d, %v, want %d", k, got, err, want)
	}
	return nil
}

// wantErr checks the error of an operation; nil means success.
func wantErr(t *testing.T, operation string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s = %v, want %v", operation, got, want)
	}
}

// brief quotes a value, or the beginning of a long one.
func brief(value []byte) string {
	if len(value) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", value[:40], len(value))
	}
	return fmt.Sprintf("%q", value)
}
