package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// A Restore restores a backup into an installation that has no data yet.
type Restore struct {
	Config     config.Config // where the rows and the media go, and the master key
	Archive    backup.Archive
	Identities []age.Identity
	Progress   func(done string)

	AcceptBrokenAudit bool // restore the audit trail even if it has breaks

	header   backup.Header
	manifest backup.Manifest
	ring     []keys.Record
	masters  []keys.MasterRecord
	master   []byte
	placed   bool // the media is in place
}

// Run restores the backup. In this order, it
//
//   - checks that the target is empty, that the whole archive is intact, that it was made with the
//     master key, and that the master key opens the archive's ring; until then, nothing is written,
//   - writes media and rows to new files, and compares the rows with the manifest,
//   - updates the schema, verifies the audit trail, and ends all logins and tokens,
//   - moves the files to their places, the database last. In PostgreSQL, servers can use it from then on.
//
// If it fails, it removes what it has written, except for media that is already in place. In
// PostgreSQL it leaves an unfinished copy, which no server uses. A backup of the same version can
// be restored into it.
func (r *Restore) Run(ctx context.Context) (backup.Header, backup.Manifest, error) {
	err := r.run(ctx)
	return r.header, r.manifest, err
}

func (r *Restore) run(ctx context.Context) (err error) {
	unlock, err := r.checkTarget()
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.check(ctx); err != nil {
		return err
	}

	// This is on the file system of the database, so that the file can be moved there.
	temp, err := os.MkdirTemp(filepath.Dir(r.databaseFile()), ".restoring-")
	if err != nil {
		return fmt.Errorf("creating a directory for the restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	media, discard, err := r.mediaTarget()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !r.placed {
			err = errors.Join(err, discard())
		}
	}()

	rows := store.Config{URL: string(r.Config.Database), Dir: r.Config.Data, Patience: patience}
	if !r.Config.Database.Shared() {
		rows.URL, rows.Dir = "sqlite:restored.db", temp
	}
	if err := r.load(ctx, rows, media); err != nil {
		return err
	}
	if err := r.end(ctx, rows, media); err != nil {
		return err
	}
	if r.Config.Database.Shared() {
		return nil
	}
	if err := os.Rename(filepath.Join(temp, "restored.db"), r.databaseFile()); err != nil {
		return fmt.Errorf("moving the database to its place: %w", err)
	}
	return syncDir(filepath.Dir(r.databaseFile()))
}

// patience limits how long a statement may run on a PostgreSQL server that is being filled.
const patience = 10 * time.Minute

// mediaTarget returns the directory to write the media to. It is the media directory if that exists, since
// it may be a mount. discard removes what was written.
func (r *Restore) mediaTarget() (dir string, discard func() error, err error) {
	dir = r.Config.MediaDir()
	if _, err := os.Stat(dir); err == nil {
		return dir, func() error { return empty(dir) }, nil
	}
	dir += ".restoring"
	discard = func() error { return os.RemoveAll(dir) }
	return dir, discard, discard() // a restore that was killed may have left it
}

// empty removes everything in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// placeMedia moves the media to its place, if it is not there already.
func (r *Restore) placeMedia(from string) error {
	to := r.Config.MediaDir()
	if from != to {
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("moving the media to its place: %w", err)
		}
	}
	r.placed = true
	return syncDir(filepath.Dir(to))
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// databaseFile returns the path of the SQLite database.
func (r *Restore) databaseFile() string {
	file := strings.TrimPrefix(string(r.Config.Database), "sqlite:")
	if r.Config.Database.Shared() {
		file = "selvage.db" // not used
	}
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(r.Config.Data, file)
}

