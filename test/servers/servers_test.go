package servers

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPostgres shows that databases are separate, that they sort by the rules of a language, and
// that the role of a database cannot create other roles.
func TestPostgres(t *testing.T) {
	a, b := Postgres(t), Postgres(t)
	SQL(t, a, "CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('a'), ('B')")
	if got, want := SQL(t, a, "SELECT name FROM things ORDER BY name"), "a\nB"; got != want {
		t.Errorf("the sorted names are %q, want %q", got, want)
	}
	if got := SQL(t, b, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); got != "0" {
		t.Errorf("a second database has %s tables, want 0", got)
	}
	if out, err := psql(a, "CREATE ROLE x"); err == nil {
		t.Errorf("the role can create other roles: %s", out)
	}
}

// TestPostgresFaults shows that a server keeps its rows when it is stopped, killed or paused.
func TestPostgresFaults(t *testing.T) {
	p := OwnPostgres(t, "max_connections=20")
	url := p.Database(t)
	SQL(t, url, "CREATE TABLE things (id BIGINT)")

	for i, fault := range []func(){
		func() { p.Stop(t); p.Start(t) },
		func() { p.Kill(t); p.Start(t) },
		func() { p.Pause(t); p.Resume(t) },
	} {
		SQL(t, url, "INSERT INTO things VALUES (1)")
		fault()
		if got, want := len(SQL(t, url, "SELECT '.' FROM things")), 2*i+1; got != want {
			t.Errorf("after fault %d, the rows have %d bytes, want %d", i, got, want)
		}
	}

	if got := p.SQL(t, "SHOW max_connections"); got != "20" {
		t.Errorf("max_connections = %s, want 20", got)
	}
}

// TestPostgresPair shows that a promoted replica has every acknowledged transaction, and that the
// URL then connects to the replica.
func TestPostgresPair(t *testing.T) {
	p := OwnPostgresPair(t)
	url := p.Database(t)
	SQL(t, url, "CREATE TABLE things (id BIGINT); INSERT INTO things VALUES (1)")
	p.Primary.Kill(t)
	p.Promote(t)
	SQL(t, url, "INSERT INTO things VALUES (2)")
	if got := SQL(t, url, "SELECT count(*) FROM things"); got != "2" {
		t.Errorf("the promoted replica has %s rows, want 2", got)
	}
}

// TestRedis shows that each call of Redis returns a different database of the shared server.
func TestRedis(t *testing.T) {
	a, b := Redis(t), Redis(t)
	if a == b || !strings.HasPrefix(a, "redis://127.0.0.1:") {
		t.Errorf("Redis returned %s, then %s, want two different databases at 127.0.0.1", a, b)
	}
}

// TestRedisFaults shows that a server keeps its data when it is stopped, killed or paused, and
// loses the data only if it is started empty.
func TestRedisFaults(t *testing.T) {
	r := OwnRedis(t, "--requirepass", "secret")
	r.CLI(t, "SET", "k", "v")

	for _, tt := range []struct {
		name, want string
		fault      func()
	}{
		{"stopped", "v", func() { r.Stop(t); r.Start(t) }},
		{"killed", "v", func() { r.Kill(t); r.Start(t) }},
		{"paused", "v", func() { r.Pause(t); r.Resume(t) }},
		{"emptied", "", func() { r.Kill(t); r.StartEmpty(t) }},
	} {
		tt.fault()
		if got := r.CLI(t, "GET", "k"); got != tt.want {
			t.Errorf("%s: GET = %q, want %q", tt.name, got, tt.want)
		}
	}

	if !strings.HasPrefix(r.URL, "redis://:secret@") {
		t.Errorf("URL = %s, want the password in it", r.URL)
	}
}

// TestCluster shows that a cluster serves every key, that a replica takes over from a killed
// master, and that the shared cluster is started only once.
func TestCluster(t *testing.T) {
	c := OwnCluster(t, 1)
	for _, key := range []string{"a", "b", "c", "d"} {
		c.CLI(t, "SET", key, key)
		if got := c.CLI(t, "GET", key); got != key {
			t.Errorf("GET = %q, want %q", got, key)
		}
	}
	c.Nodes[0].Kill(t)
	check(t, poll("a replica to take over", func() error {
		return checkOutput(c.Nodes[1], "cluster_slots_ok:16384", "CLUSTER", "INFO")
	}))
	if a, b := Cluster(t), Cluster(t); a != b {
		t.Errorf("the shared cluster is %s, then %s, want the same one", a, b)
	}
}

// TestSentinel shows that a sentinel promotes the replica of a killed master.
func TestSentinel(t *testing.T) {
	s := OwnSentinel(t)
	s.Master.Kill(t)
	check(t, poll("a failover",
		func() error { return checkOutput(s.Replica, "role:master", "INFO", "replication") }))
	if !strings.HasPrefix(Sentinel(t), "redis-sentinel://selvage@127.0.0.1:") {
		t.Errorf("URL = %s, want a sentinel at 127.0.0.1", Sentinel(t))
	}
}

// TestEnd shows that a killed process leaves no servers and no files behind.
func TestEnd(t *testing.T) {
	if os.Getenv("SELVAGE_TEST_END") != "" {
		r, p := OwnRedis(t), OwnPostgres(t)
		os.Stdout.WriteString("\n" + r.dir + " " + p.dir + "\n")
		select {}
	}

	cmd := exec.Command(os.Args[0], "-test.run=^TestEnd$")
	cmd.Env = append(os.Environ(), "SELVAGE_TEST_END=1")
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())

	var dirs string
	for lines := bufio.NewReader(out); !strings.Contains(dirs, "selvage-servers-"); {
		dirs, err = lines.ReadString('\n')
		check(t, err)
	}

	check(t, cmd.Process.Kill())
	_ = cmd.Wait() // fails because the process was killed
	for _, dir := range strings.Fields(dirs) {
		check(t, poll("the directory to be removed", func() error {
			if _, err := os.Stat(dir); err == nil {
				return os.ErrExist
			}
			return checkUnmentioned(dir)
		}))
	}
}

// checkUnmentioned returns an error if the command line of a running process contains the text.
func checkUnmentioned(text string) error {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), text) {
			return fmt.Errorf("%s: %q", path, line)
		}
	}
	return err
}
