package store

import (
	"context"
	"errors"
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

// EachDatabase runs a test on every database there is. Each has its schema, since to
// make that anew would take most of a test's time. A server may take its time, too: how long the
// product waits for one is what package database tests.
func EachDatabase(t *testing.T, test func(t *testing.T, c Config)) {
	t.Run("sqlite", func(t *testing.T) {
		file, err := prepared()
		dir := t.TempDir()
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "selvage.db"), file, 0o600)); err != nil {
			t.Fatal(err)
		}
		test(t, Config{Dir: dir, Audit: auditKey(t)})
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, Config{URL: preparedServer(t), Audit: auditKey(t), Patience: time.Minute})
	})
}

// opened opens a store, and closes it with the test.
func opened(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// filled runs statements that make many rows, or look at them. On a server they go beside
// the store, whose connections give up what takes long, as it may on a machine that is busy.
func filled(t testing.TB, c Config, s *Store, statements ...string) {
	t.Helper()
	if database.IsServer(c.URL) {
		servers.SQL(t, c.URL, strings.Join(statements, ";\n")+";\n")
		return
	}
	for _, sql := range statements {
		if err := s.once(t.Context(), audit.None("a test"), func(tx tx) error { _, err := tx.Exec(t.Context(), sql); return err }); err != nil {
			t.Fatalf("%v of %s", err, sql)
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

// prepared returns the file of a database without rows.
var prepared = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "selvage-prepared-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := Open(context.Background(), Config{Dir: dir})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "selvage.db"))
})

// preparedServer returns the URL of a PostgreSQL database with the schema and without rows.
func preparedServer(t *testing.T) string {
	t.Helper()
	template.Do(func() {
		url := servers.Postgres(lasting{t})
		s, err := Open(context.Background(), Config{URL: url, Patience: time.Minute})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		template.url = url
	})
	if template.url == "" {
		t.Skip("there is no PostgreSQL, as the first test of it said")
	}
	return servers.PostgresLike(t, template.url)
}

var template struct {
	sync.Once
	url string
}

// A lasting T is that of the test which comes first; what it makes goes with the server.
type lasting struct{ *testing.T }

func (lasting) Cleanup(func()) {}

// freshServer returns the URL of an empty PostgreSQL database.
func freshServer(t *testing.T) string { return servers.Postgres(t) }