// checkTarget checks that no server uses the data directory, and that a restore would replace nothing in it.
// It keeps servers out of the directory until unlock is called.
func (r *Restore) checkTarget() (unlock func(), err error) {
	if err := datadir.Make(r.Config.Data); err != nil {
		return nil, err
	}
	lock, err := datadir.Lock(r.Config.Data)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()

	inUse := func(what string) error {
		return fmt.Errorf("%s exists: a restore needs a new data directory, with nothing but the master key", what)
	}
	if !r.Config.Database.Shared() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if _, err := os.Lstat(r.databaseFile() + suffix); err == nil {
				return nil, inUse(r.databaseFile() + suffix)
			}
		}
	}
	files, err := os.ReadDir(r.Config.MediaDir())
	if err == nil && len(files) > 0 {
		return nil, inUse(r.Config.MediaDir())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// check reads the whole archive without writing anything, and the master key.
func (r *Restore) check(ctx context.Context) (err error) {
	if r.master, err = MasterKey(r.Config); err != nil {
		return err
	}
	_, m, err := r.Archive.Read(r.Identities, backup.Visitor{
		Header: func(h backup.Header) error { r.header = h; return nil },
		Rows: func(t backup.Table, rows iter.Seq2[[]any, error]) error {
			for row, err := range rows {
				if err = errors.Join(err, ctx.Err()); err != nil {
					return err
				}
				if t.Name == "ring" {
					r.ring = append(r.ring, ringKey(t, row))
				}
				if t.Name == "master_keys" {
					r.masters = append(r.masters, masterRecord(t, row))
				}
			}
			r.Progress(t.Name)
			return nil
		},
		Bytes:  func(backup.Object, io.Reader) error { return ctx.Err() },
		Object: func(backup.Object) error { return nil },
	})
	if err != nil {
		return err
	}
	if err := CheckOrigin(r.header, m, r.master); err != nil {
		return err
	}

	ring, err := keys.Read(ctx, r.Config.RingConfig(archivedRing{records: r.ring, masters: r.masters}, r.master))
	if err != nil {
		return err
	}
	return ring.Status().Err
}

// MasterKey reads the master key of an installation, which must exist.
func MasterKey(conf config.Config) ([]byte, error) {
	if conf.MasterKey != "" {
		return keys.ParseMaster(string(conf.MasterKey))
	}
	if _, err := os.Stat(conf.MasterFile()); err != nil {
		return nil, fmt.Errorf("%w: backups do not contain the master key; copy it there first, or set "+
			"SELVAGE_MASTER_KEY_FILE to a file that holds it", err)
	}
	return keys.ReadMaster(conf.MasterFile())
}

// CheckOrigin returns an error unless the backup that was read was made with the given master key.
func CheckOrigin(h backup.Header, m backup.Manifest, master []byte) error {
	if have := keys.Fingerprint(master); h.MasterKey != have {
		return fmt.Errorf("the backup was made with another master key: it needs the one with the fingerprint %q, "+
			"and this one has %s. Set the key that the installation had on %s", h.MasterKey, have,
			h.Created.Local().Format(time.DateTime))
	}
	return m.Check(backup.Key{Secret: keys.BackupKeyOf(master)})
}

// load writes the rows and the media, and compares the rows with the manifest.
func (r *Restore) load(ctx context.Context, rows store.Config, mediaDir string) (err error) {
	f, err := store.OpenFiller(ctx, store.FillConfig{Config: rows, Schema: r.header.Schema})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	media, err := blob.OpenDir(mediaDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, media.Close()) }()

	tables, err := tablesOf(ctx, f.Store())
	if err != nil {
		return err
	}
	var deleted []string
	_, r.manifest, err = r.Archive.Read(r.Identities, backup.Visitor{
		Header: func(h backup.Header) error {
			if err := checkTables(tables, h.Tables); err != nil {
				return err
			}
			return clearTables(ctx, f, tables, h.Tables)
		},
		Rows: func(t backup.Table, rows iter.Seq2[[]any, error]) error {
			return f.Load(ctx, tables[t.Name], rows, func(n int) { r.Progress(t.Name) })
		},
		Bytes: func(o backup.Object, content io.Reader) error { return restoreBytes(media, o, content) },
		Object: func(o backup.Object) error {
			r.Progress(o.Key)
			if o.Deleted {
				deleted = append(deleted, o.Key)
			}
			if r.header.Inside || o.Deleted || o.Missing {
				return ctx.Err()
			}
			return errors.Join(ctx.Err(), r.Archive.Bytes(r.header, o, r.Identities, func(content io.Reader) error {
				return restoreBytes(media, o, content)
			}))
		},
	})
	if err == nil { // again, since the file could have been replaced
		err = CheckOrigin(r.header, r.manifest, r.master)
	}
	if err != nil {
		return err
	}
	media.Settle()

	sums, err := Sums(ctx, f.Store(), r.Progress)
	if err != nil {
		return fmt.Errorf("checking the restored rows: %w", err)
	}
	if err := backup.Compare(sums, r.manifest.Tables); err != nil {
		return fmt.Errorf("checking the restored rows: %w", err)
	}
	return f.DropMedia(ctx, deleted, time.Now())
}

