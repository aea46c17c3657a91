package sessiontest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Backends have their own clocks, so these cases wait for entries to expire. If a case must do
// something before an entry expires, it uses alive.
const (
	short    = 700 * time.Millisecond // lifetime of entries whose end a case waits for
	patience = time.Minute            // how long after its lifetime an entry may still exist
)

// alive calls do, which must create an entry with the lifetime life and use it before it expires.
// On a busy machine, this may take longer than life, and then the error from do means nothing. In
// that case alive calls do again with a longer lifetime. alive returns the time when the last call
// began, and its lifetime.
func alive(t *testing.T, do func(life time.Duration) error) (began time.Time, life time.Duration) {
	t.Helper()
	for life = short; ; life *= 4 {
		began = time.Now()
		err := do(life)
		switch {
		case err == nil:
			return began, life
		case life > patience || time.Since(began) < life:
			t.Fatal(err)
		}
	}
}

// waitGone waits until check returns true. It fails if this happens before the lifetime of an entry
// has passed, counted from the time began, or if it does not happen within patience after that.
func waitGone(t *testing.T, began time.Time, life time.Duration, check func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if check() {
			if lived := time.Since(began); lived < life-10*time.Millisecond {
				t.Errorf("expired after %v, want %v", lived, life)
			}
			return
		}
		if time.Since(began) > life+patience {
			t.Fatalf("the entry is still there after %v, want it gone after %v", time.Since(began), life)
		}
	}
}

func absent(t *testing.T, s session.Store, k session.Key) func() bool {
	return func() bool {
		_, err := s.Get(t.Context(), k)
		return errors.Is(err, problem.NotFound)
	}
}

func expiry(t *testing.T, s session.Store) {
	taken, swapped, k := key(t, "taken"), key(t, "swapped"), key(t, "code")
	mustPut(t, s, taken, "one", short)
	mustPut(t, s, swapped, "one", short)
	began := time.Now()
	mustPut(t, s, k, "one", short)

	waitGone(t, began, short, absent(t, s, k))

	_, err := s.Take(t.Context(), taken)
	wantErr(t, "Take after expiry", err, problem.NotFound)
	err = s.CompareAndSwap(t.Context(), swapped, []byte("one"), []byte("two"), time.Minute)
	wantErr(t, "CompareAndSwap after expiry", err, problem.NotFound)
}

func addAfterExpiry(t *testing.T, s session.Store) {
	k := key(t, "jti")
	began := time.Now()
	wantErr(t, "Add", s.Add(t.Context(), k, []byte("one"), short), nil)
	waitGone(t, began, short, func() bool { return s.Add(t.Context(), k, []byte("two"), time.Minute) == nil })
	wantValue(t, s, k, "two")
}

// incrAfterExpiry shows that the lifetime begins with the first call of Incr, and that later calls
// do not extend it.
func incrAfterExpiry(t *testing.T, s session.Store) {
	var k session.Key
	began, life := alive(t, func(life time.Duration) error {
		k = key(t, "tries")
		return errors.Join(count(t, s, k, 1, life), count(t, s, k, 2, time.Hour))
	})
	waitGone(t, began, life, func() bool {
		n, err := s.Incr(t.Context(), k, time.Hour)
		return n == 1 && err == nil
	})
	wantCount(t, s, k, 2, time.Hour)
}

// ttlRestarts shows that a write restarts the lifetime of an entry, even if the new lifetime is
// shorter.
func ttlRestarts(t *testing.T, s session.Store) {
	swapped, witness := key(t, "login"), key(t, "witness")
	longer, shorter := key(t, "login"), key(t, "login")
	alive(t, func(life time.Duration) error {
		mustPut(t, s, swapped, "one", life)
		return s.CompareAndSwap(t.Context(), swapped, []byte("one"), []byte("two"), time.Hour)
	})

	mustPut(t, s, longer, "one", short)
	mustPut(t, s, shorter, "one", time.Hour)
	mustPut(t, s, longer, "two", time.Hour)

	began := time.Now()
	mustPut(t, s, shorter, "two", short)
	mustPut(t, s, witness, "one", short)
	waitGone(t, began, short, absent(t, s, witness))
	waitGone(t, began, short, absent(t, s, shorter))

	wantValue(t, s, swapped, "two")
	wantValue(t, s, longer, "two")
}

// ttlStays shows that an operation that changes nothing does not extend the lifetime.
func ttlStays(t *testing.T, s session.Store) {
	var k session.Key
	began, life := alive(t, func(life time.Duration) error {
		k = key(t, "login")
		mustPut(t, s, k, "one", life)

		added := s.Add(t.Context(), k, []byte("two"), time.Hour)
		swapped := s.CompareAndSwap(t.Context(), k, []byte("two"), []byte("two"), time.Hour)

		if got, err := s.Get(t.Context(), k); !errors.Is(added, problem.Conflict) ||
			!errors.Is(swapped, problem.Conflict) || string(got) != "one" || err != nil {
			return fmt.Errorf("after Add = %v and CompareAndSwap = %v, want conflicts; then Get = %s, %v, want one",
				added, swapped, brief(got), err)
		}
		return nil
	})

	waitGone(t, began, life, absent(t, s, k))
}

// ttlOfNothing shows that an entry expires even if its lifetime is shorter than the resolution of
// the backend's clock.
func ttlOfNothing(t *testing.T, s session.Store) {
	put, added, counted := key(t, "code"), key(t, "jti"), key(t, "tries")
	mustPut(t, s, put, "one", time.Nanosecond)
	wantErr(t, "Add", s.Add(t.Context(), added, []byte("one"), time.Nanosecond), nil)
	wantCount(t, s, counted, 1, time.Nanosecond)

	for began := time.Now(); ; {
		n, err := s.Incr(t.Context(), counted, time.Nanosecond)
		if absent(t, s, put)() && absent(t, s, added)() && n == 1 && err == nil {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("the entries are still there after %v, want them gone after a nanosecond", time.Since(began))
		}
	}
}
