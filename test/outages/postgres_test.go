package outages

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// startOnPostgres starts a PostgreSQL for this test, and a server that stores everything in it.
func startOnPostgres(t *testing.T, settings ...string) (*servers.PostgresServer, *harness.Server) {
	t.Helper()
	p := servers.OwnPostgres(t, settings...)
	url := p.Database(t)
	return p, harness.StartConfig(t, harness.Config{Backends: []string{"SELVAGE_DATABASE=" + url,
		"SELVAGE_SESSIONS=" + url}})
}

// TestPostgresRestarts stops PostgreSQL under load, kills it later, and restarts it each time.
// While it is down, requests get a 503 with Retry-After.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	p, s := startOnPostgres(t)
	c := loadClients(t, s)

	p.Stop(t)
	p.Start(t)
	c.working(t)

	p.Kill(t)
	p.Start(t)
	c.working(t)

	c.check(t)
}

// TestPostgresHangs pauses PostgreSQL. No request waits forever, and nothing is lost.
func TestPostgresHangs(t *testing.T) {
	t.Parallel()
	p, s := startOnPostgres(t)
	c := loadClients(t, s)

	p.Pause(t)
	harness.Eventually(t, recovery, "a refusal while the database hangs", func() error {
		return s.Get(t, s.Ops+"/readyz").StatusIs(503)
	})

	p.Resume(t)
	c.working(t)
	c.check(t)
}

// TestPostgresIsFull makes PostgreSQL refuse all connections, as if other programs used them all.
// Requests get a 503 with Retry-After, and the pool recovers afterwards.
func TestPostgresIsFull(t *testing.T) {
	t.Parallel()
	p, s := startOnPostgres(t)
	c := loadClients(t, s)

	limit := func(n int) {
		p.SQL(t, fmt.Sprintf(`DO $$ BEGIN
			EXECUTE (SELECT format('ALTER ROLE %%I CONNECTION LIMIT %d', rolname)
				FROM pg_roles WHERE rolname LIKE 'test\_%%');
			END $$`, n))
	}

	limit(0)
	p.SQL(t, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'selvage%'`)
	harness.Eventually(t, recovery, "a refusal while no connection is permitted", func() error {
		return s.Get(t, s.Ops+"/readyz").StatusIs(503)
	})

	limit(-1)
	c.working(t)
	c.check(t)
}

// TestPostgresLock locks a table for longer than any request waits. During that time, requests get
// a 503. Afterwards, no connection waits for the lock.
func TestPostgresLock(t *testing.T) {
	t.Parallel()
	p, s := startOnPostgres(t)
	c := loadClients(t, s)

	url := s.Backends[0][len("SELVAGE_DATABASE="):]
	servers.SQL(t, url, `BEGIN; LOCK TABLE grants IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(5); COMMIT`)
	c.working(t)
	c.check(t)

	waiting := p.SQL(t, `SELECT count(*) FROM pg_stat_activity
		WHERE application_name LIKE 'selvage%' AND wait_event_type = 'Lock'`)
	if waiting != "0" {
		t.Errorf("%s connections still wait for a lock", waiting)
	}
}

// TestPostgresSerializable makes transactions serializable by default, as a database administrator
// might. Transactions that fail because of this setting are retried.
func TestPostgresSerializable(t *testing.T) {
	t.Parallel()
	_, s := startOnPostgres(t, "default_transaction_isolation=serializable")
	c := loadClients(t, s)
	c.working(t)
	c.check(t)
	harness.RefreshAtOnce(t, s.NewProject(t))
	harness.ReferAtOnce(t, s.NewProject(t))
}
