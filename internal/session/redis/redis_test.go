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

// TestPrefix shows that installations with different prefixes can share a Redis server, and do not
// see each other's entries.
func TestPrefix(t *testing.T) {
	for name, url := range map[string]func(servers.T) string{"Single": servers.Redis, "Cluster": servers.Cluster} {
		t.Run(name, func(t *testing.T) {
			ctx, address := t.Context(), url(t)
			stores := map[string]*Store{
				"none": open(t, Config{URL: address, Patience: patient}),
				"one":  open(t, Config{URL: address + "?prefix=one", Patience: patient}),
				"two":  open(t, Config{URL: address + "?prefix=two", Patience: patient}),
			}

			entry := session.Key{Kind: "login", ID: rand.Text()}
			count := session.Key{Kind: "count", ID: rand.Text()}
			limit := session.Key{Kind: "rate", ID: rand.Text()}
			rate := session.Rate{Burst: 1, Every: time.Hour}
			for prefix, s := range stores {
				if err := s.Add(ctx, entry, []byte(prefix), time.Minute); err != nil {
					t.Errorf("prefix %s: Add = %v, want nil", prefix, err)
				}
				if n, err := s.Incr(ctx, count, time.Minute); err != nil || n != 1 {
					t.Errorf("prefix %s: Incr = %d, %v, want 1", prefix, n, err)
				}
				if wait, err := s.Allow(ctx, limit, rate, 1); err != nil || wait != 0 {
					t.Errorf("prefix %s: Allow = %v, %v, want no wait", prefix, wait, err)
				}
				if err := s.Probe(ctx); err != nil {
					t.Errorf("prefix %s: Probe = %v, want nil", prefix, err)
				}
			}

			for prefix, s := range stores {
				if got, err := s.Take(ctx, entry); err != nil || string(got) != prefix {
					t.Errorf("prefix %s: Take = %q, %v, want %s", prefix, got, err, prefix)
				}
			}
		})
	}
}
