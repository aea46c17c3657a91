package store

import (
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// EachDatabase runs a test on every database there is.
func EachDatabase(t *testing.T, test func(t *testing.T, c Config)) {
	t.Run("sqlite", func(t *testing.T) { test(t, Config{Dir: t.TempDir()}) })
	t.Run("postgres", func(t *testing.T) { test(t, Config{URL: servers.Postgres(t)}) })
}

// freshServer gives the URL of an empty PostgreSQL database.
func freshServer(t *testing.T) string { return servers.Postgres(t) }