func restoreBytes(media *blob.Dir, o backup.Object, content io.Reader) error {
	return media.Restore(o.Key, o.Part, func(f *os.File) error {
		_, err := io.Copy(f, content)
		return err
	})
}

// tablesOf returns the tables of a database by their names.
func tablesOf(ctx context.Context, rows *store.Store) (map[string]database.Table, error) {
	named := make(map[string]database.Table)
	err := rows.Snapshot(ctx, func(s *store.Snapshot) error {
		tables, err := s.Tables(ctx)
		for _, t := range tables {
			named[t.Name] = t
		}
		return err
	})
	return named, err
}

// clearTables deletes all rows. The tables have rows if an earlier restore into the database
// failed.
func clearTables(
	ctx context.Context, f *store.Filler, tables map[string]database.Table, archived []backup.Table,
) error {
	none := func(func(store.Row, error) bool) {}
	for _, t := range archived {
		if err := f.Load(ctx, tables[t.Name], none, func(int) {}); err != nil {
			return err
		}
	}
	return nil
}

// checkTables returns an error if the columns of a backup differ from those of the schema.
func checkTables(tables map[string]database.Table, archived []backup.Table) error {
	for _, t := range archived {
		here := fmt.Sprint(backup.TableOf(tables[t.Name]).Columns)
		if there := fmt.Sprint(t.Columns); here != there {
			return fmt.Errorf("table %s has the columns %s in the backup, and %s in this version", t.Name, there, here)
		}
	}
	if len(archived) != len(tables) {
		return fmt.Errorf("the backup has %d tables, this version %d", len(archived), len(tables))
	}
	return nil
}

// Sums returns the number of rows and the SHA-256 of each table.
func Sums(ctx context.Context, rows *store.Store, progress func(table string)) (sums []backup.Sum, err error) {
	err = rows.Snapshot(ctx, func(s *store.Snapshot) error {
		sums, err = sumsOf(ctx, s, progress)
		return err
	})
	return sums, err
}

func sumsOf(ctx context.Context, s *store.Snapshot, progress func(table string)) (sums []backup.Sum, err error) {
	tables, err := s.Tables(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		digest := backup.NewDigest()
		for row, err := range s.Rows(ctx, t) {
			if err != nil {
				return nil, err
			}
			if _, err := digest.Add(row); err != nil {
				return nil, err
			}
		}
		sums = append(sums, digest.Sum(t.Name))
		progress(t.Name)
	}
	return sums, nil
}

// end updates the schema, verifies the audit trail, and ends all logins and tokens. Then it places
// the media, and lets servers use the rows. It waits for the next second, because the times of
// tokens have whole seconds: tokens issued after it returns are newer than those that it has ended.
func (r *Restore) end(ctx context.Context, rows store.Config, media string) (err error) {
	masters, err := keys.FindMasters(ctx, archivedRing{masters: r.masters}, r.master)
	if err != nil {
		return err
	}
	if rows.Audit, err = audit.NewKey(r.master, masters.Earlier()...); err != nil {
		return err
	}
	f, err := store.OpenFiller(ctx, store.FillConfig{Config: rows})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	if err := r.verifyAudit(ctx, f.Store()); err != nil {
		return err
	}
	next := time.Now().Truncate(time.Second).Add(time.Second)
	if err := f.Store().EndAll(ctx, next.Add(-time.Microsecond)); err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(next)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := r.placeMedia(media); err != nil { // before the rows that name them can be used
		return err
	}
	return f.Used(ctx)
}

// verifyAudit returns an error if the restored audit trail has breaks.
func (r *Restore) verifyAudit(ctx context.Context, rows *store.Store) error {
	if r.AcceptBrokenAudit {
		return nil
	}
	if err := rows.SealAudit(ctx); err != nil { // as a server does after an upgrade
		return err
	}
	found, err := rows.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	if len(found.Broken) > 0 {
		return fmt.Errorf("the audit trail in the backup is broken: %w; set --accept-broken-audit to restore it "+
			"anyway", errors.Join(found.Broken...))
	}
	r.Progress("audit trail")
	return nil
}
