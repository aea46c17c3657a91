package outages

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// onRedis starts a Redis of one's own, and a server that keeps its sessions in
// it.
func onRedis(t *testing.T, args ...string) (*servers.RedisServer, *harness.Server) {
	t.Helper()
	r := servers.OwnRedis(t, args...)
	return r, harness.StartConfig(t, harness.Config{Backends: []string{"SELVAGE_DATABASE=" + servers.Postgres(t), "SELVAGE_SESSIONS=" + r.URL}})
}

// fallenBack waits until the server says that Redis is away, or is back.
func fallenBack(t *testing.T, s *harness.Server, away bool) {
	t.Helper()
	harness.Eventually(t, recovery, "readyz to tell of Redis", func() error {
		a := s.Get(t, s.Ops+"/readyz")
		if err := a.StatusIs(200); err != nil {
			return err
		}
		if told := strings.Contains(string(a.Body), "away"); told != away {
			return errMore(1)
		}
		return nil
	})
}

// Redis is stopped, hangs, takes no writes, is full or loses everything: logins go
// on in the database, nobody is told of it, and nothing that was used up or
// revoked comes back.
func TestRedis(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		begin, end func(t *testing.T, r *servers.RedisServer)
		unnoticed  bool // the server has no reason to leave Redis
	}{
		{"killed", func(t *testing.T, r *servers.RedisServer) { r.Kill(t) }, func(t *testing.T, r *servers.RedisServer) { r.StartEmpty(t) }, false},
		{"hangs", func(t *testing.T, r *servers.RedisServer) { r.Pause(t) }, func(t *testing.T, r *servers.RedisServer) { r.Resume(t) }, false},
		{"full", func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "CONFIG", "SET", "maxmemory", "1mb") }, func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "CONFIG", "SET", "maxmemory", "0") }, false},
		{"read-only", func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "REPLICAOF", "127.0.0.1", "1") }, func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "REPLICAOF", "NO", "ONE") }, false},
		{"flushed", func(t *testing.T, r *servers.RedisServer) { r.CLI(t, "FLUSHALL") }, func(*testing.T, *servers.RedisServer) {}, true},
	}
	r, s := onRedis(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := loadClients(t, s)
			tt.begin(t, r)
			if !tt.unnoticed {
				fallenBack(t, s, true)
			}
			c.working(t)
			tt.end(t, r)
			fallenBack(t, s, false)
			c.working(t)
			c.check(t)
		})
	}
}

// One of three masters is lost: logins go on, and go back once it returns.
func TestClusterLosesAMaster(t *testing.T) {
	t.Parallel()
	cluster := servers.OwnCluster(t, 0)
	s := harness.StartConfig(t, harness.Config{Backends: []string{"SELVAGE_DATABASE=" + servers.Postgres(t), "SELVAGE_SESSIONS=" + cluster.URL}})
	c := loadClients(t, s)
	cluster.Nodes[0].Kill(t)
	fallenBack(t, s, true)
	c.working(t)
	cluster.Nodes[0].Start(t)
	fallenBack(t, s, false)
	c.working(t)
	c.check(t)
}

// A server begins without Redis: it serves all the same, and takes Redis when it
// is there.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	r := servers.OwnRedis(t)
	r.Stop(t)
	backends := []string{"SELVAGE_DATABASE=" + servers.Postgres(t), "SELVAGE_SESSIONS=" + r.URL}
	harness.Binary(t)
	began := time.Now()
	s := harness.StartConfig(t, harness.Config{Backends: backends})
	if took := time.Since(began); took > recovery {
		t.Errorf("a start without Redis took %v", took)
	}
	c := loadClients(t, s)
	r.Start(t)
	fallenBack(t, s, false)
	c.working(t)
	c.check(t)
}
