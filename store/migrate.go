package store

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/durable"
)

//go:embed migrations/*.sql
var migrations embed.FS

var gooseDialects = map[database.Dialect]goose.Dialect{
	database.SQLite:   goose.DialectSQLite3,
	database.Postgres: goose.DialectPostgres,
}

// migrate updates the schema to the version target. It returns an error if the schema is newer. An
// SQLite file is copied before its schema is changed.
func migrate(ctx context.Context, db *sql.DB, dialect database.Dialect, files fs.FS, target int64) error {
	dir, err := fs.Sub(files, "migrations")
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	provider, err := goose.NewProvider(gooseDialects[dialect], db, dialect.Schemas(dir),
		goose.WithTableName(database.Versions))
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}

	current, _, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading schema version: %w", err)
	}
	if current > target {
		return newer(current, target)
	}
	if current == target {
		return nil
	}

	if err := copyBefore(ctx, db, dialect, current); err != nil {
		return err
	}
	if _, err := provider.UpTo(ctx, target); err != nil {
		return fmt.Errorf("updating schema: %w", err)
	}
	return nil
}

// newer returns the error for a schema from a newer version.
func newer(current, known int64) *database.Unfit {
	return &database.Unfit{
		Found: fmt.Sprintf("the database has schema %d, but this version supports up to %d: "+
			"a newer version has used it", current, known),
		Remedy: "run the newer version",
	}
}

// newestSchema returns the version of the schema after all migrations.
func newestSchema(files fs.FS) (known int64, err error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("reading migrations: %w", err)
	}
	var errs []error
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		errs = append(errs, err)
		known = max(known, version)
	}
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("reading migrations: %w", err)
	}
	return known, nil
}

// copyMark separates the name of the database file from the schema version in the name of a copy.
const copyMark = ".schema-"

// keptCopies is the number of copies to keep. After an interrupted migration, the next start first
// copies the intermediate state and then resumes the migration. That copy must not be the only one.
const keptCopies = 2

// Before returns the name of the copy that was made of an SQLite file before its last schema
// change, or "" if there is none.
func Before(file string) string {
	versions := copies(file)
	if len(versions) == 0 {
		return ""
	}
	return copyOf(file, versions[len(versions)-1])
}

// copyOf returns the name for a copy of file at the given schema version.
func copyOf(file string, version int64) string {
	return file + copyMark + strconv.FormatInt(version, 10)
}

// copies returns the schema versions of a file's copies, the oldest copy first. Copies are sorted
// by time, not by version: after a downgrade, the newest copy does not have the highest version.
func copies(file string) []int64 {
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil
	}

	created := make(map[int64]time.Time)
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), filepath.Base(file)+copyMark)
		if !ok {
			continue
		}
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		if info, err := e.Info(); err == nil { // otherwise the copy has just been deleted
			created[version] = info.ModTime()
		}
	}

	return slices.SortedFunc(maps.Keys(created), func(a, b int64) int {
		return cmp.Or(created[a].Compare(created[b]), cmp.Compare(a, b))
	})
}

// copyBefore copies an SQLite database to the same directory before its schema changes, so that the
// change can be undone. It replaces an earlier copy of the same version. It does not copy
// PostgreSQL databases, which have their own backups.
func copyBefore(ctx context.Context, db *sql.DB, dialect database.Dialect, version int64) error {
	if dialect != database.SQLite || version == 0 {
		return nil
	}
	var file string
	err := db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file)
	if err != nil {
		return fmt.Errorf("finding the database file: %w", err)
	}
	if err := copyTo(ctx, db, copyOf(file, version)); err != nil {
		return &database.Unfit{
			Found:  fmt.Sprintf("backing up the database before the schema upgrade failed: %v", err),
			Remedy: "free as much space as the database takes in " + filepath.Dir(file) + "; the database is unchanged",
		}
	}

	errs := []error{makeNewest(file, version)}
	versions := copies(file)
	for _, version := range versions[:max(0, len(versions)-keptCopies)] {
		errs = append(errs, os.Remove(copyOf(file, version)))
	}
	return errors.Join(errs...)
}

// makeNewest ensures that the copy of a version is the newest copy by its time, even if the clock was
// set back after other copies were made. Otherwise, the copy could be deleted as the oldest one.
func makeNewest(file string, version int64) error {
	versions := copies(file)
	if len(versions) == 0 || versions[len(versions)-1] == version {
		return nil
	}
	info, err := os.Stat(copyOf(file, versions[len(versions)-1]))
	if err != nil {
		return fmt.Errorf("reading the time of a copy: %w", err)
	}
	later := info.ModTime().Add(time.Second)
	return os.Chtimes(copyOf(file, version), later, later)
}

// copyTo writes a copy of the database to file, with mode 0600. The file appears only once it is
// complete.
func copyTo(ctx context.Context, db *sql.DB, file string) (err error) {
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(part))
			return
		}
		if err = os.Rename(part, file); err == nil {
			err = durable.SyncDir(filepath.Dir(file))
		}
	}()

	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return err
	}
	return f.Sync()
}
