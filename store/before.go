package store

import (
	"cmp"
	"context"
	"database/sql"
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

	"github.com/selvage/selvage/internal/database"
)

// beforeMark stands between the name of an SQLite file and the schema that a copy of it
// has.
const beforeMark = ".schema-"

// Before returns the copy that was made of an SQLite file when its schema was changed last,
// or "".
func Before(file string) string {
	versions := copies(file)
	if len(versions) == 0 {
		return ""
	}
	return copyOf(file, versions[len(versions)-1])
}

// copyOf names the copy of a file with a schema.
func copyOf(file string, version int64) string {
	return file + beforeMark + strconv.FormatInt(version, 10)
}

// copies lists the schemas of which there are copies of a file, the one that was made first
// first: where somebody has gone back to an older schema, its next copy is the newest.
func copies(file string) (versions []int64) {
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil
	}
	made := make(map[int64]time.Time)
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), filepath.Base(file)+beforeMark)
		if !ok {
			continue
		}
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		if info, err := e.Info(); err == nil { // else it has just gone
			made[version] = info.ModTime()
		}
	}
	return slices.SortedFunc(maps.Keys(made), func(a, b int64) int {
		return cmp.Or(made[a].Compare(made[b]), cmp.Compare(a, b))
	})
}

// keptCopies is how many copies are kept: a change that was cut off is gone on with by the
// next start, which makes a copy of what is between, and that must not be the only one.
const keptCopies = 2

// keepBefore copies an SQLite database beside itself as it is before its schema is
// changed, so that there is a way back. What is there of the same schema is older than
// what there is now. A server has copies of its own.
func keepBefore(ctx context.Context, db *sql.DB, dialect database.Dialect, version int64) error {
	if dialect != database.SQLite || version == 0 {
		return nil
	}
	var file string
	if err := db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return fmt.Errorf("asking for the file of the database: %w", err)
	}
	if err := copyTo(ctx, db, copyOf(file, version)); err != nil {
		return &database.Unfit{
			Found:  fmt.Sprintf("no copy of it could be made before its schema is changed: %v", err),
			Remedy: "make room in " + filepath.Dir(file) + " for as much again; the database is as it was",
		}
	}
	var errs []error
	versions := copies(file)
	for _, version := range versions[:max(0, len(versions)-keptCopies)] {
		errs = append(errs, os.Remove(copyOf(file, version)))
	}
	return errors.Join(errs...)
}

// copyTo writes what is in the database into a file of mode 0600, which is there once it
// is whole.
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
		err = os.Rename(part, file)
	}()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return err
	}
	return f.Sync()
}
