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
	"github.com/selvage/selvage/operator/dashboard"
)

// backupCheck is the interval at which the server checks whether a backup is due. After a failed
// backup, the next attempt follows after the same time.
const backupCheck = time.Minute

// A backupRunner creates and checks the backups of a running server.
type backupRunner struct{ *App }

// run creates backups in the configured directory, if there is one, until ctx is done. It
// also runs the jobs that operators request.
func (b backupRunner) run(ctx context.Context, log *slog.Logger) {
	dir := b.Config.BackupDir()
	if dir == "" {
		return
	}

	tick := time.NewTicker(backupCheck)
	defer tick.Stop()
	b.backUpIfDue(ctx, dir, log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.backUpIfDue(ctx, dir, log)
		case job := <-b.backupJobs.requested:
			b.runJob(ctx, dir, job, log)
		}
	}
}

// backUpIfDue creates a backup if the newest one in dir is too old. While a job that an operator
// has requested is pending, it does nothing.
func (b backupRunner) backUpIfDue(ctx context.Context, dir string, log *slog.Logger) {
	newest, err := newestBackup(dir)
	if err != nil {
		log.Error("creating a backup", "directory", dir, "error", err)
		return
	}
	if time.Since(newest) < time.Duration(b.Config.Backup.Every) {
		return
	}
	var job dashboard.BackupJob
	if b.backupJobs.begin(job) {
		b.runJob(ctx, dir, job, log)
	}
}

// runJob runs a job that has begun, and logs its result.
func (b backupRunner) runJob(ctx context.Context, dir string, job dashboard.BackupJob, log *slog.Logger) {
	var name, action string
	var err error
	if job.Check {
		name, action = job.Name, "checking a backup"
		err = checkBackup(ctx, dir, job.Name)
	} else {
		action = "creating a backup"
		name, err = b.backUp(ctx, dir, log)
	}
	b.backupJobs.end(name, err)

	if err != nil && ctx.Err() == nil {
		log.Error(action, "directory", dir, "name", name, "error", err)
	}
}

// backUp creates a backup in dir, and returns its name.
func (b backupRunner) backUp(ctx context.Context, dir string, log *slog.Logger) (name string, err error) {
	recipients, err := backup.ParseRecipients(b.Config.Backup.Recipients)
	if err != nil {
		return "", err
	}

	began := time.Now()
	planned := backups.Backup{
		Rows:     b.Store,
		Media:    b.media,
		Program:  b.version,
		Key:      b.BackupKey(),
		To:       recipients,
		Keep:     int(b.Config.Backup.Keep),
		Progress: b.backupJobs.step,
	}
	r, err := planned.Create(ctx, dir+"/")
	if r.Name != "" { // even if an error follows, such as one about older backups
		log.Info("created a backup", "name", r.Name, "rows", r.Rows, "recordings", r.Recordings,
			"bytes", r.Bytes, "new_media_bytes", r.AddedBytes, "removed", len(r.Removed),
			"took", time.Since(began).Round(time.Millisecond))
	}
	return r.Name, err
}

// checkBackup compares a backup in dir with its summary.
func checkBackup(ctx context.Context, dir, name string) error {
	files, err := backup.OpenFolder(dir)
	if err != nil {
		return err
	}
	return backup.OpenDir(files).Archive(name).Check(ctx)
}

// BackupKey returns the key that authenticates backups.
func (a *App) BackupKey() backup.Key {
	secret, fingerprint := a.Ring.BackupKey()
	return backup.Key{Secret: secret, MasterKey: fingerprint}
}

// listBackups returns the backups in dir, newest first. It returns none if dir does not exist.
func listBackups(dir string) ([]backup.Summary, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files, err := backup.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return backup.OpenDir(files).List()
}

// newestBackup returns the time at which the newest backup in dir was created. It returns the zero
// time if there is none.
func newestBackup(dir string) (time.Time, error) {
	all, err := listBackups(dir)
	if err != nil {
		return time.Time{}, err
	}
	newest, _, _ := backup.Newest(all)
	return newest.Created, nil
}
