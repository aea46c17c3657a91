package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/operator/dashboard"
)

// backupJobs holds the running job for the backup directory or, if none is running, the last one.
// At most one job runs at a time, whether the server or an operator started it.
type backupJobs struct {
	requested chan dashboard.BackupJob // receives the jobs that operators start

	mu   sync.Mutex
	last dashboard.BackupJob
}

// newBackupJobs returns a backupJobs. Its channel has room for one job, which is enough to never block a
// request, because at most one job runs at a time.
func newBackupJobs() *backupJobs {
	return &backupJobs{requested: make(chan dashboard.BackupJob, 1)}
}

// job returns the running job or, if none is running, the last one.
func (j *backupJobs) job() dashboard.BackupJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// begin makes job the running job. It returns false if a job is already running.
func (j *backupJobs) begin(job dashboard.BackupJob) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.last.Began.IsZero() && j.last.Ended.IsZero() {
		return false
	}
	job.Began = time.Now()
	j.last = job
	return true
}

// step counts a file that the running job has processed.
func (j *backupJobs) step(string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last.Files++
}

// end ends the running job. The name of the backup that it created or checked may be "".
func (j *backupJobs) end(name string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last.Name = name
	j.last.Ended = time.Now()
	if err != nil {
		j.last.Failed = err.Error()
	}
}

// shown returns the backups of this server for the dashboard, or nil if it creates none.
func (b backupRunner) shown() *dashboard.Backups {
	dir := b.Config.BackupDir()
	if dir == "" {
		return nil
	}

	return &dashboard.Backups{
		Directory: dir,
		Every:     span.InDays(time.Duration(b.Config.Backup.Every)),
		Keep:      int(b.Config.Backup.Keep),
		List: func() (all []dashboard.Backup, err error) {
			found, err := listBackups(dir)
			if err != nil {
				return nil, err
			}
			for _, s := range found {
				all = append(all, dashboard.Backup{
					Name:       s.Name,
					Created:    s.Created,
					Rows:       s.Rows,
					Recordings: s.Recordings,
					MediaBytes: s.MediaBytes,
					Bytes:      s.Bytes,
				})
			}
			return all, nil
		},
		Job:    b.backupJobs.job,
		Create: b.request,
		Check:  func(_ context.Context, name string) error { return b.requestCheck(dir, name) },
	}
}

// request starts a backup in the background. It records the request in the audit trail, because the new
// backup may replace the oldest one.
func (b backupRunner) request(ctx context.Context) error {
	job := dashboard.BackupJob{}
	if !b.backupJobs.begin(job) {
		return dashboard.ErrBackupRuns
	}
	if err := b.Store.Record(ctx, audit.Of("backup.requested", "", "installation", "")); err != nil {
		b.backupJobs.end("", err)
		return err
	}
	b.backupJobs.requested <- job
	return nil
}

// requestCheck starts a check of a backup in dir in the background.
func (b backupRunner) requestCheck(dir, name string) error {
	found, err := listBackups(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(s backup.Summary) bool { return s.Name == name }) {
		return problem.NoSuch("backup")
	}

	job := dashboard.BackupJob{Name: name, Check: true}
	if !b.backupJobs.begin(job) {
		return dashboard.ErrBackupRuns
	}
	b.backupJobs.requested <- job
	return nil
}
