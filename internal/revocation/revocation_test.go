package revocation_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

func openLog(t *testing.T, now func() time.Time) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Audit: storetest.Key(), Dir: t.TempDir(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestCheck(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	log := openLog(t, now)
	here, there := revocation.New(log, now), revocation.New(log, now) // two nodes
	began := now().Truncate(time.Microsecond)

	sync := func() {
		t.Helper()
		if err := errors.Join(here.Sync(t.Context()), there.Sync(t.Context())); err != nil {
			t.Fatal(err)
		}
	}

	sync()
	for _, r := range []revocation.Revocation{
		{Kind: revocation.Subscriber, ID: "a", Until: began.Add(time.Hour), Expires: began.Add(3 * time.Hour)},
		{
			Kind:    revocation.Subscriber,
			ID:      "a",
			Until:   began,
			Expires: began.Add(3 * time.Hour),
		}, // must not replace the first, whose Until is later
		{Kind: revocation.Token, ID: "b", Until: began.Add(time.Hour), Expires: began.Add(time.Hour)},
	} {
		if err := here.Revoke(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}

	if got := there.Heard(); got != 0 {
		t.Errorf("Heard before anything was read = %d, want 0", got)
	}
	sync()
	heard := there.Heard()
	if sync(); heard == 0 || there.Heard() != heard {
		t.Errorf("Heard = %d, then %d without new revocations, want the same number and not 0", heard, there.Heard())
	}

	tests := []struct {
		name    string
		issued  time.Duration
		subject revocation.Subject
		ok      bool
	}{
		{"before", 0, revocation.Subject{Kind: revocation.Subscriber, ID: "a"}, false},
		{"at the last moment", time.Hour, revocation.Subject{Kind: revocation.Subscriber, ID: "a"}, false},
		{"after", time.Hour + time.Microsecond, revocation.Subject{Kind: revocation.Subscriber, ID: "a"}, true},
		{"a different kind", 0, revocation.Subject{Kind: revocation.Token, ID: "a"}, true},
		{"a different id", 0, revocation.Subject{Kind: revocation.Subscriber, ID: "c"}, true},
		{"no id", 0, revocation.Subject{Kind: revocation.Subscriber}, true},
		{"one token", 0, revocation.Subject{Kind: revocation.Token, ID: "b"}, false},
	}

	for _, tt := range tests {
		for node, l := range map[string]*revocation.List{"here": here, "there": there} {
			err := l.Check(began.Add(tt.issued), tt.subject)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, problem.Unauthenticated) {
				t.Errorf("%s, %s: Check = %v, want ok %v", tt.name, node, err, tt.ok)
			}
		}
	}

	ahead.Store(int64(6 * time.Second))
	if err := there.Check(began,
		revocation.Subject{Kind: revocation.Token, ID: "c"}); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Check on a node that has read nothing for six seconds = %v, want unavailable", err)
	}
	sync()
	if err := there.Check(began, revocation.Subject{Kind: revocation.Token, ID: "c"}); err != nil {
		t.Errorf("Check after reading = %v, want nil", err)
	}
}

// deaf is a log that can be neither read nor written.
type deaf struct{}

func (deaf) AddRevocation(context.Context, revocation.Revocation) error { return errors.New("away") }
func (deaf) RevocationsSince(context.Context, int64) ([]revocation.Revocation, int64, error) {
	return nil, 0, errors.New("away")
}

// TestInstallation shows that revoking an installation revokes every token that was issued before,
// even tokens without a subject.
func TestInstallation(t *testing.T) {
	log := openLog(t, nil)
	list := revocation.New(log, nil)
	until := time.Now().Truncate(time.Microsecond)
	if err := log.EndAll(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	if err := list.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}

	subject := revocation.Subject{Kind: revocation.Token, ID: "a"}
	for _, subjects := range [][]revocation.Subject{nil, {subject}} {
		if err := list.Check(until, subjects...); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Check of a token from before, with %v = %v, want unauthenticated", subjects, err)
		}
		if err := list.Check(until.Add(time.Microsecond), subjects...); err != nil {
			t.Errorf("Check of a token from after, with %v = %v, want nil", subjects, err)
		}
	}
}

