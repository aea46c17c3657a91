// Package storetest provides data directories for tests. Their files are prepared once per process,
// because creating the schema and the keys would take most of each test's time. The package also
// adds the first rows that most tests need.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/test/servers"
)

// Dir returns a data directory. It contains an SQLite database that has only a key ring, and the
// master key of the ring. All directories in a process have the same keys. A test that needs other
// keys must start with an empty directory.
func Dir(t testing.TB) string {
	t.Helper()
	return copied(t, withRing)
}

// Rows returns a database like the one in [Dir], but without a ring, for tests that create their
// own keys.
func Rows(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, copied(t, prepared), nil)
}

// Key returns the audit key for a database without a ring.
func Key() *audit.Key {
	key, err := audit.NewKey(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return key
}

// copied returns a new directory with the prepared files.
func copied(t testing.TB, prepare func() (map[string][]byte, error)) string {
	t.Helper()
	files, err := prepare()
	check(t, err)
	dir := t.TempDir()
	for name, content := range files {
		check(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir
}

// Open opens the database in a directory and closes it at the end of the test.
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

// openRing opens the key ring in a directory, and makes the audit trail use its master key.
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

// prepared returns the files, by name, of a directory whose database has the schema.
var prepared = sync.OnceValues(func() (map[string][]byte, error) {
	return prepareFiles(func(string, *store.Store) error { return nil })
})

// withRing returns the files, by name, of a directory whose database has a key ring.
var withRing = sync.OnceValues(func() (map[string][]byte, error) {
	return prepareFiles(func(dir string, rows *store.Store) error {
		_, err := openRing(dir, rows, nil)
		return err
	})
})

// prepareFiles creates a database, runs do on it, and returns the files of its directory by name.
func prepareFiles(do func(dir string, rows *store.Store) error) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "selvage-prepared-")
	if err != nil {
		return nil, fmt.Errorf("making directory: %w", err)
	}
	defer os.RemoveAll(dir)

	rows, err := store.Open(context.Background(), store.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(do(dir, rows), rows.Close()); err != nil {
		return nil, err
	}
	return readFiles(dir)
}

// readFiles returns the files in a directory by name.
func readFiles(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[filepath.Base(path)] = content
	}
	return files, nil
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// AddProject adds a project whose media is public, and returns its id.
func AddProject(t testing.TB, rows *store.Store, now time.Time) string {
	t.Helper()
	p := fabric.Project{
		ID:         uuid.NewString(),
		Name:       "p",
		RecordRate: fabric.DefaultRecordRate,
		MediaAuth:  "public",
		Created:    now,
		Updated:    now,
	}
	check(t, rows.CreateProject(t.Context(), p))
	return p.ID
}

// AddSubscriber adds a subscriber with the address /private/name, and returns its id.
func AddSubscriber(t testing.TB, rows *store.Store, project, name string, now time.Time) string {
	t.Helper()
	sub := fabric.Subscriber{
		ID:        uuid.NewString(),
		ProjectID: project,
		Email:     name + "@example.com",
		Created:   now,
		Updated:   now,
	}
	address := fabric.Address{
		ID:         uuid.NewString(),
		ProjectID:  project,
		ResourceID: sub.ID,
		Type:       "subscriber",
		Context:    "private",
		Name:       name,
		Created:    now,
	}
	check(t, rows.CreateSubscriber(t.Context(), sub, address))
	return sub.ID
}

// Bucket opens a new bucket of an S3 server for media until the test ends.
func Bucket(t testing.TB) *blob.Bucket {
	t.Helper()
	server, name := servers.S3(t)
	endpoint, err := url.Parse(server.Endpoint)
	check(t, err)
	bucket, err := blob.OpenBucket(blob.BucketConfig{
		Endpoint:  *endpoint,
		Name:      name,
		Region:    "us-east-1",
		AccessKey: server.Access,
		SecretKey: server.Secret,
		Spool:     t.TempDir(),
	})
	check(t, err)
	t.Cleanup(func() { _ = bucket.Close() })
	return bucket
}

// Media opens a directory for media until the test ends. It creates the directory if it does not
// exist.
func Media(t testing.TB, path string) *blob.Dir {
	t.Helper()
	dir, err := blob.OpenDir(path)
	check(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}
