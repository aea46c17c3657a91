package servers

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// A PostgresPair is a PostgreSQL server with a streaming replica. A commit returns only after the
// replica has applied it, so a promoted replica has all acknowledged transactions.
type PostgresPair struct {
	Primary, Replica *PostgresServer // initial roles
}

// OwnPostgresPair starts a primary and its replica for a single test, with settings for both.
func OwnPostgresPair(t T, settings ...string) *PostgresPair {
	t.Helper()
	p := &PostgresPair{Primary: OwnPostgres(t, settings...)}
	replica, err := startReplica(p.Primary, settings)
	check(t, err)
	t.Cleanup(replica.remove)
	p.Replica = replica

	for _, setting := range []string{"synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'"} {
		p.Primary.SQL(t, "ALTER SYSTEM SET "+setting)
	}
	p.Primary.SQL(t, "SELECT pg_reload_conf()")
	check(t, poll("the replica to be synchronous", func() error {
		state, err := psql(p.Primary.URL, "SELECT sync_state FROM pg_stat_replication")
		if err == nil && state != "sync" {
			err = fmt.Errorf("the replica's state is %q, want sync", state)
		}
		return err
	}))
	return p
}

// Database returns the URL of a new empty database; see [Postgres]. The URL names both servers.
// Clients use the writable server.
func (p *PostgresPair) Database(t T) string {
	t.Helper()
	u, err := url.Parse(p.Primary.Database(t))
	check(t, err)
	u.Host += fmt.Sprintf(",127.0.0.1:%d", p.Replica.Port)
	return u.String()
}

// Promote makes the replica the primary. The old primary must have ended, because otherwise there
// would be two.
func (p *PostgresPair) Promote(t T) {
	t.Helper()
	if p.Primary.cmd != nil {
		t.Fatalf("the primary is still running")
	}
	p.Replica.SQL(t, "SELECT pg_promote(true, 60)")
}

// startReplica starts a streaming replica of a running server.
func startReplica(of *PostgresServer, settings []string) (*PostgresServer, error) {
	copyCommand, err := program("pg_basebackup")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := newPlace("replica", of.account)
	if err != nil {
		return nil, err
	}

	// Without --write-recovery-conf the copy would be an independent server.
	cmd := exec.Command(copyCommand, "--dbname", of.URL, "--pgdata", dir, "--write-recovery-conf",
		"--checkpoint", "fast", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: of.account}
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("copying a PostgreSQL cluster: %w\n%s", err, out)
	}

	from, to := fmt.Sprintf(":%d/", of.Port), fmt.Sprintf(":%d/", port)
	p := newPostgres(of.command[0], dir, port, strings.Replace(of.URL, from, to, 1), settings)
	p.account = of.account
	if err := p.start(); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// newPostgres returns a server that has not been started.
func newPostgres(program, dir string, port int, url string, settings []string) *PostgresServer {
	p := &PostgresServer{URL: url}
	p.Server = Server{
		Port: port, dir: dir, ending: syscall.SIGINT,
		dying:   syscall.SIGQUIT, // ends the server fast, but releases its shared memory
		command: []string{program, "-D", dir, "-p", strconv.Itoa(port)},
		ready:   func() error { _, err := psql(p.URL, "SELECT 1"); return err },
	}
	for _, s := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=32MB", "max_connections=300",
		"fsync=on", "wal_level=replica", "log_min_messages=warning",
	}, settings...) {
		p.command = append(p.command, "-c", s)
	}
	return p
}
