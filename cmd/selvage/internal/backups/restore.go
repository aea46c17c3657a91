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
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/mediastore"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/durable"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// A Restore restores a backup into an installation that has no data yet.
type Restore struct {
	Config     config.Config // says where the rows and the media go, and where the master key is
	Archive    backup.Archive
	Identities []age.Identity
	Progress   func(done string)

	AcceptBrokenAudit bool // restore the audit trail even if it is broken

	header   backup.Header
	manifest backup.Manifest
	ring     []keys.Record
	masters  []keys.MasterRecord
	master   []byte
	keys     *keys.Ring   // key ring of the archive
	bucket   *blob.Bucket // bucket for the media; nil if the media goes to a directory
	filling  bool         // whether no server uses the target, so that everything in it is from this restore
	placed   bool         // whether the media is in place
}

// Run restores the backup. In this order, it
//
//   - checks that the target is empty, that the whole archive is intact, that it was made with the
//     master key, and that the master key opens the archive's ring; until then, no data is written,
//   - writes the media and the rows, to new files where possible, and compares the rows with the manifest,
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
	unlock, err := r.checkTarget(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.check(ctx); err != nil {
		return err
	}

	// The directory is on the file system of the database, so that the new file can be moved there.
	temp, remove, err := makeTemp(filepath.Dir(r.databaseFile()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	media, discard, err := r.mediaTarget()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && r.filling && !r.placed {
			err = errors.Join(err, discard())
		}
	}()

	rows := store.Config{URL: string(r.Config.Database), Dir: r.Config.Data, Patience: patience}
	if !r.Config.Database.Shared() {
		rows.URL = "sqlite:restored.db"
		rows.Dir = temp
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
	return durable.SyncDir(filepath.Dir(r.databaseFile()))
}

// patience limits how long a statement may run on a PostgreSQL server that is being copied or
// filled.
const patience = 10 * time.Minute

// mediaTarget returns the directory to write the media to, or "" for an object store. If the media
// directory exists, mediaTarget returns that directory, because it may be a mount. Otherwise it
// returns a new directory next to it. discard removes what was written.
func (r *Restore) mediaTarget() (dir string, discard func() error, err error) {
	if r.Config.Media.Shared() {
		return "", r.emptyBucket, nil
	}
	dir = r.Config.MediaDir()
	if _, err := os.Stat(dir); err == nil {
		return dir, func() error { return empty(dir) }, nil
	}
	dir += ".restoring"
	discard = func() error { return os.RemoveAll(dir) }
	return dir, discard, discard() // removes what an interrupted restore may have left
}

// emptyBucket deletes what was written to an object store.
func (r *Restore) emptyBucket() error {
	if r.bucket == nil {
		return nil
	}
	return r.bucket.Discard(context.Background())
}

// empty removes everything in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return errors.Join(errs...)
}

// placeMedia moves the media to its place, if it is not there already.
func (r *Restore) placeMedia(written string) error {
	dir := r.Config.MediaDir()
	if dir == "" {
		r.placed = true
		return nil
	}
	if written != dir {
		if err := os.Rename(written, dir); err != nil {
			return fmt.Errorf("moving the media to its place: %w", err)
		}
	}
	r.placed = true
	return durable.SyncDir(filepath.Dir(dir))
}

// databaseFile returns the path of the SQLite database.
func (r *Restore) databaseFile() string {
	if r.Config.Database.Shared() {
		return filepath.Join(r.Config.Data, "selvage.db") // only its directory is used
	}
	return r.Config.DatabaseFile()
}

// checkTarget checks that no server uses the data directory, and that a restore would replace
// nothing in it. It keeps servers out of the directory until unlock is called.
func (r *Restore) checkTarget(ctx context.Context) (unlock func(), err error) {
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
		return fmt.Errorf("%s already has data: a restore needs a data directory with nothing but the master key, "+
			"and an empty place for media", what)
	}
	if !r.Config.Database.Shared() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if _, err := os.Lstat(r.databaseFile() + suffix); err == nil {
				return nil, inUse(r.databaseFile() + suffix)
			}
		}
	}

	noMedia, err := r.hasNoMedia(ctx)
	if err != nil {
		return nil, err
	}
	if !noMedia {
		return nil, inUse(r.mediaPlace())
	}
	return func() { _ = lock.Close() }, nil
}

// mediaPlace names the place for media.
func (r *Restore) mediaPlace() string {
	if dir := r.Config.MediaDir(); dir != "" {
		return dir
	}
	return string(r.Config.Media)
}

// hasNoMedia reports whether the place for media is empty.
func (r *Restore) hasNoMedia(ctx context.Context) (empty bool, err error) {
	if r.Config.Media.Shared() {
		media, err := mediastore.Open(r.Config, nil, "")
		if err != nil {
			return false, err
		}
		empty, err = media.Bucket.Empty(ctx)
		return empty, errors.Join(err, media.Close())
	}
	files, err := os.ReadDir(r.Config.MediaDir())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return len(files) == 0, nil
}

// check reads the whole archive and the master key. It writes nothing.
func (r *Restore) check(ctx context.Context) (err error) {
	r.master, err = MasterKey(r.Config)
	if err != nil {
		return err
	}
	_, manifest, err := r.Archive.Read(r.Identities, backup.Visitor{
		Header: func(h backup.Header) error {
			r.header = h
			return nil
		},
		Rows: func(t backup.Table, rows iter.Seq2[[]any, error]) error {
			return r.readRows(ctx, t, rows)
		},
		Bytes:  func(backup.Object, io.Reader) error { return ctx.Err() },
		Object: func(backup.Object) error { return nil },
	})
	if err != nil {
		return err
	}

	if err := CheckOrigin(r.header, manifest, r.master); err != nil {
		return err
	}

	archived := archivedRing{records: r.ring, masters: r.masters}
	r.keys, err = keys.Read(ctx, r.Config.RingConfig(archived, r.master))
	if err != nil {
		return err
	}
	return r.keys.Status().Err
}

// readRows reads the rows of a table. It keeps those of the key ring and of the master keys.
func (r *Restore) readRows(ctx context.Context, t backup.Table, rows iter.Seq2[[]any, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch t.Name {
		case "ring":
			r.ring = append(r.ring, ringKey(t, row))
		case "master_keys":
			r.masters = append(r.masters, masterRecord(t, row))
		}
	}
	r.Progress(t.Name)
	return nil
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

// CheckOrigin returns an error unless the backup was made with the given master key.
func CheckOrigin(h backup.Header, m backup.Manifest, master []byte) error {
	if have := keys.Fingerprint(master); h.MasterKey != have {
		return fmt.Errorf("the backup was made with a different master key: its fingerprint is %q, "+
			"and that of this key is %q. Set the key that the installation had on %s", h.MasterKey, have,
			h.Created.Local().Format(time.DateTime))
	}
	return m.Check(backup.Key{Secret: keys.BackupKeyOf(master)})
}
