package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/backups"
	"github.com/selvage/selvage/internal/backup"
)

// backupCheck is how often the server checks whether a backup is due. It is also the pause after a
// backup that failed.
const backupCheck = time.Minute

// runBackups creates backups in the directory of the configuration, if there is one, until ctx is
// done.
func (a *App) runBackups(ctx context.Context, log *slog.Logger) {
	dir := a.Config.BackupDir()
	if dir == "" {
		return
	}
	tick := time.NewTicker(backupCheck)
	defer tick.Stop()
	for {
		if err := a.backUp(ctx, dir, log); err != nil && ctx.Err() == nil {
			log.Error("creating a backup", "directory", dir, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// backUp creates a backup if the newest one in dir is too old.
func (a *App) backUp(ctx context.Context, dir string, log *slog.Logger) error {
	newest, err := newestBackup(dir)
	if err != nil || time.Since(newest) < time.Duration(a.Config.Backup.Every) {
		return err
	}
	recipients, err := backup.ParseRecipients(a.Config.Backup.Recipients)
	if err != nil {
		return err
	}
	began := time.Now()
	r, err := backups.Backup{Rows: a.Store, Media: a.media, Program: a.version, Key: a.BackupKey(), To: recipients,
		Keep: int(a.Config.Backup.Keep)}.Create(ctx, dir+"/")
	if r.Name != "" {
		log.Info("created a backup", "name", r.Name, "rows", r.Rows, "recordings", r.Recordings,
			"bytes", r.Bytes, "new_media_bytes", r.AddedBytes, "removed", len(r.Removed),
			"took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// BackupKey returns the key that authenticates backups.
func (a *App) BackupKey() backup.Key {
	secret, fingerprint := a.Ring.BackupKey()
	return backup.Key{Secret: secret, MasterKey: fingerprint}
}

// newestBackup returns when the newest backup in dir was created, or the zero time if there is
// none.
func newestBackup(dir string) (time.Time, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	files, err := backup.OpenFolder(dir)
	if err != nil {
		return time.Time{}, err
	}
	all, err := backup.OpenDir(files).List()
	newest, _, _ := backup.Newest(all)
	return newest.Created, err
}
