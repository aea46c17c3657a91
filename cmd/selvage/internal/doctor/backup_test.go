package doctor

import (
	"os"
	"testing"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/store/storetest"
)

// TestNoBackup shows that a missing first backup is a problem only if it is overdue.
func TestNoBackup(t *testing.T) {
	const every = 24 * time.Hour
	tests := []struct {
		name string
		age  time.Duration // age of the project; 0 for no project
		want Verdict
	}{
		{"no project", 0, Skipped},
		{"a new project", time.Hour, Skipped},
		{"an old project", 3 * every, Warned},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := storetest.Dir(t)
			rows := storetest.Open(t, dir, nil)
			if tt.age > 0 {
				storetest.AddProject(t, rows, time.Now().Add(-tt.age))
			}
			e := &Examination{Config: config.Config{Data: dir, Database: "sqlite:selvage.db"}}
			e.Config.Backup.Every = config.Period(every)
			e.Config.Backup.Directory = "backups"
			want := func(directory string) {
				t.Helper()
				found := e.backups(t.Context())
				if len(found) != 1 || found[0].Status != tt.want {
					t.Errorf("with %s: %+v, want %s", directory, found, tt.want)
				}
			}

			want("no directory")
			if err := os.Mkdir(e.Config.BackupDir(), 0o700); err != nil {
				t.Fatal(err)
			}
			want("an empty directory")
		})
	}
}
