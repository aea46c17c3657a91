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
	locked := servers.OwnRedis(t, "--requirepass", "right")
	cluster, sentinel := servers.Cluster(t), servers.Sentinel(t)
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
		t.Run(tt.url, func(t *testing.T) {
			// A server that responds slowly counts as unreachable, so Open returns no error. In this
			// case, try again.
			var refusal error
			eventually(t, "a refusal", func() error {
				s, err := Open(t.Context(), Config{URL: tt.url, Patience: patient})
				if err == nil {
					_ = s.Close()
					return errors.New("Open returned no error")
				}
				refusal = err
				return nil
			})

			if !strings.Contains(refusal.Error(), tt.want) {
				t.Errorf("Open = %v, want an error that contains %q", refusal, tt.want)
			}
			for _, secret := range []string{"right@", "v1:"} {
				if strings.Contains(refusal.Error(), secret) {
					t.Errorf("Open = %v, want an error without %q", refusal, secret)
				}
			}
		})
	}
}

// TestAccount shows that the documented permissions are sufficient.
func TestAccount(t *testing.T) {
	single := servers.OwnRedis(t, "--requirepass", "right")
	for _, tt := range []struct {
		user, permissions string
		database          string // the end of the URL
	}{
		{user: "lean", permissions: account},
		{user: "chooser", permissions: account + " +select", database: "/1"},
	} {
		setUser(t, single, tt.user, tt.permissions)
		url := fmt.Sprintf("redis://%s:pass@127.0.0.1:%d%s", tt.user, single.Port, tt.database)
		s := open(t, Config{URL: url, Patience: patient})
		eventually(t, "the probe of a lean account", func() error { return s.Probe(t.Context()) })
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if save := info.Servers[0].Save; save != "?" {
			t.Errorf("the times of snapshots are %q, want ?, because the account may not read them", save)
		}
	}

	cluster := servers.OwnCluster(t, 0)
	for _, n := range cluster.Nodes {
		setUser(t, n, "lean", account+" +cluster|slots")
	}
	s := open(t, Config{URL: strings.Replace(cluster.URL, "//", "//lean:pass@", 1), Patience: patient})
	eventually(t, "the probe of a lean account of a cluster", func() error { return s.Probe(t.Context()) })
}

// setUser creates an account with the password pass, which may use only the keys of this program.
func setUser(t *testing.T, r *servers.RedisServer, user, permissions string) {
	t.Helper()
	rules := append([]string{"ACL", "SETUSER", user, "on", ">pass", "~v1:*"}, strings.Fields(permissions)...)
	r.CLI(t, rules...)
}

// TestOpenUnreachable shows that if Redis is unreachable, Open succeeds and Probe fails.
func TestOpenUnreachable(t *testing.T) {
	for _, url := range []string{
		"redis://127.0.0.1:1",
		"rediss://127.0.0.1:1",
		"redis-cluster://127.0.0.1:1,127.0.0.1:2",
		"redis-sentinel://main@127.0.0.1:1",
	} {
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
		{url: servers.Redis(t), mode: Single, masters: 1},
		{url: servers.Sentinel(t), mode: Sentinel, masters: 1},
		{url: servers.Cluster(t), mode: Cluster, masters: 3},
	}

	for _, tt := range tests {
		t.Run(string(tt.mode), func(t *testing.T) {
			info, err := open(t, Config{URL: tt.url, Patience: patient}).Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode != tt.mode {
				t.Errorf("the mode is %s, want %s", info.Mode, tt.mode)
			}
			if n := len(info.Servers); n != tt.masters {
				t.Errorf("there are %d masters, want %d", n, tt.masters)
			}

			for _, s := range info.Servers {
				if s.Version == "" || s.Clock.IsZero() || s.Used == 0 {
					t.Errorf("a master has the version %q, the time %v and %d bytes in use, want all of them",
						s.Version, s.Clock, s.Used)
				}
				if s.Policy != "noeviction" {
					t.Errorf("the policy of a master is %s, want noeviction", s.Policy)
				}
				if !s.AOF {
					t.Error("a master has no append-only file")
				}
				if s.Save != "" {
					t.Errorf("a master saves snapshots at %q, want none", s.Save)
				}
			}
		})
	}
}
