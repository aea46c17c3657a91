package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// backupPages serves the pages that list the backups of the installation, create backups and check
// them.
type backupPages struct {
	*site
	Backups *Backups // nil if this server creates no backups
}

// Backups gives access to the directory in which this server creates backups.
type Backups struct {
	Directory string
	Every     string // time between the backups that the server creates by itself, such as 1d
	Keep      int    // number of backups that the server keeps; 0 means all

	List func() ([]Backup, error) // newest first
	Job  func() BackupJob         // the running job; if no job is running, the last job of this process

	// Create starts a job that creates a backup, and Check starts a job that checks a backup. They
	// return ErrBackupRuns while another job is running.
	Create func(ctx context.Context) error
	Check  func(ctx context.Context, name string) error
}

// A Backup is a backup in the directory. Rows is 0 if the backup has no summary.
type Backup struct {
	Name       string
	Created    time.Time
	Rows       int64
	Recordings int64
	MediaBytes int64
	Bytes      int64 // size of the archive
}

// A BackupJob creates or checks a backup.
type BackupJob struct {
	Name   string // the backup to check, or the new backup once it is complete
	Check  bool
	Began  time.Time // zero if this process has run no job
	Ended  time.Time // zero while the job is running
	Files  int       // number of files processed so far
	Failed string    // why the job failed
}

// A backupPage shows the backups, and the running or the last job.
type backupPage struct {
	*Backups
	Rows    []backupRow
	Job     BackupJob
	Running bool
	Verdict status
	Said    string // describes the job
	Live    string
	Faults  faults
}

// A backupRow is a row in the list of backups.
type backupRow struct {
	Backup
	Media, Size string
}

// listBackups serves GET /dashboard/backups.
func (a *backupPages) listBackups(v *visit) error { return a.backupPage(v, http.StatusOK, nil) }

func (a *backupPages) backupPage(v *visit, code int, wrong faults) error {
	p := backupPage{Backups: a.Backups, Faults: wrong}
	if a.Backups == nil {
		return a.page(v, code, "Backups", "backups", p)
	}

	// Read the job before the list, so that the list contains the backup of a job that has ended.
	p.Job = a.Backups.Job()
	backups, err := a.Backups.List()
	if err != nil {
		return err
	}
	for _, b := range backups {
		p.Rows = append(p.Rows, backupRow{Backup: b, Media: v.size(b.MediaBytes), Size: v.size(b.Bytes)})
	}
	p.Running = !p.Job.Began.IsZero() && p.Job.Ended.IsZero()
	p.Verdict, p.Said = describeJob(v.words(), p.Job)
	p.Live = v.live(jobMark(p.Job))
	return a.page(v, code, "Backups", "backups", p)
}

// describeJob returns the state of a job, and a sentence about it.
func describeJob(w *words.Words, j BackupJob) (status, string) {
	running := status{Kind: "warn", Word: "Running"}
	failed := status{Kind: "bad", Word: "Failed"}
	files := w.Number(thousands(int64(j.Files)))
	switch {
	case j.Began.IsZero():
		return status{}, ""
	case j.Ended.IsZero() && j.Check:
		return running, words.Textf("Checking %s.", j.Name)
	case j.Ended.IsZero():
		return running, words.Textf("Creating a backup. Files so far: %s.", files)
	case j.Failed != "" && j.Check:
		return failed, words.Sentences(words.Textf("%s is damaged:", j.Name), sentence(j.Failed))
	case j.Failed != "":
		return failed, words.Sentences("The backup failed:", sentence(j.Failed))
	case j.Check:
		text := words.Textf("The archive of %s is unchanged since it was created.", j.Name)
		return status{Kind: "good", Word: "Passed"}, text
	}
	return status{Kind: "good", Word: "Done"}, words.Textf("%s was created. Files: %s.", j.Name, files)
}

// jobMark returns a string that changes when a job begins or ends.
func jobMark(j BackupJob) string { return fmt.Sprint(j.Began.UnixMicro(), "-", j.Ended.UnixMicro()) }

// followBackups serves GET /dashboard/backups/live. It notifies the page when a job begins or ends.
func (a *backupPages) followBackups(v *visit) error {
	if a.Backups == nil {
		return problem.NoSuch("page")
	}
	return a.follow(v, func(context.Context) (string, error) { return jobMark(a.Backups.Job()), nil })
}

// createBackup serves POST /dashboard/backups.
func (a *backupPages) createBackup(v *visit) error {
	if a.Backups == nil {
		return errNoBackups
	}
	return a.afterStart(v, a.Backups.Create(v.r.Context()), "backupbegan")
}

// checkBackup serves POST /dashboard/backups/{name}/check.
func (a *backupPages) checkBackup(v *visit) error {
	if a.Backups == nil {
		return errNoBackups
	}
	return a.afterStart(v, a.Backups.Check(v.r.Context(), v.r.PathValue("name")), "checkbegan")
}

// ErrBackupRuns is the error for a job that is requested while another job is running.
var ErrBackupRuns = problem.New(problem.Conflict, "backup_runs",
	"a backup is being created or checked; wait until that has ended")

var errNoBackups = problem.New(problem.Conflict, "no_backups",
	"this server creates no backups, because backup.directory is not set")

// afterStart responds to an attempt to start a job, which failed with err unless err is nil. It shows
// the list of backups, with an error if another job is running.
func (a *backupPages) afterStart(v *visit, err error, done string) error {
	if p := problem.First(err); p != nil && p.Kind == problem.Conflict {
		return a.backupPage(v, http.StatusConflict, faultAt("", sentence(p.Message)))
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/backups?done=" + done)
}

func (a *backupPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/backups", may: operator.KeepBackups, serve: a.listBackups, nav: "Backups",
			group: installation},
		{pattern: "GET /dashboard/backups/live", may: operator.KeepBackups, serve: a.followBackups},
		{pattern: "POST /dashboard/backups", may: operator.KeepBackups, serve: a.createBackup, fresh: true, once: true},
		{pattern: "POST /dashboard/backups/{name}/check", may: operator.KeepBackups, serve: a.checkBackup},
	}
}
