package store

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/selvage/selvage/internal/database"
)

// goBack takes the newest migration back, and gives the version that is left.
func goBack(t *testing.T, file string) int64 {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, database.SQLite.Schemas(dir),
		goose.WithTableName(database.Versions))
	if err != nil {
		t.Fatal(err)
	}
	_, downErr := provider.Down(t.Context())
	left, err := provider.GetDBVersion(t.Context())
	if err := errors.Join(downErr, err); err != nil {
		t.Fatal(err)
	}
	return left
}

// Before a schema is changed there is a copy of what was there, which opens; of a new
// database there is none, and of several the newest two stay.
func TestBefore(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	file := filepath.Join(c.Dir, "selvage.db")
	open := func() error {
		s, err := Open(t.Context(), c)
		if err != nil {
			return err
		}
		defer s.Close()
		current, known, err := s.SchemaVersion(t.Context())
		if current != known {
			t.Errorf("the schema is %d, want %d", current, known)
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if Before(file) != "" {
		t.Errorf("a new database was copied to %s", Before(file))
	}
	left := goBack(t, file)
	copied := copyOf(file, left)
	// Somebody has gone back from the schema 99: the copy of that has the highest number.
	for age, version := range []int64{left, 10, 99, 2} {
		at := time.Now().Add(time.Duration(-age-1) * time.Hour)
		old := copyOf(file, version)
		if err := errors.Join(os.WriteFile(old, []byte("of an earlier change"), 0o600), os.Chtimes(old, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if got := Before(file); got != copied || !slices.Equal(copies(file), []int64{10, left}) {
		t.Fatalf("the newest copy is %s of %d, want %s and the one before it", got, copies(file), copied)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy's mode is %v, %v", info.Mode(), err)
	}
	r, _, err := Look(t.Context(), Config{URL: "sqlite:" + copied})
	if err != nil || r.Schema != left {
		t.Errorf("the copy has schema %d, %v, want %d", r.Schema, err, left)
	}
}

// Where no copy can be made nothing is changed.
func TestNoCopy(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	s, err := Open(t.Context(), c)
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Dir, "selvage.db")
	left := goBack(t, file)
	part := copyOf(file, left) + ".part"
	if err := os.MkdirAll(filepath.Join(part, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), c)
	var unfit *database.Unfit
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "no copy of it could be made") {
		t.Errorf("Open = %v, want it refused", err)
	}
	if r, _, err := Look(t.Context(), c); err != nil || r.Schema != left {
		t.Errorf("the schema is %d, %v, want it left at %d", r.Schema, err, left)
	}
}
