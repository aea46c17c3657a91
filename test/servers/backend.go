package servers

import (
	"crypto/rand"
	"os"
	"slices"
	"strings"
)

// Backends are the combinations of database and session store on which suites can run: everything
// in SQLite files, everything in PostgreSQL, PostgreSQL with sessions in Redis, and PostgreSQL with
// sessions in a Redis Cluster.
var Backends = []string{"sqlite", "postgres", "redis", "cluster"}

// BackendName returns the backend that SELVAGE_TEST_BACKEND chooses; the default is sqlite.
func BackendName(t T) string {
	t.Helper()
	name := os.Getenv("SELVAGE_TEST_BACKEND")
	if name == "" {
		return Backends[0]
	}
	if !slices.Contains(Backends, name) {
		t.Fatalf("SELVAGE_TEST_BACKEND is %q; there are %s", name, strings.Join(Backends, ", "))
	}
	return name
}

// Backend returns environment variables for selvage that name a new database and a new session store
// on the chosen backend. It returns none for SQLite. The database is dropped at the end of the test.
func Backend(t T) []string {
	t.Helper()
	return BackendLike(t, "")
}

// BackendLike is like [Backend], but with a copy of the database at the URL; see [PostgresLike]. If
// the URL is "", the database is empty. The sqlite backend ignores the URL.
func BackendLike(t T, database string) []string {
	t.Helper()
	name := BackendName(t)
	if name == "sqlite" {
		return nil // the default
	}

	rows := PostgresLike(t, database)
	sessions := rows
	switch name {
	case "redis":
		sessions = Redis(t)
	case "cluster":
		sessions = Cluster(t) + "?prefix=" + rand.Text() // the cluster is shared
	}
	return []string{"SELVAGE_DATABASE=" + rows, "SELVAGE_SESSIONS=" + sessions}
}
