package backups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/recordings"
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

// keyOf returns the key for backups of an installation with the given master key.
func keyOf(t *testing.T, master string) backup.Key {
	t.Helper()
	key, err := keys.ReadMaster(master)
	if err != nil {
		t.Fatal(err)
	}
	return backup.Key{Secret: keys.BackupKeyOf(key), MasterKey: keys.Fingerprint(key)}
}

// create backs up rows to a file.
func create(t *testing.T, rows *store.Store, key backup.Key, to age.Recipient) backup.Archive {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.age")
	b := Backup{Rows: rows, Key: key, To: []age.Recipient{to}}
	if _, err := b.Create(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	a, err := backup.Find(file)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// restore restores an archive into a new data directory, with a copy of the file master as its master key.
func restore(t *testing.T, a backup.Archive, id age.Identity, database, master string) (dir string, err error) {
	t.Helper()
	r := restoreOf(t, a, id, database, master)
	_, _, err = r.Run(t.Context())
	return r.Config.Data, err
}

// restoreOf returns a Restore of an archive into a new data directory, like restore.
func restoreOf(t *testing.T, a backup.Archive, id age.Identity, database, master string) *Restore {
	t.Helper()
	dir := t.TempDir()
	key, err := os.ReadFile(master)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := config.Config{Data: dir, Database: config.DatabaseURL(database)}
	if err := conf.Media.UnmarshalText([]byte("dir:media")); err != nil {
		t.Fatal(err)
	}
	return &Restore{
		Config:     conf,
		Archive:    a,
		Identities: []age.Identity{id},
		Progress:   func(string) {},
	}
}

// auditKey returns the audit key of an installation with the given master key.
func auditKey(t *testing.T, master string) *audit.Key {
	t.Helper()
	key, err := keys.ReadMaster(master)
	if err != nil {
		t.Fatal(err)
	}
	chains, err := audit.NewKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// TestRestoreForged shows that a backup made without the master key is refused. The forger knows
// the recipient and the fingerprint, and can write any rows.
func TestRestoreForged(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Rows(t) // without a ring or an audit trail, which could reveal the forgery
	forged := backup.Key{MasterKey: keyOf(t, master).MasterKey}
	databases := map[string]string{"sqlite": "sqlite:selvage.db", "postgres": servers.Postgres(t)}
	for name, url := range databases {
		archive := create(t, rows, forged, id.Recipient())
		restored, err := restore(t, archive, id, url, master)
		if !errors.Is(err, backup.ErrForged) {
			t.Errorf("%s: restoring a forged backup = %v, want ErrForged", name, err)
		}
		if _, err := os.Stat(filepath.Join(restored, "selvage.db")); err == nil {
			t.Errorf("%s: restoring a forged backup created a database", name)
		}
	}

	forged.MasterKey = "0123456789abcdef"
	archive := create(t, rows, forged, id.Recipient())
	_, err := restore(t, archive, id, "sqlite:selvage.db", master)
	if err == nil || !strings.Contains(err.Error(), `a different master key: its fingerprint is "0123`) {
		t.Errorf("restoring the backup of another installation = %v, want an error about the master key", err)
	}
}

// TestRestoreBrokenAudit shows that a backup with a broken audit trail is refused, unless the caller
// accepts it.
func TestRestoreBrokenAudit(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Open(t, dir, nil) // its audit key does not belong to the master key
	storetest.AddProject(t, rows, time.Now())
	a := create(t, rows, keyOf(t, master), id.Recipient())
	restored, err := restore(t, a, id, "sqlite:selvage.db", master)
	if err == nil || !strings.Contains(err.Error(), "the audit trail in the backup is broken: lane 0, ") {
		t.Errorf("restoring a broken audit trail = %v, want an error that names lane 0", err)
	}

	if _, err := os.Stat(filepath.Join(restored, "selvage.db")); err == nil {
		t.Error("restoring a refused backup created a database")
	}
	r := restoreOf(t, a, id, "sqlite:selvage.db", master)
	r.AcceptBrokenAudit = true
	if _, _, err := r.Run(t.Context()); err != nil {
		t.Errorf("restoring an accepted trail = %v, want nil", err)
	}
}

// TestRestoreElsewhere shows that a backup of SQLite can be restored into SQLite and into PostgreSQL, and
// a backup of PostgreSQL into SQLite, but that a restore does not replace a database in use.
func TestRestoreElsewhere(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Open(t, dir, nil)
	storetest.Ring(t, dir, rows, nil)
	project := storetest.AddProject(t, rows, time.Now())
	storetest.AddSubscriber(t, rows, project, "ada", time.Now())
	a := create(t, rows, keyOf(t, master), id.Recipient())

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
		check(t, store.Config{Dir: dir, Audit: auditKey(t, master)})
	})
	t.Run("postgres", func(t *testing.T) {
		url := servers.Postgres(t)
		if _, err := restore(t, a, id, url, master); err != nil {
			t.Fatal(err)
		}
		restored := check(t, store.Config{URL: url, Audit: auditKey(t, master)})
		back := create(t, restored, keyOf(t, master), id.Recipient())
		dir, err := restore(t, back, id, "sqlite:selvage.db", master)
		if err != nil {
			t.Fatal(err)
		}
		check(t, store.Config{Dir: dir, Audit: auditKey(t, master)})
		if _, err := restore(t, a, id, url, master); err == nil {
			t.Error("a restore replaced a database in use")
		}
	})
}

// TestRestoreOlderSchema restores a backup of each earlier schema, and checks that the restored
// rows have the newest schema.
func TestRestoreOlderSchema(t *testing.T) {
	master := filepath.Join(storetest.Dir(t), "master.key")
	newest := schemaOf(t, storetest.Rows(t))
	for schema := int64(1); schema <= newest; schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			id := newKey(t)
			older, err := store.OpenFiller(t.Context(), store.FillConfig{
				Config: store.Config{Dir: t.TempDir(), Audit: storetest.Key()},
				Schema: schema,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer older.Close()

			a := create(t, older.Store(), keyOf(t, master), id.Recipient())
			dir, err := restore(t, a, id, "sqlite:selvage.db", master)
			if err != nil {
				t.Fatal(err)
			}

			if got := schemaOf(t, storetest.Open(t, dir, nil)); got != newest {
				t.Errorf("the restored database has schema %d, want %d", got, newest)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".restoring*"))
			if err != nil {
				t.Fatal(err)
			}
			if len(left) > 0 {
				t.Errorf("the restore left %q behind, want nothing", left)
			}
		})
	}
}

