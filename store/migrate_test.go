package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/selvage/selvage/internal/database"
)

// laterMigrations returns all migrations up to the given version: those of this package, followed by
// invented ones.
func laterMigrations(t testing.TB, version int) fs.FS {
	t.Helper()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}

	chosen := fstest.MapFS{}
	newest := 0
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(path.Base(file), "%d_", &newest); err != nil {
			t.Fatal(err)
		}
		if newest <= version {
			chosen[file] = &fstest.MapFile{Data: text}
		}
	}

	for v := newest + 1; v <= version; v++ {
		text := fmt.Sprintf("-- +goose Up\nCREATE TABLE later_%d (id TEXT PRIMARY KEY, at BIGINT NOT NULL);\n"+
			"CREATE INDEX later_%d_at ON later_%d (at);\n", v, v, v)
		chosen[fmt.Sprintf("migrations/%05d_later.sql", v)] = &fstest.MapFile{Data: []byte(text)}
	}
	return chosen
}

func TestSchemaVersion(t *testing.T) { EachDatabase(t, testSchemaVersion) }

func testSchemaVersion(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	current, known, err := s.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if known < 1 {
		t.Errorf("the known version is %d, want at least 1", known)
	}
	if current != known {
		t.Errorf("the current version is %d, want %d", current, known)
	}

	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Since(now).Abs(); off > time.Minute {
		t.Errorf("Clock = %v, which is off by %v, want the current time", now, off)
	}
}

// TestNewerSchema shows that a schema from a later version is refused and not changed.
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
	wantUnfit(t, err, "the database has schema 99999")
}

// wantUnfit fails the test unless err is an Unfit error that contains text.
func wantUnfit(t *testing.T, err error, text string) {
	t.Helper()
	var unfit *database.Unfit
	if !errors.As(err, &unfit) {
		t.Fatalf("Open = %v, want an Unfit error", err)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("Open = %v, want an error that contains %q", err, text)
	}
}

// TestOlderSchema shows that a schema from an earlier version is updated and keeps its rows. After
// the update, the earlier version refuses the schema.
func TestOlderSchema(t *testing.T) { EachDatabase(t, testOlderSchema) }

