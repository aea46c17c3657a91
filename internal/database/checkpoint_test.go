package database

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCheckpoint shows that the log is moved into the file and begun again long before SQLite
// itself would do so while changes wait. No change is lost.
func TestCheckpoint(t *testing.T) {
	const pages = 20 // in a change, at least: ten for the row, and ten for its key
	file := filepath.Join(t.TempDir(), "a.db")
	d := open(t, file)
	first := logHead(t, file)
	changes := 0
	for bytes.Equal(logHead(t, file), first) {
		if changes*pages >= maxLogPages {
			t.Fatalf("the log was not begun again after %d changes", changes)
		}
		err := d.Change(t.Context(), func(tx Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO t VALUES (randomblob($1))`, pages/2*4096)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		changes++
	}

	if changes*pages < checkpointPages/2 {
		t.Errorf("the log was begun again after %d changes, which is too early", changes)
	}
	wantRows(t, d, changes)
}

// logHead returns the header of the log, which differs after the log was begun again.
func logHead(t *testing.T, file string) []byte {
	t.Helper()
	log, err := os.ReadFile(file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return log[:min(len(log), 32)]
}