// TestRestoreAfterKill shows that a restore removes the directories of killed restores, but not the
// directory of a running one.
func TestRestoreAfterKill(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Open(t, dir, nil)
	storetest.Ring(t, dir, rows, nil)
	storetest.AddProject(t, rows, time.Now())
	a := create(t, rows, keyOf(t, master), id.Recipient())

	r := restoreOf(t, a, id, "sqlite:selvage.db", master)
	killed := filepath.Join(r.Config.Data, tempPrefix+"killed")
	running, remove, err := makeTemp(r.Config.Data)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{killed, running} {
		if err := os.MkdirAll(filepath.Join(name, "half"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}

	left := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(r.Config.Data, tempPrefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := left(); !slices.Equal(got, []string{running}) {
		t.Errorf("the restore left %q, want only the directory of the running restore, %s", got, running)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("the other restore left %q, want nothing", got)
	}
}

// TestPruneAfterMismatch shows that a new backup replaces older backups even if the media of a recording
// is missing.
func TestPruneAfterMismatch(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	rows := storetest.Open(t, dir, nil)
	path := filepath.Join(t.TempDir(), "media")
	media := storetest.Media(t, path)
	b := Backup{
		Rows:  rows,
		Media: media,
		Key:   keyOf(t, filepath.Join(dir, "master.key")),
		To:    []age.Recipient{id.Recipient()},
		Keep:  1,
	}
	target := t.TempDir()
	older, err := b.Create(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}

	wav, err := os.Open("../demo/welcome.wav")
	if err != nil {
		t.Fatal(err)
	}
	defer wav.Close()
	archive := recordings.New(recordings.Config{Store: rows, Media: media})
	_, _, err = archive.Ingest(t.Context(), recordings.Upload{
		ProjectID: storetest.AddProject(t, rows, time.Now()),
		Body:      wav,
		Describe:  func() (recordings.Description, error) { return recordings.Description{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}

	newer, err := b.Create(t.Context(), target)
	var mismatch *backup.Mismatch
	if !errors.As(err, &mismatch) {
		t.Fatalf("Create without the media = %v, want a Mismatch", err)
	}
	if !slices.Equal(newer.Removed, []string{older.Name}) {
		t.Errorf("Create removed %q, want %q", newer.Removed, older.Name)
	}
}

// noProgress is a Progress that counts nothing.
type noProgress struct{}

func (noProgress) ExpectThings(int) {}
func (noProgress) Steps(int)        {}

// TestCopyOfUnfinished shows that an unfinished copy, which may lack rows, is not accepted as the
// source of another copy. A finished copy is accepted.
func TestCopyOfUnfinished(t *testing.T) {
	databases := map[string]store.Config{
		"sqlite":   {Dir: t.TempDir()},
		"postgres": {URL: servers.Postgres(t)},
	}
	for name, c := range databases {
		t.Run(name, func(t *testing.T) {
			f, err := store.OpenFiller(t.Context(), store.FillConfig{Config: c})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()

			to := store.Config{Dir: t.TempDir()}
			_, err = Copy(t.Context(), c, to, noProgress{})
			if err == nil || !strings.Contains(err.Error(), "unfinished copy") {
				t.Errorf("copying an unfinished copy = %v, want an error about the unfinished copy", err)
			}

			if err := f.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := Copy(t.Context(), c, to, noProgress{}); err != nil {
				t.Errorf("copying a finished copy = %v, want nil", err)
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

// TestRestoreWithoutMedia shows that if a restore cannot move the media to its place, no server can use
// the restored rows, and a second restore into the same database succeeds.
func TestRestoreWithoutMedia(t *testing.T) {
	dir, id, url := storetest.Dir(t), newKey(t), servers.Postgres(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Open(t, dir, nil)
	storetest.Ring(t, dir, rows, nil)
	project := storetest.AddProject(t, rows, time.Now())
	a := create(t, rows, keyOf(t, master), id.Recipient())

	r := restoreOf(t, a, id, url, master)
	r.Progress = func(string) { // another program puts a file there during the restore
		if _, err := os.Stat(r.Config.MediaDir() + ".restoring"); err != nil {
			return
		}
		if err := os.MkdirAll(filepath.Join(r.Config.MediaDir(), "other"), 0o700); err != nil {
			t.Error(err)
		}
	}

	_, _, err := r.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "moving the media") {
		t.Fatalf("Run = %v, want an error about moving the media", err)
	}
	c := store.Config{URL: url, Audit: auditKey(t, master)}
	_, err = store.Open(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "unfinished copy") {
		t.Errorf("opening rows without their media = %v, want an error about the unfinished copy", err)
	}

	if _, err := restore(t, a, id, url, master); err != nil {
		t.Fatalf("the second restore: %v", err)
	}
	restored, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	if _, err := restored.FindProject(t.Context(), project); err != nil {
		t.Errorf("the project is not restored: %v", err)
	}
}

// TestRestoreIntoUsed shows that a restore that is refused, because a server on another machine uses the
// database, does not delete the media that this server has stored in the meantime.
func TestRestoreIntoUsed(t *testing.T) {
	dir, id, url := storetest.Dir(t), newKey(t), servers.Postgres(t)
	master := filepath.Join(dir, "master.key")
	rows := storetest.Open(t, dir, nil)
	storetest.Ring(t, dir, rows, nil)
	storetest.AddProject(t, rows, time.Now())
	a := create(t, rows, keyOf(t, master), id.Recipient())
	if _, err := restore(t, a, id, url, master); err != nil {
		t.Fatal(err)
	}

	r := restoreOf(t, a, id, url, master)
	media := r.Config.MediaDir()
	if err := os.Mkdir(media, 0o700); err != nil { // like the directory of a mount that all machines share
		t.Fatal(err)
	}
	stored := filepath.Join(media, "recording")
	r.Progress = func(string) {
		if err := os.WriteFile(stored, []byte("sound"), 0o600); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := r.Run(t.Context()); err == nil {
		t.Error("the restore replaced a database in use")
	}
	if _, err := os.Stat(stored); err != nil {
		t.Errorf("Stat of the stored media = %v, want nil", err)
	}
}

// TestRestoreStops shows that an interrupted restore leaves nothing in the data directory.
func TestRestoreStops(t *testing.T) {
	dir, id := storetest.Dir(t), newKey(t)
	rows := storetest.Open(t, dir, nil)
	storetest.AddProject(t, rows, time.Now())
	master := filepath.Join(dir, "master.key")
	a := create(t, rows, keyOf(t, master), id.Recipient())
	r := restoreOf(t, a, id, "sqlite:selvage.db", master)
	target := r.Config.Data
	media := filepath.Join(target, "media")
	if err := os.Mkdir(media, 0o700); err != nil { // like the directory of a mount
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := 0
	r.Progress = func(string) {
		steps++
		const afterCheck = 12 // the archive has been checked, and the restore has begun to write
		if steps == afterCheck {
			cancel()
		}
	}
	if _, _, err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want context.Canceled", err)
	}

	left, err := os.ReadDir(media)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the restore left %v behind in media, want nothing", left)
	}

	left, err = os.ReadDir(target)
	if err != nil {
		t.Fatal(err)
	}
	kept := []string{"master.key", "media", "serve.lock"}
	for _, entry := range left {
		if !slices.Contains(kept, entry.Name()) {
			t.Errorf("the restore left %s behind, want only %q", entry.Name(), kept)
		}
	}
}
