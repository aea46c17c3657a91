package store

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/database"
)

func TestSchemaVersion(t *testing.T) { EachDatabase(t, testSchemaVersion) }

func testSchemaVersion(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	current, known, err := s.SchemaVersion(t.Context())
	if current != known || known < 4 || err != nil {
		t.Errorf("SchemaVersion = %d, %d, %v, want what this binary makes, twice", current, known, err)
	}
	if now, err := s.Clock(t.Context()); err != nil || now.Before(time.Now().Add(-time.Minute)) ||
		now.After(time.Now().Add(time.Minute)) {
		t.Errorf("Clock = %v, %v, want about now", now, err)
	}
}

// A schema of a later version is refused, and left alone.
func TestNewerSchema(t *testing.T) { EachDatabase(t, testNewerSchema) }

func testNewerSchema(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	err := s.db.Once(t.Context(), func(tx database.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO selvage_versions (version_id, is_applied) VALUES (99999, TRUE)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), c)
	var unfit *database.Unfit
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "the database has schema 99999") {
		t.Errorf("Open = %v, want it refused", err)
	}
}

// What was made when the table of versions had another name is opened as it is, and
// another program's table of that name stays.
func TestEarlierName(t *testing.T) { EachDatabase(t, testEarlierName) }

func testEarlierName(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	do := func(sql string) {
		t.Helper()
		if err := s.db.Once(t.Context(), func(tx database.Tx) error { _, err := tx.Exec(t.Context(), sql); return err }); err != nil {
			t.Fatal(err)
		}
	}
	do(`ALTER TABLE selvage_versions RENAME TO goose_db_version`)
	r, known, err := Look(t.Context(), c)
	if err != nil || r.Schema != known {
		t.Errorf("Look = schema %d, %v, want %d", r.Schema, err, known)
	}
	for range 2 {
		again, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if current, known, err := again.SchemaVersion(t.Context()); current != known || err != nil {
			t.Errorf("SchemaVersion = %d, %d, %v", current, known, err)
		}
		_ = again.Close()
		do(`CREATE TABLE IF NOT EXISTS goose_db_version (id TEXT)`)
	}
	do(`SELECT id FROM goose_db_version`)
}

// TestOpenAndDie is what TestKilledMigrations runs. It kills itself some time after it has
// begun, which waits for no other process.
func TestOpenAndDie(t *testing.T) {
	c := Config{URL: os.Getenv("SELVAGE_TEST_URL")}
	if c.URL == "" {
		t.Skip("run by TestKilledMigrations")
	}
	within, err := time.ParseDuration(os.Getenv("SELVAGE_TEST_WITHIN"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(rand.N(within), func() { _ = self.Kill() })
	if s, err := Open(t.Context(), c); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
}

// Whoever is killed while it makes the schema leaves what the next one can go on from.
func TestKilledMigrations(t *testing.T) { EachDatabase(t, testKilledMigrations) }

func testKilledMigrations(t *testing.T, c Config) {
	if c.URL == "" {
		c.URL = "sqlite:" + c.Dir + "/a.db"
	}
	killed := 0
	for most := 4 * time.Millisecond; ; most += most / 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOpenAndDie$")
		cmd.Env = append(os.Environ(), "SELVAGE_TEST_URL="+c.URL, "SELVAGE_TEST_WITHIN="+most.String(),
			"GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if code := cmd.ProcessState.ExitCode(); code != -1 {
			t.Fatalf("opening after %d kills: exit status %d\n%s", killed, code, out)
		}
		killed++
	}
	if killed == 0 {
		t.Error("nobody was killed")
	}
	fresh := Config{Dir: t.TempDir()}
	if strings.HasPrefix(c.URL, "postgres") {
		fresh = Config{URL: freshServer(t)}
	}
	if got, want := schemaOf(t, c), schemaOf(t, fresh); got != want {
		t.Errorf("after %d kills the schema is\n%s\nwant\n%s", killed, got, want)
	}
}

// schemaOf returns all columns and indexes of a database.
func schemaOf(t *testing.T, c Config) (schema string) {
	t.Helper()
	dbc, err := c.database()
	if err != nil {
		t.Fatal(err)
	}
	dbc.Prepare = func(ctx context.Context, db *sql.DB, d database.Dialect) error {
		if _, err := migrate(ctx, db, d); err != nil {
			return err
		}
		query := `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
			SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable, column_default) AS line FROM information_schema.columns WHERE table_schema = current_schema()
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()) AS lines`
		if d == database.SQLite {
			query = `SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_master ORDER BY name)`
		}
		return db.QueryRowContext(ctx, query).Scan(&schema)
	}
	d, err := database.Open(t.Context(), dbc)
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	return schema
}

// All text of a server's database is compared by bytes.
func TestCollation(t *testing.T) {
	for line := range strings.SplitSeq(schemaOf(t, Config{URL: freshServer(t)}), "\n") {
		if strings.Contains(line, " text ") && !strings.Contains(line, " text C ") {
			t.Errorf("column %s is not compared by bytes", line)
		}
	}
}
