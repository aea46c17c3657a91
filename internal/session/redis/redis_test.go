package redis

import (
	"testing"
	"time"

	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/sessiontest"
	"github.com/selvage/selvage/test/servers"
)

// patient is for tests that ask what the answer is and not when: the machine may
// be busy.
const patient = 10 * time.Second

// open gives a store at a URL, closed with the test.
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
	for name, url := range map[string]func(servers.T) string{"Single": servers.Redis, "Sentinel": servers.Sentinel, "Cluster": servers.Cluster} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{URL: url(t), Patience: patient})
			sessiontest.Run(t, func(t *testing.T) session.Store { return s })
		})
	}
}
