package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/test/servers"
)

// EachDatabase runs a test on every database there is. An SQLite file has its schema,
// since to make that anew would take most of a test's time.
func EachDatabase(t *testing.T, test func(t *testing.T, c Config)) {
	t.Run("sqlite", func(t *testing.T) {
		file, err := prepared()
		dir := t.TempDir()
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "selvage.db"), file, 0o600)); err != nil {
			t.Fatal(err)
		}
		test(t, Config{Dir: dir, Audit: auditKey(t)})
	})
	t.Run("postgres", func(t *testing.T) { test(t, Config{URL: servers.Postgres(t), Audit: auditKey(t)}) })
}

func auditKey(t *testing.T) *audit.Key {
	t.Helper()
	key, err := audit.NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// prepared gives the file of a database without rows.
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

// freshServer gives the URL of an empty PostgreSQL database.
func freshServer(t *testing.T) string { return servers.Postgres(t) }
