package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/test/servers"
)

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("waited %v for %s: %v", time.Since(began), what, err)
		}
	}
}

// failing returns a check that succeeds if the probe fails for the given reason.
func failing(s *Store, reason string) func() error {
	return func() error {
		err := s.Probe(context.Background())
		if err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("Probe = %w, want %q in it", err, reason)
		}
		return nil
	}
}

// TestProbe shows that the probe fails while Redis accepts no writes, and succeeds once Redis
// accepts writes again.
func TestProbe(t *testing.T) {
	r := servers.OwnRedis(t)
	faults := []struct {
		name, reason string
		begin, end   func()
	}{
		{
			name:   "a replica",
			reason: "READONLY",
			begin:  func() { r.CLI(t, "REPLICAOF", "127.0.0.1", "1") },
			end:    func() { r.CLI(t, "REPLICAOF", "NO", "ONE") },
		},
		{
			name:   "full",
			reason: "OOM",
			begin:  func() { r.CLI(t, "CONFIG", "SET", "maxmemory", "1mb") },
			end:    func() { r.CLI(t, "CONFIG", "SET", "maxmemory", "0") },
		},
		{
			name:   "without replicas",
			reason: "NOREPLICAS",
			begin:  func() { r.CLI(t, "CONFIG", "SET", "min-replicas-to-write", "1") },
			end:    func() { r.CLI(t, "CONFIG", "SET", "min-replicas-to-write", "0") },
		},
		{
			name:   "paused",
			reason: "timeout",
			begin:  func() { r.Pause(t) },
			end:    func() { r.Resume(t) },
		},
		{
			name:   "dead",
			reason: "refused",
			begin:  func() { r.Kill(t) },
			end:    func() { r.Start(t) },
		},
		{
			name:   "locked",
			reason: "requires a password",
			begin: func() {
				r.CLI(t, "CONFIG", "SET", "requirepass", "x")
				r.CLI(t, "-a", "x", "CLIENT", "KILL", "TYPE", "normal")
			},
			end: func() { r.CLI(t, "-a", "x", "CONFIG", "SET", "requirepass", "") },
		},
	}

	s := open(t, Config{URL: r.URL})
	probe := func() error { return s.Probe(t.Context()) }
	for _, f := range faults {
		eventually(t, "a working Redis server", probe)
		f.begin()
		eventually(t, "a Redis that is "+f.name, failing(s, f.reason))
		f.end()
	}
	eventually(t, "a working Redis server", probe)
}

// TestProbeCluster shows that the probe fails if any master of a Cluster fails.
func TestProbeCluster(t *testing.T) {
	c := servers.OwnCluster(t, 0)
	s := open(t, Config{URL: c.URL})
	for _, n := range c.Nodes {
		eventually(t, "a complete cluster", func() error { return s.Probe(t.Context()) })
		n.Pause(t)
		eventually(t, "a cluster with a paused master", failing(s, "probing Redis"))

		n.Resume(t)
		eventually(t, "a complete cluster", func() error { return s.Probe(t.Context()) })
		n.CLI(t, "CONFIG", "SET", "maxmemory", "1mb")
		eventually(t, "a cluster with a full master", failing(s, "OOM"))
		n.CLI(t, "CONFIG", "SET", "maxmemory", "0")
	}
}

// TestFailover shows that a new master is found, both with Sentinels and in a Cluster.
func TestFailover(t *testing.T) {
	k := session.Key{Kind: "login", ID: "1"}
	watched, cluster := servers.OwnSentinel(t), servers.OwnCluster(t, 1)
	tests := map[string]struct {
		url  string
		kill func()
	}{
		"Sentinel": {watched.URL, func() { watched.Master.Kill(t) }},
		"Cluster":  {cluster.URL, func() { cluster.Nodes[0].Kill(t) }},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{URL: tt.url, Patience: patient})
			if err := s.Put(t.Context(), k, []byte("one"), time.Minute); err != nil {
				t.Fatal(err)
			}

			tt.kill()
			eventually(t, "a failing probe", failing(s, "probing Redis"))
			eventually(t, "a new master", func() error { return s.Probe(t.Context()) })
			if err := s.Put(t.Context(), k, []byte("two"), time.Minute); err != nil {
				t.Errorf("Put = %v, want success", err)
			}
		})
	}
}

