package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/test/servers"
)

// EachDatabase runs a test on SQLite and on PostgreSQL. The databases already have the schema, because creating
// it would take most of a test's time. The server gets a long timeout; package database tests the timeouts.
func EachDatabase(t *testing.T, test func(t *testing.T, c Config)) {
	t.Run("sqlite", func(t *testing.T) {
		file, err := prepared()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "selvage.db"), file, 0o600); err != nil {
			t.Fatal(err)
		}
		test(t, Config{Dir: dir, Audit: auditKey(t)})
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, Config{URL: preparedServer(t), Audit: auditKey(t), Patience: time.Minute})
	})
}

// opened opens a store and closes it at the end of the test.
func opened(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// filled runs statements that create or analyze many rows. On PostgreSQL it does not use the store,
// whose timeouts might be too short on a busy machine.
func filled(t testing.TB, c Config, s *Store, statements ...string) {
	t.Helper()
	if database.IsServer(c.URL) {
		servers.SQL(t, c.URL, strings.Join(statements, ";\n")+";\n")
		return
	}
	for _, statement := range statements {
		err := s.once(t.Context(), audit.None("a test"), func(tx tx) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		})
		if err != nil {
			t.Fatalf("%v for %s", err, statement)
		}
	}
}

func auditKey(t testing.TB) *audit.Key {
	t.Helper()
	key, err := audit.NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// prepared returns the contents of an SQLite file that has the schema but no rows.
var prepared = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "selvage-prepared-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := Open(context.Background(), Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "selvage.db"))
})

// preparedServer returns the URL of a PostgreSQL database that has the schema but no rows.
func preparedServer(t *testing.T) string {
	t.Helper()
	template.Do(func() {
		url := servers.Postgres(lasting{t})
		s, err := Open(context.Background(), Config{URL: url, Patience: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		template.url = url
	})

	if template.url == "" {
		t.Skip("PostgreSQL is not available, as the first test that needed it reported")
	}
	return servers.PostgresLike(t, template.url)
}

// template is the database that preparedServer copies.
var template struct {
	sync.Once
	url string
}

// lasting is a T without cleanup. A database that the first test creates with it exists until the
// server is stopped.
type lasting struct{ *testing.T }

func (lasting) Cleanup(func()) {}

// freshServer returns the URL of an empty PostgreSQL database.
func freshServer(t *testing.T) string { return servers.Postgres(t) }
