// Package backups creates and restores the backups of an installation, and copies its rows to
// another database. Package backup defines what a backup is; this package knows where the data of
// an installation is.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
)

// A Backup holds the data to back up and the place to write it to.
type Backup struct {
	Rows     *store.Store
	Media    blob.Store // nil if this node serves no recordings, and so has no media
	Program  string     // the version of selvage
	Key      backup.Key
	To       []age.Recipient
	Keep     int               // number of backups to keep in a directory; 0 keeps all
	Progress func(done string) // called after each step; may be nil
}

// A Result describes a new backup.
type Result struct {
	backup.Report
	Removed []string // older backups that were removed
}

// Create writes a backup to target: into a directory, or to a new file. A name means a directory if
// it ends with a slash, or if the directory exists.
func (b Backup) Create(ctx context.Context, target string) (r Result, err error) {
	if b.Progress == nil {
		b.Progress = func(string) {}
	}
	if isDir(target) {
		return b.createIn(ctx, target)
	}

	err = b.fromSnapshot(ctx, func(s backup.Source) (err error) {
		r.Report, err = backup.CreateFile(ctx, target, b.To, s)
		return err
	})
	return r, err
}

// createIn writes a backup into a directory, and removes old backups there.
func (b Backup) createIn(ctx context.Context, target string) (r Result, err error) {
	files, err := backup.OpenFolder(target)
	if err != nil {
		return r, err
	}
	unlock, err := lockDirectory(target)
	if err != nil {
		return r, err
	}
	defer unlock()

	dir := backup.OpenDir(files)
	err = b.fromSnapshot(ctx, func(s backup.Source) (err error) {
		r.Report, err = dir.Create(ctx, b.To, s)
		return err
	})
	var mismatch *backup.Mismatch
	if err != nil && !errors.As(err, &mismatch) {
		return r, err
	}

	// A backup that lacks some media also replaces older backups. Otherwise, one lost file would make the
	// directory grow forever. The media of older backups stays as long as a recording uses it.
	var pruneErr error
	r.Removed, pruneErr = dir.Prune(b.Keep, r.Name)
	return r, errors.Join(err, pruneErr)
}

// fromSnapshot calls create with the contents of a snapshot of the rows.
func (b Backup) fromSnapshot(ctx context.Context, create func(backup.Source) error) error {
	return b.Rows.Snapshot(ctx, func(snapshot *store.Snapshot) error {
		s, err := b.source(ctx, snapshot)
		if err != nil {
			return err
		}
		return create(s)
	})
}

// isDir reports whether a target names a directory, which may not exist yet.
func isDir(target string) bool {
	if strings.HasSuffix(target, "/") {
		return true
	}
	info, err := os.Stat(target)
	return err == nil && info.IsDir()
}

// lockFile is locked while a backup is written to a directory.
const lockFile = "backup.lock"

// lockDirectory makes this process the only one that writes to a directory of backups, until unlock
// is called.
func lockDirectory(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the backup directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, fmt.Errorf("another process is writing a backup to %s: %w", dir, err)
	}
	if err != nil { // for example on a network file system without locks
		_ = f.Close()
		return nil, fmt.Errorf("locking the backup directory: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// listMedia returns the files of recordings.
func listMedia(ctx context.Context, snapshot *store.Snapshot) iter.Seq2[backup.Object, error] {
	return func(yield func(backup.Object, error) bool) {
		for m, err := range snapshot.Media(ctx) {
			if !yield(backup.Object{Key: m.Key, Bytes: m.Bytes, SHA256: m.SHA256}, err) {
				return
			}
		}
	}
}

// source returns the contents of a backup, which are read from a snapshot.
func (b Backup) source(ctx context.Context, snapshot *store.Snapshot) (s backup.Source, err error) {
	s = backup.Source{
		Program:  b.Program,
		Key:      b.Key,
		Now:      time.Now,
		Progress: b.Progress,
		Rows:     snapshot.Rows,
		Media: func(ctx context.Context) iter.Seq2[backup.Object, error] {
			return listMedia(ctx, snapshot)
		},
		Parts: recordings.MediaParts(),
		Exists: func(ctx context.Context, key string) (bool, error) {
			used, err := b.Rows.MediaInUse(ctx, key, key)
			if err != nil {
				return false, err
			}
			return len(used) > 0, nil
		},
	}

	if b.Media != nil {
		s.Open = func(key string) (io.ReadSeekCloser, error) { return b.Media.Open(key) }
		s.ReadPart = b.Media.ReadPart
	}
	s.Schema, err = snapshot.Schema(ctx)
	if err != nil {
		return s, err
	}
	s.Tables, err = snapshot.Tables(ctx)
	if err != nil {
		return s, err
	}
	return s, b.checkKey(ctx, snapshot, s.Tables)
}

// ErrKeyReplaced is the error for a backup that began while the master key was being replaced. Such a
// backup could not be restored, because its header would name one master key, and its rows would need
// another.
var ErrKeyReplaced = errors.New("the master key was replaced just now: try again")

// checkKey returns ErrKeyReplaced if the rows of the snapshot need a master key other than the one
// in the header of the backup.
func (b Backup) checkKey(ctx context.Context, snapshot *store.Snapshot, tables []database.Table) error {
	if !slices.ContainsFunc(tables, func(t database.Table) bool { return t.Name == "master_keys" }) {
		return nil // an older schema, without this table
	}
	newest, err := snapshot.MasterKey(ctx)
	if err != nil {
		return err
	}
	if newest != "" && newest != b.Key.MasterKey {
		return ErrKeyReplaced
	}
	return nil
}