// TestRestart shows that after the server restarts, old connections are not reused, and scripts are
// sent again.
func TestRestart(t *testing.T) {
	r := servers.OwnRedis(t)
	s := open(t, Config{URL: r.URL, Patience: patient})
	k := session.Key{Kind: "code", ID: "1"}

	var readers sync.WaitGroup
	for range 16 { // open many connections
		readers.Go(func() { _, _ = s.Get(t.Context(), k) })
	}
	readers.Wait()

	r.Stop(t)
	r.StartEmpty(t)
	if err := s.Put(t.Context(), k, []byte("one"), time.Minute); err != nil {
		t.Errorf("Put = %v, want success", err)
	}
	if got, err := s.Take(t.Context(), k); err != nil || string(got) != "one" {
		t.Errorf("Take = %q, %v, want one", got, err)
	}
}

// TestPaused shows that if the server pauses, reads may fail, but no caller gets the response to the
// request of another.
func TestPaused(t *testing.T) {
	r := servers.OwnRedis(t)
	s := open(t, Config{URL: r.URL})
	keys := make([]session.Key, 20)
	for i := range keys {
		keys[i] = session.Key{Kind: "login", ID: fmt.Sprint(i)}
		eventually(t, "an entry", func() error {
			return s.Put(t.Context(), keys[i], []byte(keys[i].ID), time.Minute)
		})
	}

	// readAll reads all entries concurrently, and returns how many reads failed.
	readAll := func() int {
		var failed atomic.Int64
		var readers sync.WaitGroup
		for _, k := range keys {
			readers.Go(func() {
				got, err := s.Get(t.Context(), k)
				if err != nil {
					failed.Add(1)
					return
				}
				if string(got) != k.ID {
					t.Errorf("Get(%s) = %q, want the id or an error", k.ID, got)
				}
			})
		}
		readers.Wait()
		return int(failed.Load())
	}

	r.Pause(t)
	if n := readAll(); n != len(keys) {
		t.Errorf("%d of %d reads of a paused Redis failed, want all", n, len(keys))
	}

	r.Resume(t)
	eventually(t, "answers", func() error {
		if n := readAll(); n > 0 {
			return fmt.Errorf("%d reads failed", n)
		}
		return nil
	})
}

// TestForeignValue shows that an entry whose value is of a different kind counts as absent and is
// not changed.
func TestForeignValue(t *testing.T) {
	r := servers.OwnRedis(t)
	s := open(t, Config{URL: r.URL, Patience: patient})
	k := session.Key{Kind: "login", ID: "1"}

	for _, foreign := range []string{"code:one", "log", "", "login"} {
		r.CLI(t, "SET", k.String(), foreign)
		if _, err := s.Get(t.Context(), k); !errors.Is(err, problem.NotFound) {
			t.Errorf("Get of %q = %v, want problem.NotFound", foreign, err)
		}
		if _, err := s.Take(t.Context(), k); !errors.Is(err, problem.NotFound) {
			t.Errorf("Take of %q = %v, want problem.NotFound", foreign, err)
		}
		err := s.CompareAndSwap(t.Context(), k, []byte("one"), []byte("two"), time.Minute)
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("CompareAndSwap of %q = %v, want problem.NotFound", foreign, err)
		}

		if got := r.CLI(t, "GET", k.String()); got != foreign {
			t.Errorf("the foreign value %q became %q, want no change", foreign, got)
		}
	}
}

// TestWithoutArguments shows that an error does not repeat what was sent to Redis.
func TestWithoutArguments(t *testing.T) {
	err := withoutArguments(errors.New(
		"ERR unknown command 'SET', with args beginning with: 'v1:code:{x}' 'code:one' 'hush'"))
	for _, sent := range []string{"v1:", "one", "hush"} {
		if strings.Contains(err.Error(), sent) {
			t.Errorf("the error is %q, want it without %q", err, sent)
		}
	}
}
