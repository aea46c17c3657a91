package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

	body := b.get(backupsPage).body
	for _, want := range []string{"/var/backups", "1d", oldBackup, "4711", backupsPage + "/" + oldBackup + "/check"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
	const refusing = `id="new-backup" type="submit" disabled>`
	if strings.Contains(body, refusing) {
		t.Error("the button is disabled although no job is running")
	}
	if !strings.Contains(body, "none since the server started") {
		t.Error("the page does not say that no job has run yet")
	}

	b.post(backupsPage, backupsPage, nil).leadsTo(t, backupsPage+"?done=backupbegan")
	b.post(backupsPage, backupsPage+"/"+oldBackup+"/check", nil).leadsTo(t, backupsPage+"?done=checkbegan")
	if a := b.post(backupsPage, backupsPage+"/other.age/check", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("checking an unknown backup returned %s, want 404", a.Status)
	}

	// While a job is running, another one is refused.
	began := time.Now()
	v.set(dashboard.BackupJob{Began: began, Files: 12345})
	a := b.post(backupsPage, backupsPage, nil)
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "Files so far: 12,345.") ||
		!strings.Contains(a.body, "wait until that has ended") || !strings.Contains(a.body, refusing) {
		t.Errorf("a second job returned %s, want 409 with the progress of the first", a.Status)
	}
	live := b.follow(strings.ReplaceAll(between(a.body, `data-live="`, `"`), "&amp;", "&"))

	for text, job := range map[string]dashboard.BackupJob{
		"The backup failed: &lt;no&gt; space.":                    {Failed: "<no> space"},
		"x.age was created. Files: 9.":                            {Name: "x.age", Files: 9},
		"x.age is damaged: It is short.":                          {Name: "x.age", Check: true, Failed: "it is short"},
		"The archive of x.age is unchanged since it was created.": {Name: "x.age", Check: true},
	} {
		job.Began, job.Ended = began, time.Now()
		v.set(job)
		if body := b.get(backupsPage).body; !strings.Contains(body, text) {
			t.Errorf("the page of %+v does not contain %q", job, text)
		}
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
	body := b.get(backupsPage).body
	if !strings.Contains(body, "<code>backup.directory</code>") || strings.Contains(body, "new-backup") {
		t.Error("the page offers a backup, or does not name the setting")
	}
	for _, path := range []string{backupsPage, backupsPage + "/" + oldBackup + "/check"} {
		a := b.post("/dashboard/account", path, nil)
		if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "backup.directory is not set") {
			t.Errorf("POST %s returned %s, want 409 that names the setting", path, a.Status)
		}
	}
}
