package outages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// startOnRedis starts a Redis for this test, and a server that stores its sessions in it.
func startOnRedis(t *testing.T, args ...string) (*servers.RedisServer, *harness.Server) {
	t.Helper()
	r := servers.OwnRedis(t, args...)
	return r, harness.StartConfig(t, harness.Config{Backends: []string{"SELVAGE_DATABASE=" +
		servers.Postgres(t), "SELVAGE_SESSIONS=" + r.URL}})
}

// waitRedis waits until the server reports that Redis is unavailable or, if away is false,
// available.
func waitRedis(t *testing.T, s *harness.Server, away bool) {
	t.Helper()
	harness.Eventually(t, recovery, "readyz to report on Redis", func() error {
		a := s.Get(t, s.Ops+"/readyz")
		if err := a.StatusIs(200); err != nil {
			return err
		}
		if reported := strings.Contains(string(a.Body), "Redis has been unavailable"); reported != away {
			return fmt.Errorf("readyz reports Redis unavailable = %v, want %v: %s", reported, away, a.Body)
		}
		return nil
	})
}

// TestRedisFlushed empties Redis. Logins in progress must start again, and nothing else is lost.
func TestRedisFlushed(t *testing.T) {
	t.Parallel()
	r, s := startOnRedis(t)
	c := loadClients(t, s)
	for range 3 {
		r.CLI(t, "FLUSHALL")
		c.working(t)
	}
	c.check(t)
}

// TestClusterLosesAMaster kills one of three masters. Logins continue without the cluster. When the
// master is back, they use the cluster again.
func TestClusterLosesAMaster(t *testing.T) {
	t.Parallel()
	cluster := servers.OwnCluster(t, 0)
	s := harness.StartConfig(t, harness.Config{Backends: []string{"SELVAGE_DATABASE=" + servers.Postgres(t),
		"SELVAGE_SESSIONS=" + cluster.URL}})
	c := loadClients(t, s)

	cluster.Nodes[0].Kill(t)
	waitRedis(t, s, true)
	c.working(t)

	cluster.Nodes[0].Start(t)
	waitRedis(t, s, false)
	c.working(t)

	c.check(t)
}

// TestStartWithoutRedis starts a server while Redis is unavailable. The server works without Redis,
// and uses Redis when it becomes available.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	r := servers.OwnRedis(t)
	r.Stop(t)
	backends := []string{"SELVAGE_DATABASE=" + servers.Postgres(t), "SELVAGE_SESSIONS=" + r.URL}

	harness.Binary(t)
	began := time.Now()
	s := harness.StartConfig(t, harness.Config{Backends: backends})
	if took := time.Since(began); took > recovery {
		t.Errorf("starting without Redis took %v, want at most %v", took, recovery)
	}

	c := loadClients(t, s)
	r.Start(t)
	waitRedis(t, s, false)
	c.working(t)
	c.check(t)
}
