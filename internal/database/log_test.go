package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// abandoned returns a copy of a database's files in the state that a killed process leaves after
// some changes. If moved is true, a part of the log has been moved into the file: as much as an open
// reader permits.
func abandoned(t *testing.T, moved bool) string {
	t.Helper()
	file, copied := filepath.Join(t.TempDir(), "a.db"), filepath.Join(t.TempDir(), "a.db")
	d := open(t, file)

	for i := range 20 {
		if moved && i == 5 {
			tx, err := d.reads.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if err := tx.QueryRow(`SELECT count(*) FROM t`).Scan(new(int)); err != nil {
				t.Fatal(err)
			}
		}

		if moved && i == 10 {
			if err := d.writer.exec(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
				t.Fatal(err)
			}
		}

		if err := d.Change(t.Context(), insert(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}

	for _, suffix := range []string{"", "-wal", "-shm"} {
		content, err := os.ReadFile(file + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// TestLog shows that opening a database fails if acknowledged changes are missing from the log.
func TestLog(t *testing.T) {
	tests := []struct {
		name  string
		moved bool
		spoil func(log string, size int64) error
	}{
		{
			name:  "deleted",
			spoil: func(log string, _ int64) error { return os.Remove(log) },
		},
		{
			name:  "deleted, partly moved",
			moved: true,
			spoil: func(log string, _ int64) error { return os.Remove(log) },
		},
		{
			name:  "emptied",
			spoil: func(log string, _ int64) error { return os.Truncate(log, 0) },
		},
		{
			name:  "truncated",
			spoil: func(log string, size int64) error { return os.Truncate(log, size/2) },
		},
		{
			name:  "its last byte missing, partly moved",
			moved: true,
			spoil: func(log string, size int64) error { return os.Truncate(log, size-1) },
		},
		{
			name:  "a page overwritten",
			spoil: func(log string, size int64) error { return overwrite(log, size/2) },
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := abandoned(t, tt.moved)
			log := file + "-wal"
			info, err := os.Stat(log)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(log, info.Size()); err != nil {
				t.Fatal(err)
			}

			_, err = openFile(t.Context(), config(file))
			var unfit *Unfit
			if !errors.As(err, &unfit) {
				t.Errorf("Open = %v, want an Unfit, because changes are missing", err)
			}
		})
	}
}

// TestWholeLog shows that if the log is undamaged, the database is opened and has all changes.
func TestWholeLog(t *testing.T) {
	withoutIndex := abandoned(t, false)
	if err := os.Remove(withoutIndex + "-shm"); err != nil {
		t.Fatal(err)
	}

	for name, file := range map[string]string{
		"not moved":         abandoned(t, false),
		"partly moved":      abandoned(t, true),
		"its index deleted": withoutIndex,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := openFile(t.Context(), config(file))
			if err != nil {
				t.Fatal(err)
			}
			wantRows(t, d, 20)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// overwrite replaces some bytes of a file.
func overwrite(name string, offset int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("overwritten"), offset)
	return errors.Join(err, f.Close())
}
