package database

import (
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

// closed returns a database file that has some rows and that no process has open.
func closed(t *testing.T) string {
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
	foreign := func(t *testing.T) string {
		file := filepath.Join(t.TempDir(), "a.db")
		db, err := sql.Open("sqlite", "file:"+file)
		if err == nil {
			_, err = db.ExecContext(t.Context(),
				`CREATE TABLE users (id TEXT); CREATE TABLE goose_db_version (id TEXT)`)
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return file
	}

	tests := []struct {
		name string
		make func(*testing.T) string
		want string
	}{
		{"a page overwritten", func(t *testing.T) string {
			file := closed(t)
			scribble(t, file)
			return file
		}, "the database is damaged ("},
		{"truncated", func(t *testing.T) string {
			file := closed(t)
			if err := os.Truncate(file, 3*4096); err != nil {
				t.Fatal(err)
			}
			return file
		}, "the database is damaged ("},
		{"no database", func(t *testing.T) string {
			file := filepath.Join(t.TempDir(), "a.db")
			if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}, "not, or no longer, an SQLite database"},
		{"another program's", foreign,
			"the database belongs to another program: it has tables goose_db_version, users, " +
				"but none of selvage's; use another file"},
	}

	for _, tt := range tests {
		file := tt.make(t)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for i, do := range []func() error{
			func() error { _, err := Look(t.Context(), config(file)); return err },
			func() error { _, err := Open(t.Context(), config(file)); return err },
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %s = %v, want %q", tt.name, [...]string{"Look", "Open"}[i], err, tt.want)
			}
		}

		if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
			t.Errorf("%s: the file was changed or deleted: %v", tt.name, err)
		}
	}
}

// TestLarge shows that a large file is checked while it is in use, and that queries fail once
// damage is found.
func TestLarge(t *testing.T) {
	file := closed(t)
	c := config(file)
	c.large = 1
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
	update.Prepare = func(context.Context, *sql.DB, Dialect) error { prepared = true; return nil }
	if _, err := openFile(t.Context(), update); err == nil ||
		!strings.Contains(err.Error(), "the database is damaged") || prepared {
		t.Errorf("opening a damaged file with an earlier schema: %v, changed: %v, want an error and no change",
			err, prepared)
	}

	d, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	d.checking.Wait()
	if err := d.Ping(t.Context()); !errors.Is(err, problem.Unavailable) ||
		!strings.Contains(err.Error(), "the database is damaged") {
		t.Errorf("Ping of a damaged file = %v, want unavailable", err)
	}

	if _, err := Look(t.Context(), c); err == nil || !strings.Contains(err.Error(), "the database is damaged") {
		t.Errorf("Look at a damaged file = %v, want an error about the damage", err)
	}
}

// TestLook shows that Look creates nothing.
func TestLook(t *testing.T) {
	file := closed(t)
	for _, suffix := range []string{"-wal", "-shm", "-schema-lock"} {
		_ = os.Remove(file + suffix) // as if the file had been copied without its log
	}

	r, err := Look(t.Context(), config(file))
	if err != nil || !r.Checked || r.Size == 0 || strings.Join(r.Tables, " ") != "t" {
		t.Errorf("Look = %+v, %v, want a checked file with the table t", r, err)
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
		t.Errorf("Look during a write = %+v, %v, want the size of the log", r, err)
	}
	if err := d.Change(t.Context(), insert("still later")); err != nil {
		t.Errorf("a change after Look = %v, want nil", err)
	}
}

// TestReadOnly shows that opening a file read-only creates nothing and changes nothing.
func TestReadOnly(t *testing.T) {
	file := closed(t)
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

// TestDamageMet shows that all queries fail once a query has found damage.
func TestDamageMet(t *testing.T) {
	file := closed(t)
	c := config(file)
	c.Check = 0
	d, err := openFile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })

	scribble(t, file)
	if n, err := all(t.Context(), d); !errors.Is(err, problem.Unavailable) ||
		!strings.Contains(err.Error(), "the database is damaged") {
		t.Errorf("reading every row = %d, %v, want unavailable", n, err)
	}

	if err := d.Change(t.Context(), insert("later")); !errors.Is(err, problem.Unavailable) {
		t.Errorf("a change afterwards = %v, want unavailable", err)
	}
	if err := d.Read().Row(t.Context(), `SELECT 1`).Scan(new(int)); !errors.Is(err, problem.Unavailable) {
		t.Errorf("reading afterwards = %v, want unavailable", err)
	}
	if err := d.Ping(t.Context()); err == nil {
		t.Error("Ping afterwards: no error")
	}
}

func all(ctx context.Context, d *file) (n int, err error) {
	err = d.Read().Row(ctx, `SELECT count(*) FROM t NOT INDEXED WHERE id > ''`).Scan(&n)
	return n, err
}
