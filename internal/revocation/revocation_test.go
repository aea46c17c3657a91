package revocation_test

import (
	"context"
	"errors"
	"slices"
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
	inAnHour := began.Add(time.Hour)
	subscriber := revocation.Subject{Kind: revocation.Subscriber, ID: "a"}
	token := revocation.Subject{Kind: revocation.Token, ID: "b"}
	for _, r := range []revocation.Revocation{
		{Kind: subscriber.Kind, ID: subscriber.ID, Until: inAnHour, Expires: began.Add(3 * time.Hour)},
		// This one must not replace the first, whose Until is later.
		{Kind: subscriber.Kind, ID: subscriber.ID, Until: began, Expires: began.Add(3 * time.Hour)},
		{Kind: token.Kind, ID: token.ID, Until: inAnHour, Expires: inAnHour},
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
	if heard == 0 {
		t.Error("Heard after reading = 0, want more")
	}
	sync()
	if got := there.Heard(); got != heard {
		t.Errorf("Heard without new revocations = %d, want %d, as before", got, heard)
	}

	tests := []struct {
		name    string
		issued  time.Time
		subject revocation.Subject
		want    error
	}{
		{"before", began, subscriber, problem.Unauthenticated},
		{"at the last moment", inAnHour, subscriber, problem.Unauthenticated},
		{"after", inAnHour.Add(time.Microsecond), subscriber, nil},
		{"a different kind", began, revocation.Subject{Kind: token.Kind, ID: subscriber.ID}, nil},
		{"a different id", began, revocation.Subject{Kind: subscriber.Kind, ID: "c"}, nil},
		{"no id", began, revocation.Subject{Kind: subscriber.Kind}, nil},
		{"one token", began, token, problem.Unauthenticated},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := here.Check(tt.issued, tt.subject); !errors.Is(err, tt.want) {
				t.Errorf("Check on the node that revoked = %v, want %v", err, tt.want)
			}
			if err := there.Check(tt.issued, tt.subject); !errors.Is(err, tt.want) {
				t.Errorf("Check on the other node = %v, want %v", err, tt.want)
			}
		})
	}

	ahead.Store(int64(6 * time.Second))
	unrevoked := revocation.Subject{Kind: revocation.Token, ID: "c"}
	if err := there.Check(began, unrevoked); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Check on a node that has read nothing for six seconds = %v, want problem.Unavailable", err)
	}
	sync()
	if err := there.Check(began, unrevoked); err != nil {
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
			t.Errorf("Check of an earlier token with %v = %v, want problem.Unauthenticated", subjects, err)
		}
		if err := list.Check(until.Add(time.Microsecond), subjects...); err != nil {
			t.Errorf("Check of a later token with %v = %v, want nil", subjects, err)
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
		if err := l.Check(began); !errors.Is(err, problem.Unavailable) {
			t.Errorf("Check = %v, want problem.Unavailable", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Check took %v, want no wait", took)
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

// TestSuspended shows that a node that has read nothing for more than five seconds, as after its
// process was suspended, waits up to a second for the log before it refuses.
func TestSuspended(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes time.Duration // how long reading the log takes
		want  error
	}{
		{name: "reading takes six seconds", takes: 6 * time.Second},
		{name: "reading takes an hour", takes: time.Hour, want: problem.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &slow{}
				l := revocation.New(log, nil)
				ctx, cancel := context.WithCancel(t.Context())
				go l.Run(ctx)

				// Make the log slow, so that nothing is read for more than five seconds.
				time.Sleep(time.Second)
				log.takes.Store(int64(tt.takes))
				time.Sleep(time.Second)
				log.takes.Store(0)
				time.Sleep(4500 * time.Millisecond)

				began := time.Now()
				if err := l.Check(began); !errors.Is(err, tt.want) {
					t.Errorf("Check = %v, want %v", err, tt.want)
				}
				if took := time.Since(began); took == 0 || took > time.Second {
					t.Errorf("Check took %v, want a wait of at most a second", took)
				}

				cancel()
				synctest.Wait()
			})
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
	full := logOf(t, "a", "b")
	backup := logOf(t, "c")
	further := logOf(t, "c", "d", "e", "f")
	tests := []struct {
		name    string
		stages  []*store.Store // nil means unreachable
		revoked []string
	}{
		{
			name:    "with fewer revocations",
			stages:  []*store.Store{full, backup},
			revoked: []string{"a", "b", "c"},
		},
		{
			name:    "with more revocations, after it was unreachable",
			stages:  []*store.Store{full, nil, further},
			revoked: []string{"a", "b", "c", "d", "e", "f"},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := &moving{}
			list := revocation.New(log, nil)
			for _, stage := range tt.stages {
				log.Store = stage
				for range 2 {
					err := list.Sync(t.Context())
					if stage == nil && err == nil {
						t.Error("Sync of an unreachable log succeeds, want an error")
					}
					if stage != nil && err != nil {
						t.Errorf("Sync = %v, want success", err)
					}
				}
			}

			for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
				err := list.Check(time.Now(), revocation.Subject{Kind: revocation.Token, ID: id})
				revoked, want := errors.Is(err, problem.Unauthenticated), slices.Contains(tt.revoked, id)
				if revoked != want {
					t.Errorf("the token %s is revoked: %t, %v, want %t", id, revoked, err, want)
				}
			}
		})
	}
}

// logOf returns a new log in which the tokens with the given ids are revoked.
func logOf(t *testing.T, ids ...string) *store.Store {
	t.Helper()
	log := openLog(t, nil)
	inAnHour := time.Now().Add(time.Hour)
	for _, id := range ids {
		r := revocation.Revocation{Kind: revocation.Token, ID: id, Until: inAnHour, Expires: inAnHour}
		if err := log.AddRevocation(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return log
}
