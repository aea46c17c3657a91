package database

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// closedFile returns a database file that has some rows and that no process has open.
func closedFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.db")
	d := open(t, file)
	for i := range 500 {
		if err := d.Change(t.Context(), insert(fmt.Sprintf("%04d%s", i, strings.Repeat("x", 60)))); err != nil {
			t.Fatal(err)
		}
	}

	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// hasT is a Config.Ours for the databases of these tests.
func hasT(tables []string) bool { return slices.Contains(tables, "t") }

func config(file string) Config {
	return Config{URL: "sqlite:" + file, Sync: Full, Ours: hasT, Check: time.Minute, Prepare: makeTable}
}

// scribble overwrites the second page of a file, which is the root of the first table.
func scribble(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}

	page := make([]byte, 4096)
	rand.Read(page)
	if _, err := f.WriteAt(page, 4096); err != nil {
		t.Fatal(err)
	}

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRefused shows that a foreign or damaged file is neither used nor changed.
func TestRefused(t *testing.T) {
	t.Run("an overwritten page", func(t *testing.T) {
		file := closedFile(t)
		scribble(t, file)
		testRefused(t, file, "the database is damaged (")
	})

	t.Run("truncated", func(t *testing.T) {
		file := closedFile(t)
		if err := os.Truncate(file, 3*4096); err != nil {
			t.Fatal(err)
		}
		testRefused(t, file, "the database is damaged (")
	})

	t.Run("not a database", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "a.db")
		if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		testRefused(t, file, "not, or no longer, an SQLite database")
	})

	t.Run("another program's", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "a.db")
		db, err := sql.Open("sqlite", "file:"+file)
		if err != nil {
			t.Fatal(err)
		}
		const tables = `CREATE TABLE users (id TEXT); CREATE TABLE goose_db_version (id TEXT)`
		_, err = db.ExecContext(t.Context(), tables)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		testRefused(t, file, "the database belongs to another program: it has tables goose_db_version, users, "+
			"but none of selvage's; use another file")
	})
}

// testRefused shows that Look and Open refuse a file with an error that contains want.
func testRefused(t *testing.T, file, want string) {
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := Look(t.Context(), config(file)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Look = %v, want an error that contains %q", err, want)
	}
	if _, err := Open(t.Context(), config(file)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v, want an error that contains %q", err, want)
	}

	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("reading the refused file: %v", err)
	}
	if !bytes.Equal(after, before) {
		t.Error("the refused file was changed")
	}
}

// TestLarge shows that a large file is checked while it is in use, and that queries fail once
// damage is found.
func TestLarge(t *testing.T) {
	file := closedFile(t)
	c := config(file)
	c.large = 1 // every file is larger than a byte
	if r, err := Look(t.Context(), c); err != nil || !r.Checked {
		t.Errorf("Look = %+v, %v, want the whole file checked", r, err)
	}

	whole, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	whole.checking.Wait()
	if err := whole.Ping(t.Context()); err != nil {
		t.Errorf("Ping of an undamaged file = %v, want nil", err)
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}

	scribble(t, file)

	update, prepared := c, false
	update.Schema++
	update.Prepare = func(context.Context, *sql.DB, Dialect) error {
		prepared = true
		return nil
	}
	_, err = openFile(t.Context(), update)
	wantDamaged(t, "opening a damaged file with an earlier schema", err)
	if prepared {
		t.Error("the schema of a damaged file was changed")
	}

	d, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	d.checking.Wait()
	err = d.Ping(t.Context())
	wantDamaged(t, "Ping of a damaged file", err)
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("Ping of a damaged file = %v, want problem.Unavailable", err)
	}

	_, err = Look(t.Context(), c)
	wantDamaged(t, "Look at a damaged file", err)
}

// wantDamaged checks that an error says that the database is damaged.
func wantDamaged(t *testing.T, operation string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "the database is damaged") {
		t.Errorf("%s = %v, want an error about the damage", operation, err)
	}
}

// TestLook shows that Look creates nothing.
func TestLook(t *testing.T) {
	file := closedFile(t)
	for _, suffix := range []string{"-wal", "-shm", "-schema-lock"} {
		_ = os.Remove(file + suffix) // as if the file had been copied without its log
	}

	r, err := Look(t.Context(), config(file))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Checked {
		t.Error("Look did not check the whole file")
	}
	if r.Size == 0 {
		t.Error("Look returns the size 0, want the size of the file")
	}
	if want := []string{"t"}; !slices.Equal(r.Tables, want) {
		t.Errorf("Look returns the tables %q, want %q", r.Tables, want)
	}
	if found, err := filepath.Glob(file + "*"); err != nil || len(found) != 1 {
		t.Errorf("files after Look: %q, %v, want only the database", found, err)
	}

	if _, err := Look(t.Context(), config(file+"x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Look at a missing file = %v, want ErrNotExist", err)
	}

	d := open(t, file)
	if err := d.Change(t.Context(), insert("later")); err != nil {
		t.Fatal(err)
	}
	if r, err := Look(t.Context(), config(file)); err != nil || r.Log == 0 {
		t.Errorf("Look at a database in use = %+v, %v, want the size of the log", r, err)
	}
	if err := d.Change(t.Context(), insert("still later")); err != nil {
		t.Errorf("a change after Look = %v, want nil", err)
	}
}

// TestReadOnly shows that opening a file read-only creates nothing and changes nothing.
func TestReadOnly(t *testing.T) {
	file := closedFile(t)
	for _, suffix := range []string{"-wal", "-shm", "-schema-lock"} {
		_ = os.Remove(file + suffix)
	}

	c := config(file)
	c.ReadOnly = true
	d, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	if n := count(t, d); n != 500 {
		t.Errorf("%d rows, want 500", n)
	}
	if err := d.Change(t.Context(), insert("a")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a change = %v, want ErrReadOnly", err)
	}

	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if found, err := filepath.Glob(file + "*"); err != nil || len(found) != 1 {
		t.Errorf("files afterwards: %q, %v, want only the database", found, err)
	}
}

// TestDamageFound shows that all queries fail once a query has found damage.
func TestDamageFound(t *testing.T) {
	file := closedFile(t)
	c := config(file)
	c.Check = 0
	d, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })

	scribble(t, file)
	var rows int
	err = d.Read().Row(t.Context(), `SELECT count(*) FROM t NOT INDEXED WHERE id > ''`).Scan(&rows)
	wantDamaged(t, "reading every row", err)
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("reading every row = %v, want problem.Unavailable", err)
	}

	if err := d.Change(t.Context(), insert("later")); !errors.Is(err, problem.Unavailable) {
		t.Errorf("a change afterwards = %v, want problem.Unavailable", err)
	}
	if err := d.Read().Row(t.Context(), `SELECT 1`).Scan(new(int)); !errors.Is(err, problem.Unavailable) {
		t.Errorf("reading afterwards = %v, want problem.Unavailable", err)
	}
	if err := d.Ping(t.Context()); err == nil {
		t.Error("Ping afterwards succeeds, want an error")
	}
}
