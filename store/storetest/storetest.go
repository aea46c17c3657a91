// Package storetest gives tests a data directory in which a server was begun before:
// to make the schema and the keys anew would take most of a test's time.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// Dir returns a data directory with the rows of an SQLite database, which has a key
// ring and nothing else, and the master key of that. Those of one process have the
// same keys: who needs others begins in an empty directory.
func Dir(t testing.TB) string {
	t.Helper()
	return copied(t, begun)
}

// Rows returns rows as [Dir] has them, without a ring, for who makes keys of its own.
func Rows(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, copied(t, prepared), nil)
}

// Key returns the key of audit chains for rows without a ring.
func Key() *audit.Key {
	key, err := audit.NewKey(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return key
}

func copied(t testing.TB, made func() (map[string][]byte, error)) string {
	t.Helper()
	files, err := made()
	dir := t.TempDir()
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	check(t, err)
	return dir
}

// Open opens the rows in a directory, and closes them with the test.
func Open(t testing.TB, dir string, now func() time.Time) *store.Store {
	t.Helper()
	rows, err := store.Open(context.Background(), store.Config{Dir: dir, Now: now, Audit: Key()})
	check(t, err)
	t.Cleanup(func() { _ = rows.Close() })
	return rows
}

// Ring opens the key ring in a directory.
func Ring(t testing.TB, dir string, rows *store.Store, now func() time.Time) *keys.Ring {
	t.Helper()
	ring, err := openRing(dir, rows, now)
	check(t, err)
	return ring
}

func openRing(dir string, rows *store.Store, now func() time.Time) (*keys.Ring, error) {
	master, err := keys.ReadMaster(filepath.Join(dir, "master.key"))
	if err != nil {
		return nil, err
	}
	chains, err := audit.NewKey(master)
	if err != nil {
		return nil, err
	}
	rows.AuditBy(chains)
	if err := rows.SealAudit(context.Background()); err != nil {
		return nil, err
	}
	return keys.Open(context.Background(), keys.Config{Store: rows, Master: master, Now: now})
}

// prepared returns the files of a directory with the schema, by their names.
var prepared = sync.OnceValues(func() (map[string][]byte, error) {
	return made(func(string, *store.Store) error { return nil })
})

// begun returns the files of a directory in which a server was begun.
var begun = sync.OnceValues(func() (map[string][]byte, error) {
	return made(func(dir string, rows *store.Store) error {
		_, err := openRing(dir, rows, nil)
		return err
	})
})

// made returns the files of a directory in which something was done.
func made(do func(dir string, rows *store.Store) error) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "selvage-begun-")
	if err != nil {
		return nil, fmt.Errorf("making directory: %w", err)
	}
	defer os.RemoveAll(dir)
	rows, err := store.Open(context.Background(), store.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err = errors.Join(do(dir, rows), rows.Close()); err != nil {
		return nil, err
	}
	return read(dir)
}

func read(dir string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	files := make(map[string][]byte)
	for _, name := range names {
		content, readErr := os.ReadFile(name)
		files[filepath.Base(name)] = content
		err = errors.Join(err, readErr)
	}
	return files, err
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