// TestUnreachableLog shows that a node that has never been able to read the log allows nothing,
// even after many polls.
func TestUnreachableLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := revocation.New(deaf{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go l.Run(ctx)

		time.Sleep(time.Minute)
		began := time.Now()
		if err := l.Check(began); !errors.Is(err, problem.Unavailable) || time.Since(began) != 0 {
			t.Errorf("Check = %v after %v, want unavailable immediately", err, time.Since(began))
		}
		if err := l.Revoke(ctx, revocation.Revocation{Kind: revocation.Token, ID: "a"}); err == nil {
			t.Error("Revoke = nil, although the log cannot be written")
		}

		cancel()
		synctest.Wait()
	})
}

// slow is a log that takes the given time to read.
type slow struct{ takes atomic.Int64 }

func (*slow) AddRevocation(context.Context, revocation.Revocation) error { return nil }
func (s *slow) RevocationsSince(ctx context.Context, _ int64) ([]revocation.Revocation, int64, error) {
	select {
	case <-time.After(time.Duration(s.takes.Load())):
		return nil, 0, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// TestSuspended shows that a node whose process was suspended for a long time reads the log again
// before it refuses. If reading takes longer than a second, the node refuses.
func TestSuspended(t *testing.T) {
	for name, tt := range map[string]struct {
		stands time.Duration
		ok     bool
	}{
		"for six seconds": {6 * time.Second, true},
		"and still does":  {time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := &slow{}
			l := revocation.New(log, nil)
			ctx, cancel := context.WithCancel(t.Context())
			go l.Run(ctx)

			// Make the log slow, so that nothing is read for more than five seconds.
			time.Sleep(time.Second)
			log.takes.Store(int64(tt.stands))
			time.Sleep(time.Second)
			log.takes.Store(0)
			time.Sleep(4500 * time.Millisecond)

			began := time.Now()
			if err := l.Check(began); (err == nil) != tt.ok || err != nil && !errors.Is(err, problem.Unavailable) {
				t.Errorf("suspended %s: Check = %v, want ok %v", name, err, tt.ok)
			}
			if took := time.Since(began); took == 0 || took > time.Second {
				t.Errorf("suspended %s: Check took %v, want a wait of at most a second", name, took)
			}

			cancel()
			synctest.Wait()
		})
	}
}

// moving is a log whose database can be replaced by a backup, or become unavailable.
type moving struct{ *store.Store }

func (m *moving) RevocationsSince(ctx context.Context, seq int64) ([]revocation.Revocation, int64, error) {
	if m.Store == nil {
		return nil, 0, errors.New("away")
	}
	return m.Store.RevocationsSince(ctx, seq)
}

// TestRestored shows that after a database is restored from a backup, the revocations that a node
// has read remain in force, and that the node still reads later ones.
func TestRestored(t *testing.T) {
	revoke := func(s *store.Store, ids ...string) *store.Store {
		for _, id := range ids {
			err := s.AddRevocation(t.Context(),
				revocation.Revocation{
					Kind:    revocation.Token,
					ID:      id,
					Until:   time.Now().Add(time.Hour),
					Expires: time.Now().Add(time.Hour),
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		return s
	}

	full, backup, further := revoke(openLog(t, nil), "a", "b"), revoke(openLog(t, nil), "c"),
		revoke(openLog(t, nil), "c", "d", "e", "f")

	tests := []struct {
		name   string
		stages []*store.Store // nil means unreachable
		dead   string
	}{
		{"with fewer revocations", []*store.Store{full, backup}, "abc"},
		{"with more revocations, after it was unreachable", []*store.Store{full, nil, further}, "abcdef"},
	}

	for _, tt := range tests {
		log := &moving{}
		l := revocation.New(log, nil)
		for _, log.Store = range tt.stages {
			for range 2 {
				if err := l.Sync(t.Context()); (err != nil) != (log.Store == nil) {
					t.Errorf("%s: Sync = %v", tt.name, err)
				}
			}
		}

		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			err := l.Check(time.Now(), revocation.Subject{Kind: revocation.Token, ID: id})
			if want := strings.Contains(tt.dead, id); errors.Is(err, problem.Unauthenticated) != want {
				t.Errorf("%s: Check(%s) = %v, want it revoked: %v", tt.name, id, err, want)
			}
		}
	}
}
