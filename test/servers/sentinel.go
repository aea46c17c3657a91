package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// sentinelMaster is the name that the sentinel gives to its master.
const sentinelMaster = "selvage"

// A RedisSentinel is a Redis master with a replica and a sentinel. The sentinel promotes the
// replica when the master has been down for four seconds.
type RedisSentinel struct {
	Master, Replica *RedisServer // roles before any failover
	Sentinel        *RedisServer
	URL             string
}

// Sentinel returns the URL of a Redis master behind a sentinel. All tests share both.
func Sentinel(t T) string {
	t.Helper()
	if url := os.Getenv("SELVAGE_TEST_SENTINEL"); url != "" {
		return url
	}
	s, err := sharedSentinel()
	check(t, err)
	return s.URL
}

var sharedSentinel = sync.OnceValues(func() (*RedisSentinel, error) { return startSentinel(nil) })

// OwnSentinel starts a master, a replica and a sentinel that only this test uses. The master and
// the replica get args as additional arguments.
func OwnSentinel(t T, args ...string) *RedisSentinel {
	t.Helper()
	s, err := startSentinel(args)
	check(t, err)
	t.Cleanup(s.remove)
	return s
}

func (s *RedisSentinel) remove() {
	for _, r := range []*RedisServer{s.Sentinel, s.Replica, s.Master} {
		if r != nil {
			r.remove()
		}
	}
}

func startSentinel(args []string) (s *RedisSentinel, err error) {
	s = &RedisSentinel{}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()

	if s.Master, err = startRedis(args); err != nil {
		return s, err
	}
	if s.Replica, err = startRedis(append(
		[]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(s.Master.Port)}, args...)); err != nil {
		return s, err
	}

	if err := poll("a replica", func() error {
		return checkOutput(s.Replica, "master_link_status:up", "INFO", "replication")
	}); err != nil {
		return s, err
	}

	if s.Sentinel, err = newSentinel(s.Master.Port); err != nil {
		return s, err
	}
	if err := s.Sentinel.start(); err != nil {
		return s, err
	}
	s.URL = fmt.Sprintf("redis-sentinel://%s@127.0.0.1:%d", sentinelMaster, s.Sentinel.Port)
	return s, poll("a sentinel to know the replica", func() error {
		return checkOutput(s.Sentinel, "slaves=1,sentinels=1", "INFO", "sentinel")
	})
}

func newSentinel(master int) (*RedisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}

	dir, err := newPlace("sentinel", nil)
	if err != nil {
		return nil, err
	}

	// The sentinel writes what it learns to its configuration file.
	file := filepath.Join(dir, "sentinel.conf")
	config := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds %[3]s 4000\nsentinel failover-timeout %[3]s 3000\n",
		port, dir, sentinelMaster, master)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing configuration: %w", err)
	}
	r, err := newRedis(port, dir, nil)
	if err != nil {
		return nil, err
	}
	r.command = []string{r.command[0], file, "--sentinel"}
	return r, nil
}

// checkOutput returns an error unless the output of a command contains want.
func checkOutput(r *RedisServer, want string, command ...string) error {
	out, err := r.cli(command...)
	if err == nil && !strings.Contains(out, want) {
		err = fmt.Errorf("port %d does not report %s:\n%s", r.Port, want, out)
	}
	return err
}
