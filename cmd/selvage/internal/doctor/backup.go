package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
)

// backups checks the age of the newest backup in the backup directory.
func (e *Examination) backups(ctx context.Context) []Finding {
	dir := e.Config.BackupDir()
	if dir == "" {
		return []Finding{skippedf("backup.directory is not set; run `selvage backup create` regularly")}
	}

	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return []Finding{e.noBackup(ctx, dir)}
	}
	files, err := backup.OpenFolder(dir)
	if err != nil {
		return []Finding{brokenf("%s", cause(err)).withRemedy(e.asServer(dir))}
	}
	all, err := backup.OpenDir(files).List()
	if err != nil {
		return []Finding{brokenf("%s", cause(err)).withRemedy(e.asServer(dir))}
	}

	var findings []Finding
	newest, found, future := backup.Newest(all)
	if len(future) > 0 {
		findings = append(findings, warnedf("%s in %s is dated in the future; it does not count as a backup",
			future[0].Name, absolute(dir)).
			withRemedy("check the clock, and move the file elsewhere"))
	}
	if !found {
		return append(findings, e.noBackup(ctx, dir))
	}

	every := time.Duration(e.Config.Backup.Every)
	age := time.Since(newest.Created)
	if age > 2*every {
		return append(findings, warnedf("the newest in %s is %s old; one is due every %s",
			absolute(dir), age.Round(time.Minute), every).
			withRemedy(failedBackups))
	}
	return append(findings, finef("%s in %s, the newest %s old", len(all), absolute(dir), age.Round(time.Minute)))
}

const failedBackups Text = "look for \"creating a backup\" in the server's log"

// noBackup returns the finding for a directory without backups. If the oldest project is so old that
// a backup is overdue, every backup so far has failed, or the directory is new or not mounted.
func (e *Examination) noBackup(ctx context.Context, dir string) Finding {
	every := time.Duration(e.Config.Backup.Every)
	overdue := e.overRows(ctx, func(s *store.Store) []Finding {
		projects, err := s.ListProjects(ctx, "", page.Query{Size: 1})
		if err != nil || len(projects.Items) == 0 {
			return nil
		}
		age := time.Since(projects.Items[0].Created)
		if age <= 2*every {
			return nil
		}
		return []Finding{warnedf("none in %s, although the oldest project is %s old; one is due every %s",
			absolute(dir), age.Round(time.Minute), every).
			withRemedy(failedBackups)}
	})
	if len(overdue) > 0 {
		return overdue[0]
	}
	return skippedf("none yet; the server creates the first in %s", absolute(dir))
}
