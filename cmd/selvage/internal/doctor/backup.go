package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/selvage/selvage/internal/backup"
)

// backups checks the age of the newest backup in the backup directory.
func (e *Examination) backups(context.Context) []Finding {
	dir := e.Config.BackupDir()
	if dir == "" {
		return []Finding{skippedf("backup.directory is not set; run `selvage backup create` regularly")}
	}

	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return []Finding{skippedf("none yet; the server creates the first in %s", absolute(dir))}
	}
	files, err := backup.OpenFolder(dir)
	if err != nil {
		return []Finding{brokenf("%s", cause(err)).withRemedy(e.asServer(dir))}
	}

	all, err := backup.OpenDir(files).List()
	if err != nil {
		return []Finding{brokenf("%s", cause(err)).withRemedy(e.asServer(dir))}
	}
	newest, found, future := backup.Newest(all)
	switch {
	case len(future) > 0:
		return []Finding{warnedf("%s in %s is dated in the future; it does not count as a backup",
			future[0].Name, absolute(dir)).
			withRemedy("check the clock, and move the file elsewhere")}
	case !found:
		return []Finding{skippedf("none yet; the server creates the first in %s", absolute(dir))}
	}

	every := time.Duration(e.Config.Backup.Every)
	age := time.Since(newest.Created)
	if age > 2*every {
		return []Finding{warnedf("the newest in %s is %s old; one is due every %s",
			absolute(dir), age.Round(time.Minute), every).
			withRemedy("look for \"creating a backup\" in the server's log")}
	}
	return []Finding{finef("%s in %s, the newest %s old", len(all), absolute(dir), age.Round(time.Minute))}
}
