package servers

import (
	"crypto/rand"
	"os"
	"slices"
	"strings"
)

// Backends are the ways to keep rows and sessions that every suite runs on: all in
// files; all in PostgreSQL; sessions in Redis; sessions in a Redis Cluster.
var Backends = []string{"sqlite", "postgres", "redis", "cluster"}

// BackendName is the backend that SELVAGE_TEST_BACKEND chooses, sqlite if none.
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

// Backend returns the environment in which selvage keeps rows and sessions in
// something new on the chosen backend. It is gone with the test.
func Backend(t T) []string {
	t.Helper()
	return BackendLike(t, "")
}

// BackendLike is Backend with the rows that a database has, as [PostgresLike] copies
// them; "" has none, as a file of SQLite.
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
		sessions = Cluster(t) + "?prefix=" + rand.Text() // it is shared
	}
	return []string{"SELVAGE_DATABASE=" + rows, "SELVAGE_SESSIONS=" + sessions}
}
