package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// abandoned returns a copy of a database's files in the state that a killed process leaves after
// some changes. If moved is set, as much of the log as an open reader permits has been moved into
// the file.
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
		text, err := os.ReadFile(file + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// TestLog shows that acknowledged changes that are missing from the log are reported.
func TestLog(t *testing.T) {
	wal := func(change func(name string, size int64) error) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			info, err := os.Stat(file + "-wal")
			if err == nil {
				err = change(file+"-wal", info.Size())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}

	tests := []struct {
		name  string
		moved bool
		spoil func(*testing.T, string)
		lost  bool
	}{
		{"nothing", false, wal(func(string, int64) error { return nil }), false},
		{"nothing, the log partly moved", true, wal(func(string, int64) error { return nil }), false},
		{"the log deleted", false, wal(func(name string, _ int64) error { return os.Remove(name) }), true},
		{"the log deleted, partly moved", true,
			wal(func(name string, _ int64) error { return os.Remove(name) }), true},
		{"the log emptied", false, wal(func(name string, _ int64) error { return os.Truncate(name, 0) }), true},
		{"the log truncated", false, wal(func(name string, size int64) error {
			return os.Truncate(name, size/2)
		}), true},
		{"its last byte missing", true, wal(
			func(name string, size int64) error { return os.Truncate(name, size-1) }), true},
		{"a page overwritten", false, wal(
			func(name string, size int64) error { return overwrite(name, size/2) }), true},
		{"its index deleted", false, func(t *testing.T, file string) {
			if err := os.Remove(file + "-shm"); err != nil {
				t.Fatal(err)
			}
		}, false},
	}

	for _, tt := range tests {
		file := abandoned(t, tt.moved)
		tt.spoil(t, file)
		d, err := openFile(t.Context(), config(file))
		var unfit *Unfit
		if errors.As(err, &unfit) != tt.lost || (err != nil) != tt.lost {
			t.Errorf("%s: Open = %v, want missing changes reported: %v", tt.name, err, tt.lost)
		}

		if err != nil {
			continue
		}
		if n := count(t, d); n != 20 {
			t.Errorf("%s: %d rows, want 20", tt.name, n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func overwrite(name string, at int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("overwritten"), at)
	return errors.Join(err, f.Close())
}