func testOlderSchema(t *testing.T, c Config) {
	s, project, _ := grantRows(t, c)
	later := c
	next := s.known + 1
	later.migrations = laterMigrations(t, int(next))
	again := opened(t, later)
	current, known, err := again.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if current != next {
		t.Errorf("the current version is %d, want %d", current, next)
	}
	if known != next {
		t.Errorf("the known version is %d, want %d", known, next)
	}

	if _, err := again.FindProject(t.Context(), project.ProjectID); err != nil {
		t.Errorf("FindProject after the update = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	_, err = Open(t.Context(), c)
	wantUnfit(t, err, fmt.Sprint("has schema ", next))
}

// TestOpenAndDie is run in child processes of TestKilledMigrations. It kills its own process after
// a random time.
func TestOpenAndDie(t *testing.T) {
	c := Config{URL: os.Getenv("SELVAGE_TEST_URL"), migrations: laterMigrations(t, killedAt(t))}
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

// killedAt returns the schema version to which processes migrate until they are killed. Several
// migrations lead to it, so that a process can also be killed between two of them.
func killedAt(t testing.TB) int {
	t.Helper()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var newest int // not the number of files, because versions may be omitted
	if _, err := fmt.Sscanf(path.Base(slices.Max(files)), "%d_", &newest); err != nil {
		t.Fatal(err)
	}
	return newest + 3
}

// TestKilledMigrations shows that if a process is killed during a migration, the next process can
// resume it.
func TestKilledMigrations(t *testing.T) { EachDatabase(t, testKilledMigrations) }

func testKilledMigrations(t *testing.T, c Config) {
	if c.URL == "" {
		c.URL = "sqlite:" + c.Dir + "/a.db"
	}

	c.migrations = laterMigrations(t, killedAt(t))
	killed := 0
	for most := 4 * time.Millisecond; ; most += most / 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOpenAndDie$")
		cmd.Env = append(os.Environ(),
			"SELVAGE_TEST_URL="+c.URL,
			"SELVAGE_TEST_WITHIN="+most.String(),
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
		t.Error("no process was killed")
	}
	fresh := Config{Dir: t.TempDir(), migrations: c.migrations}
	if strings.HasPrefix(c.URL, "postgres") {
		fresh = Config{URL: freshServer(t), migrations: c.migrations}
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

	prepare := dbc.Prepare
	dbc.Prepare = func(ctx context.Context, db *sql.DB, d database.Dialect) error {
		if err := prepare(ctx, db, d); err != nil {
			return err
		}
		query := `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
			SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable,
				column_default) AS line
				FROM information_schema.columns WHERE table_schema = current_schema()
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()) AS lines`
		if d == database.SQLite {
			query = `SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_master ORDER BY name)`
		}
		return db.QueryRowContext(ctx, query).Scan(&schema)
	}

	db, err := database.Open(t.Context(), dbc)
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	return schema
}

// TestCollation shows that PostgreSQL compares all text in the database byte by byte.
func TestCollation(t *testing.T) {
	for line := range strings.SplitSeq(schemaOf(t, Config{URL: freshServer(t)}), "\n") {
		if strings.Contains(line, " text ") && !strings.Contains(line, " text C ") {
			t.Errorf("the column %s is not compared byte by byte", line)
		}
	}
}

// newestVersion returns the newest schema version, which this code requires.
func newestVersion(t *testing.T) int {
	t.Helper()
	newest, err := newestSchema(migrations)
	if err != nil {
		t.Fatal(err)
	}
	return int(newest)
}

// openAt opens the database with the migrations up to the given version, and closes it again.
func openAt(t *testing.T, c Config, version int) {
	t.Helper()
	c.migrations = laterMigrations(t, version)
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	current, _, err := s.SchemaVersion(t.Context())
	if err != nil || current != int64(version) {
		t.Errorf("the schema is %d, %v, want %d", current, err, version)
	}
}

// TestBefore shows that the database's file is copied before its schema is changed, and that the copy
// can be opened. A new database is not copied. Only the two newest copies are kept.
func TestBefore(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	newest := newestVersion(t)
	file := filepath.Join(c.Dir, "selvage.db")
	openAt(t, c, newest)
	if got := Before(file); got != "" {
		t.Errorf("a new database was copied to %s", got)
	}

	copied := copyOf(file, int64(newest))
	// The copy of schema 99 is from before a downgrade: it has the highest number, but is not the
	// newest copy.
	for age, version := range []int64{int64(newest), 10, 99, 2} {
		at := time.Now().Add(time.Duration(-age-1) * time.Hour)
		old := copyOf(file, version)
		if err := os.WriteFile(old, []byte("of an earlier change"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(old, at, at); err != nil {
			t.Fatal(err)
		}
	}

	openAt(t, c, newest+1)
	if got := Before(file); got != copied {
		t.Fatalf("the newest copy is %s, want %s", got, copied)
	}
	if got, want := copies(file), []int64{10, int64(newest)}; !slices.Equal(got, want) {
		t.Fatalf("the copies have the schemas %d, want %d", got, want)
	}
	info, err := os.Stat(copied)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the copy's mode is %v, want 0600", mode)
	}

	wantSchema(t, Config{URL: "sqlite:" + copied}, newest)
}

// TestBeforeClockSetBack shows that the newest copy is kept and found even if older copies have times in
// the future.
func TestBeforeClockSetBack(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	newest := newestVersion(t)
	file := filepath.Join(c.Dir, "selvage.db")
	openAt(t, c, newest)
	for i, version := range []int64{1, 2, 3} {
		at := time.Now().Add(time.Duration(i+1) * time.Hour)
		old := copyOf(file, version)
		if err := os.WriteFile(old, []byte("of an earlier change"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(old, at, at); err != nil {
			t.Fatal(err)
		}
	}

	openAt(t, c, newest+1)
	if got, want := Before(file), copyOf(file, int64(newest)); got != want {
		t.Errorf("the newest copy is %s, want %s", got, want)
	}
	if got, want := copies(file), []int64{3, int64(newest)}; !slices.Equal(got, want) {
		t.Errorf("the copies have the schemas %d, want %d", got, want)
	}
}

// wantSchema fails the test unless the database has the given version of the schema.
func wantSchema(t *testing.T, c Config, version int) {
	t.Helper()
	report, _, err := Look(t.Context(), c)
	if err != nil || report.Schema != int64(version) {
		t.Errorf("the schema is %d, %v, want %d", report.Schema, err, version)
	}
}

// TestNoCopy shows that if the database's file cannot be copied, the schema is not changed.
func TestNoCopy(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	newest := newestVersion(t)
	openAt(t, c, newest)
	part := copyOf(filepath.Join(c.Dir, "selvage.db"), int64(newest)) + ".part"
	if err := os.MkdirAll(filepath.Join(part, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}

	c.migrations = laterMigrations(t, newest+1)
	_, err := Open(t.Context(), c)
	wantUnfit(t, err, "backing up the database")
	wantSchema(t, c, newest)
}
