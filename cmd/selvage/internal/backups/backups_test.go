package backups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

func newKey(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// create backs up rows to a file.
func create(t *testing.T, rows *store.Store, to age.Recipient) backup.Archive {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.age")
	if _, err := (Backup{Rows: rows, To: []age.Recipient{to}}).Create(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	a, err := backup.Find(file)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// restore restores an archive into a new data directory, which has a master key.
func restore(t *testing.T, a backup.Archive, id age.Identity, database, master string) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	key, err := os.ReadFile(master)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	conf := config.Config{Data: dir, Database: config.DatabaseURL(database)}
	if err := conf.Media.UnmarshalText([]byte("dir:media")); err != nil {
		t.Fatal(err)
	}
	r := Restore{Config: conf, Archive: a, Identities: []age.Identity{id}, Progress: func(string) {}}
	_, _, err = r.Run(t.Context())
	return dir, err
}

// TestRestoreElsewhere restores a backup of SQLite into SQLite and into PostgreSQL, and the latter into SQLite
// again.
func TestRestoreElsewhere(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Open(t, dir, nil)
	project := storetest.AddProject(t, rows, time.Now())
	storetest.AddSubscriber(t, rows, project, "ada", time.Now())
	a := create(t, rows, id.Recipient())

	check := func(t *testing.T, c store.Config) *store.Store {
		t.Helper()
		restored, err := store.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = restored.Close() })
		if _, err := restored.FindProject(t.Context(), project); err != nil {
			t.Errorf("the project is not restored: %v", err)
		}
		return restored
	}
	t.Run("sqlite", func(t *testing.T) {
		dir, err := restore(t, a, id, "sqlite:selvage.db", master)
		if err != nil {
			t.Fatal(err)
		}
		check(t, store.Config{Dir: dir, Audit: storetest.Key()})
	})
	t.Run("postgres", func(t *testing.T) {
		url := servers.Postgres(t)
		if _, err := restore(t, a, id, url, master); err != nil {
			t.Fatal(err)
		}
		back := create(t, check(t, store.Config{URL: url, Audit: storetest.Key()}), id.Recipient())
		dir, err := restore(t, back, id, "sqlite:selvage.db", master)
		if err != nil {
			t.Fatal(err)
		}
		check(t, store.Config{Dir: dir, Audit: storetest.Key()})
		if _, err := restore(t, a, id, url, master); err == nil {
			t.Error("a database in use is restored over")
		}
	})
}

// TestRestoreOlderSchema restores a backup of each earlier schema. The rows get the newest one.
func TestRestoreOlderSchema(t *testing.T) {
	master := filepath.Join(storetest.Dir(t), "master.key")
	newest := schemaOf(t, storetest.Rows(t))
	for schema := int64(1); schema <= newest; schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			id := newKey(t)
			older, err := store.OpenFiller(t.Context(), store.FillConfig{
				Config: store.Config{Dir: t.TempDir(), Audit: storetest.Key()}, Schema: schema})
			if err != nil {
				t.Fatal(err)
			}
			defer older.Close()
			dir, err := restore(t, create(t, older.Store(), id.Recipient()), id, "sqlite:selvage.db", master)
			if err != nil {
				t.Fatal(err)
			}
			if got := schemaOf(t, storetest.Open(t, dir, nil)); got != newest {
				t.Errorf("the restored database has schema %d, want %d", got, newest)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".restoring*")); len(left) > 0 || err != nil {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

func schemaOf(t *testing.T, rows *store.Store) int64 {
	t.Helper()
	current, _, err := rows.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return current
}

// TestRestoreStops shows that a restore that is stopped leaves nothing in the data directory.
func TestRestoreStops(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	rows := storetest.Open(t, dir, nil)
	storetest.AddProject(t, rows, time.Now())
	a := create(t, rows, id.Recipient())
	target := t.TempDir()
	key, err := os.ReadFile(filepath.Join(dir, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(target, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	if err := os.Mkdir(filepath.Join(target, "media"), 0o700); err != nil { // such as a mount
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	conf := config.Config{Data: target, Database: "sqlite:selvage.db"}
	if err := conf.Media.UnmarshalText([]byte("dir:media")); err != nil {
		t.Fatal(err)
	}
	r := Restore{Config: conf, Archive: a, Identities: []age.Identity{id}, Progress: func(string) {
		if steps++; steps == 12 { // after the archive was checked
			cancel()
		}
	}}
	if _, _, err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want context.Canceled", err)
	}
	if entries, err := os.ReadDir(filepath.Join(target, "media")); len(entries) > 0 || err != nil {
		t.Errorf("left behind in media: %v, %v", entries, err)
	}

	entries, err := os.ReadDir(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "master.key" && name != "serve.lock" && name != "media" {
			t.Errorf("left behind: %s", name)
		}
	}
}
