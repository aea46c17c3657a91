package backups

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

// replaceMaster replaces the master key of rows, without resealing secrets.
func replaceMaster(t *testing.T, rows *store.Store, ring *keys.Ring, next []byte) {
	t.Helper()
	p, err := ring.Replace(t.Context(), next, false)
	if err != nil {
		t.Fatal(err)
	}

	masters, err := keys.FindMasters(t.Context(), archivedRing{masters: p.Masters}, next)
	if err != nil {
		t.Fatal(err)
	}

	chains, err := audit.NewKey(masters.Newest(), masters.Earlier()...)
	if err != nil {
		t.Fatal(err)
	}

	if err := rows.ReplaceMaster(t.Context(), p, chains); err != nil {
		t.Fatal(err)
	}
	rows.AuditBy(chains)
}

// TestBackupAroundMaster creates backups before and after the master key is replaced. Each can be
// restored only with the master key that was in use at the time. A program that does not yet know the
// new key creates no backup, because that backup could not be restored.
func TestBackupAroundMaster(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		dir := storetest.Dir(t)
		testBackupAroundMaster(t, dir, storetest.Open(t, dir, nil))
	})
	t.Run("postgres", func(t *testing.T) {
		rows, err := store.Open(t.Context(), store.Config{URL: servers.Postgres(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rows.Close() })
		testBackupAroundMaster(t, t.TempDir(), rows)
	})
}

func testBackupAroundMaster(t *testing.T, dir string, rows *store.Store) {
	id := newKey(t)
	before := filepath.Join(dir, "master.key")
	ring := storetest.Ring(t, dir, rows, nil)
	project := storetest.AddProject(t, rows, time.Now())
	sealed, err := ring.SealSecret("of a test", []byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	first := create(t, rows, keyOf(t, before), id.Recipient())

	after := filepath.Join(t.TempDir(), "next.key")
	next, err := keys.ReadMaster(after)
	if err != nil {
		t.Fatal(err)
	}

	replaceMaster(t, rows, ring, next)
	file := filepath.Join(t.TempDir(), "late.age")
	late := Backup{Rows: rows, Key: keyOf(t, before), To: []age.Recipient{id.Recipient()}}
	if _, err := late.Create(t.Context(), file); !errors.Is(err, ErrKeyReplaced) {
		t.Errorf("creating a backup with the replaced master key = %v, want ErrKeyReplaced", err)
	}

	if _, err := os.Stat(file); err == nil {
		t.Error("a backup that cannot be restored was left behind")
	}
	second := create(t, rows, keyOf(t, after), id.Recipient())

	tests := []struct {
		name    string
		archive backup.Archive
		master  string // file with the master key in use at the time of the backup
		other   string // file with the other key
	}{
		{name: "before", archive: first, master: before, other: after},
		{name: "after", archive: second, master: after, other: before},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := restore(t, tt.archive, id, "sqlite:selvage.db", tt.other)
			if err == nil || !strings.Contains(err.Error(), "a different master key") {
				t.Errorf("restoring with the other key = %v, want an error about a different master key", err)
			}
			r := restoreOf(t, tt.archive, id, "sqlite:selvage.db", tt.master)
			if _, _, err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantRestored(t, r, project, sealed)
		})
	}
}

// wantRestored checks the project, the audit trail, and a secret that was sealed before the master
// key was replaced.
func wantRestored(t *testing.T, r *Restore, project, sealed string) {
	t.Helper()
	master, err := MasterKey(r.Config)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := store.Open(t.Context(), store.Config{Dir: r.Config.Data})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	masters, err := keys.FindMasters(t.Context(), rows, master)
	if err != nil {
		t.Fatal(err)
	}

	chains, err := audit.NewKey(masters.Newest(), masters.Earlier()...)
	if err != nil {
		t.Fatal(err)
	}
	rows.AuditBy(chains)

	if _, err := rows.FindProject(t.Context(), project); err != nil {
		t.Errorf("the project is not restored: %v", err)
	}
	report, err := rows.VerifyAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Broken) > 0 {
		t.Errorf("the restored audit trail has the broken parts %+v, want none", report.Broken)
	}

	ring, err := keys.Open(t.Context(), keys.Config{Store: rows, Master: master})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := ring.OpenSecret("of a test", sealed)
	if err != nil {
		t.Fatal(err)
	}
	if string(secret) != "a secret" {
		t.Errorf("a secret from before the replacement = %q, want \"a secret\"", secret)
	}
}
