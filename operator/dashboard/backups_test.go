package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/dashboard"
)

const backupsPage = "/dashboard/backups"

// A vault holds one backup and records the jobs that were requested.
type vault struct {
	mu   sync.Mutex
	job  dashboard.BackupJob
	jobs []string
}

const oldBackup = "selvage-20260102T030405.000Z.age"

func (v *vault) set(j dashboard.BackupJob) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.job = j
}

// request records a requested job, unless a job is running.
func (v *vault) request(what string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.job.Began.IsZero() && v.job.Ended.IsZero() {
		return dashboard.ErrBackupRuns
	}
	v.jobs = append(v.jobs, what)
	return nil
}

func (v *vault) backups() *dashboard.Backups {
	return &dashboard.Backups{
		Directory: "/var/backups", Every: "1d", Keep: 7,
		List: func() ([]dashboard.Backup, error) {
			return []dashboard.Backup{{Name: oldBackup, Created: time.Now(), Rows: 4711, Bytes: 2_000_000}}, nil
		},
		Job: func() dashboard.BackupJob {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.job
		},
		Create: func(context.Context) error { return v.request("create") },
		Check: func(_ context.Context, name string) error {
			if name != oldBackup {
				return problem.NoSuch("backup")
			}
			return v.request("check " + name)
		},
	}
}

// TestBackupPages shows that owners can create and check backups after they confirm their identity.
// The page shows the running job and the result of the last one.
func TestBackupPages(t *testing.T) {
	var v vault
	w := newWorldOf(&world{TB: t, backups: v.backups()})
	_, b := w.operator("ann@example.com", ofAll)

	const disabledButton = `id="new-backup" type="submit" disabled>`
	idle := b.get(backupsPage)
	idle.wantText(t, "/var/backups", "1d", oldBackup, "4711", backupsPage+"/"+oldBackup+"/check",
		"none since the server started")
	idle.wantNoText(t, disabledButton)

	b.post(backupsPage, backupsPage, nil).leadsTo(t, backupsPage+"?done=backupbegan")
	b.post(backupsPage, backupsPage+"/"+oldBackup+"/check", nil).leadsTo(t, backupsPage+"?done=checkbegan")
	b.post(backupsPage, backupsPage+"/other.age/check", nil).wantStatus(t, http.StatusNotFound)

	// While a job is running, another one is refused.
	began := time.Now()
	v.set(dashboard.BackupJob{Began: began, Files: 12345})
	busy := b.post(backupsPage, backupsPage, nil)
	busy.wantStatus(t, http.StatusConflict)
	busy.wantText(t, "Files so far: 12,345.", "wait until that has ended", disabledButton)
	live := b.follow(busy.find(t, `data-live="([^"]*)"`))

	for text, job := range map[string]dashboard.BackupJob{
		"The backup failed: &lt;no&gt; space.":                    {Failed: "<no> space"},
		"x.age was created. Files: 9.":                            {Name: "x.age", Files: 9},
		"x.age is damaged: It is short.":                          {Name: "x.age", Check: true, Failed: "it is short"},
		"The archive of x.age is unchanged since it was created.": {Name: "x.age", Check: true},
	} {
		job.Began, job.Ended = began, time.Now()
		v.set(job)
		b.get(backupsPage).wantText(t, text)
	}

	if got := live.next(); got != "new" {
		t.Errorf("the end of a job is announced by %q, want new", got)
	}

	w.pass(operator.Freshness)
	b.post(backupsPage, backupsPage, nil).leadsTo(t, "/dashboard/confirm?next="+url.QueryEscape(backupsPage))
	if want := []string{"create", "check " + oldBackup}; !slices.Equal(v.jobs, want) {
		t.Errorf("the jobs are %v, want %v", v.jobs, want)
	}
}

// TestNoBackups shows that a server without a backup directory creates no backup, and says how to
// set a directory.
func TestNoBackups(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	page := b.get(backupsPage)
	page.wantText(t, "<code>backup.directory</code>")
	page.wantNoText(t, "new-backup")
	for _, path := range []string{backupsPage, backupsPage + "/" + oldBackup + "/check"} {
		a := b.post("/dashboard/account", path, nil)
		a.wantStatus(t, http.StatusConflict)
		a.wantText(t, "backup.directory is not set")
	}
}
