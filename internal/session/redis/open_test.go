package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// account holds the ACL rules for an account that may run only the commands listed in
// docs/redis.md.
const account = "+get +set +del +incr +pexpire +eval +evalsha +info +time"

func TestOpenRefuses(t *testing.T) {
	locked, cluster, sentinel := servers.OwnRedis(t, "--requirepass", "right"), servers.Cluster(t),
		servers.Sentinel(t)
	at := fmt.Sprintf("127.0.0.1:%d", locked.Port)
	locked.CLI(t, "ACL", "SETUSER", "reader", "on", ">pass", "~v1:*", "+get")
	locked.CLI(t, "ACL", "SETUSER", "stranger", "on", ">pass", "~v2:*", "+@all")

	node, _, _ := strings.Cut(strings.TrimPrefix(cluster, "redis-cluster://"), ",")
	guard := sentinel[strings.LastIndex(sentinel, "@")+1:]

	tests := []struct{ url, want string }{
		{"redis://:wrong@" + at, "rejects the URL's user and password"},
		{"redis://nobody:right@" + at, "rejects the URL's user and password"},
		{"redis://" + at, "requires a password"},
		{"redis://reader:pass@" + at, "the account lacks a permission"},
		{"redis://stranger:pass@" + at, "the account lacks a permission"},
		{"redis://:right@" + at + "/60000", "has no database 60000"},
		{"redis://" + node, "write redis-cluster://"},
		{"redis://" + guard, "write redis-sentinel://"},
		{"redis-cluster://:right@" + at, "write redis://"},
		{"redis-cluster://" + guard, "it lacks a required command"},
		{"redis-sentinel://main@" + node, "it is not a Sentinel"},
		{"redis-sentinel://main@" + guard, `do not know a master named "main"`},
	}

	for _, tt := range tests {
		var err error

		// If the server responds slowly, it counts as unreachable, and Open does not return an
		// error. So try again.
		eventually(t, "a refusal of "+tt.url, func() error {
			s, refused := Open(t.Context(), Config{URL: tt.url, Patience: patient})
			if err = refused; err == nil {
				_ = s.Close()
				return errors.New("it was opened")
			}
			return nil
		})

		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "right@") ||
			strings.Contains(err.Error(), "v1:") {
			t.Errorf("Open(%s) = %v, want %q in it", tt.url, err, tt.want)
		}
	}
}

// TestAccount shows that the documented permissions are sufficient.
func TestAccount(t *testing.T) {
	single := servers.OwnRedis(t, "--requirepass", "right")
	for name, more := range map[string]string{"lean": account, "/1": account + " +select"} {
		user, database := "lean", ""
		if name != user {
			user, database = "chooser", name
		}
		single.CLI(t, append([]string{"ACL", "SETUSER", user, "on", ">pass", "~v1:*"}, strings.Fields(more)...)...)
		s := open(t, Config{URL: fmt.Sprintf("redis://%s:pass@127.0.0.1:%d%s", user, single.Port, database),
			Patience: patient})
		eventually(t, "the probe of a lean account", func() error { return s.Probe(t.Context()) })
		if info, err := s.Info(t.Context()); err != nil || info.Servers[0].Save != "?" {
			t.Errorf("Info = %+v, %v, want the times of snapshots unknown", info, err)
		}
	}

	cluster := servers.OwnCluster(t, 0)
	for _, n := range cluster.Nodes {
		n.CLI(t, append([]string{"ACL", "SETUSER", "lean", "on", ">pass", "~v1:*", "+cluster|slots"},
			strings.Fields(account)...)...)
	}
	s := open(t, Config{URL: strings.Replace(cluster.URL, "//", "//lean:pass@", 1), Patience: patient})
	eventually(t, "the probe of a lean account of a cluster", func() error { return s.Probe(t.Context()) })
}

// TestOpenUnreachable shows that if Redis is unreachable, Open succeeds and Probe fails.
func TestOpenUnreachable(t *testing.T) {
	for _, url := range []string{"redis://127.0.0.1:1", "rediss://127.0.0.1:1",
		"redis-cluster://127.0.0.1:1,127.0.0.1:2", "redis-sentinel://main@127.0.0.1:1"} {
		s := open(t, Config{URL: url})
		if err := s.Probe(t.Context()); err == nil {
			t.Errorf("Probe at %s = nil, want an error", url)
		}
	}
}

func TestInfo(t *testing.T) {
	tests := []struct {
		url     string
		mode    Mode
		masters int
	}{
		{servers.Redis(t), Single, 1}, {servers.Sentinel(t), Sentinel, 1}, {servers.Cluster(t), Cluster, 3},
	}

	for _, tt := range tests {
		info, err := open(t, Config{URL: tt.url, Patience: patient}).Info(t.Context())
		if err != nil || info.Mode != tt.mode || len(info.Servers) != tt.masters {
			t.Fatalf("Info = %+v, %v, want %s with %d masters", info, err, tt.mode, tt.masters)
		}

		for _, s := range info.Servers {
			if s.Version == "" || s.Clock.IsZero() || s.Policy != "noeviction" || !s.AOF || s.Save != "" ||
				s.Used == 0 {
				t.Errorf("Info = %+v, want a version, a time, noeviction, AOF and no snapshots", s)
			}
		}
	}
}
