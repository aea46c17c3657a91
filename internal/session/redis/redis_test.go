package redis

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/sessiontest"
	"github.com/selvage/selvage/test/servers"
)

// patient is the Patience for tests that check responses but not times, because the machine may be
// busy.
const patient = time.Minute

// open returns a store and closes it at the end of the test.
func open(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	for name, url := range map[string]func(servers.T) string{
		"Single":   servers.Redis,
		"Sentinel": servers.Sentinel,
		"Cluster":  servers.Cluster,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{URL: url(t), Patience: patient})
			sessiontest.Run(t, func(t *testing.T) session.Store { return s })
		})
	}
}

// TestPrefix shows that installations with different prefixes can share a Redis, and do not see
// each other's entries.
func TestPrefix(t *testing.T) {
	for name, url := range map[string]func(servers.T) string{"Single": servers.Redis, "Cluster": servers.Cluster} {
		t.Run(name, func(t *testing.T) {
			ctx, at := t.Context(), url(t)
			all := map[string]*Store{"none": open(t, Config{URL: at, Patience: patient})}
			for _, prefix := range []string{"one", "two"} {
				all[prefix] = open(t, Config{URL: at + "?prefix=" + prefix, Patience: patient})
			}

			key, count, rate := session.Key{Kind: "login", ID: rand.Text()},
				session.Key{Kind: "count", ID: rand.Text()}, session.Key{Kind: "rate", ID: rand.Text()}

			for name, s := range all {
				if err := s.Add(ctx, key, []byte(name), time.Minute); err != nil {
					t.Errorf("%s: Add = %v, want nil", name, err)
				}
				if n, err := s.Incr(ctx, count, time.Minute); n != 1 || err != nil {
					t.Errorf("%s: Incr = %d, %v, want 1", name, n, err)
				}
				if wait, err := s.Allow(ctx, rate, session.Rate{Burst: 1, Every: time.Hour}, 1); wait != 0 ||
					err != nil {
					t.Errorf("%s: Allow = %v, %v, want no wait", name, wait, err)
				}
				if err := s.Probe(ctx); err != nil {
					t.Errorf("%s: Probe = %v, want nil", name, err)
				}
			}

			for name, s := range all {
				if got, err := s.Take(ctx, key); string(got) != name || err != nil {
					t.Errorf("%s: Take = %q, %v, want its own", name, got, err)
				}
			}
		})
	}
}
