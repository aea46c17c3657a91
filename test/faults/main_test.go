package faults

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver that opens the files of a killed server

	"github.com/selvage/selvage/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// rounds returns how many times a server is killed.
func rounds() int {
	if os.Getenv("LONG") == "1" {
		return 200
	}
	return 4
}

// wantWhole checks the integrity of a stopped server's databases. A database server was not killed,
// so it needs no check.
func wantWhole(t *testing.T, s *harness.Server) {
	t.Helper()
	if s.Database() != "" {
		return
	}

	for _, name := range []string{"selvage.db", "sessions.db"} {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Data, name)+"?mode=ro")
		if err != nil {
			t.Fatal(err)
		}
		var verdict string
		err = db.QueryRow("PRAGMA integrity_check").Scan(&verdict)
		if err != nil || verdict != "ok" {
			t.Errorf("integrity_check of %s = %q, %v, want ok", name, verdict, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
