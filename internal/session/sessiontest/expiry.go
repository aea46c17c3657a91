package sessiontest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// Backends keep their own time, so these cases wait for it: a lifetime short
// enough to wait for, and long enough not to end between two lines.
const (
	short    = 700 * time.Millisecond
	patience = 15 * time.Second
)

// gone waits until check says so, and fails if that is before the lifetime that
// began at the moment given, or never.
func gone(t *testing.T, began time.Time, check func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if check() {
			if lived := time.Since(began); lived < short-10*time.Millisecond {
				t.Errorf("expired after %v, want %v", lived, short)
			}
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("still there %v after a lifetime of %v", time.Since(began), short)
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
	gone(t, began, absent(t, s, k))
	_, err := s.Take(t.Context(), taken)
	wantErr(t, "Take after expiry", err, problem.NotFound)
	err = s.CompareAndSwap(t.Context(), swapped, []byte("one"), []byte("two"), time.Minute)
	wantErr(t, "CompareAndSwap after expiry", err, problem.NotFound)
}

func addAfterExpiry(t *testing.T, s session.Store) {
	k := key(t, "jti")
	began := time.Now()
	wantErr(t, "Add", s.Add(t.Context(), k, []byte("one"), short), nil)
	gone(t, began, func() bool { return s.Add(t.Context(), k, []byte("two"), time.Minute) == nil })
	wantValue(t, s, k, "two")
}

// incrAfterExpiry shows that the lifetime begins with the first count and is not
// prolonged by the others.
func incrAfterExpiry(t *testing.T, s session.Store) {
	k := key(t, "tries")
	began := time.Now()
	wantCount(t, s, k, 1, short)
	wantCount(t, s, k, 2, time.Hour)
	gone(t, began, func() bool {
		n, err := s.Incr(t.Context(), k, time.Hour)
		return n == 1 && err == nil
	})
	wantCount(t, s, k, 2, time.Hour)
}

func swapRestartsTTL(t *testing.T, s session.Store) {
	k, witness := key(t, "login"), key(t, "witness")
	mustPut(t, s, k, "one", short)
	wantErr(t, "CompareAndSwap", s.CompareAndSwap(t.Context(), k, []byte("one"), []byte("two"), time.Minute), nil)
	began := time.Now()
	mustPut(t, s, witness, "one", short)
	gone(t, began, absent(t, s, witness))
	wantValue(t, s, k, "two")
}

// cancelled shows that a caller who has left changes nothing.
func cancelled(t *testing.T, s session.Store) {
	k := key(t, "code")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "Put of a caller who left", s.Put(ctx, k, []byte("one"), time.Minute), context.Canceled)
	wantNone(t, s, k)
}
