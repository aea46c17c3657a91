package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// beforeMark stands between the name of an SQLite file and the schema that a copy of it
// has.
const beforeMark = ".schema-"

// Before gives the copy that was made of an SQLite file when its schema was changed last,
// or "".
func Before(file string) string {
	all := copies(file)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// copies lists the copies of a file.
func copies(file string) (all []string) {
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if version, ok := strings.CutPrefix(e.Name(), filepath.Base(file)+beforeMark); ok {
			if _, err := strconv.ParseInt(version, 10, 64); err == nil {
				all = append(all, filepath.Join(filepath.Dir(file), e.Name()))
			}
		}
	}
	return all
}

// keepBefore copies an SQLite database beside itself as it is before its schema is
// changed, so that there is a way back. What is there stays, as it was made by a change
// that was cut off: it is older than what there is now. A server has copies of its own.
func keepBefore(ctx context.Context, db *sql.DB, dialect database.Dialect, version int64) error {
	if dialect != database.SQLite || version == 0 {
		return nil
	}
	var file string
	if err := db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return fmt.Errorf("asking for the file of the database: %w", err)
	}
	copied := file + beforeMark + strconv.FormatInt(version, 10)
	if _, err := os.Stat(copied); err == nil {
		return nil
	}
	old := copies(file)
	if err := copyTo(ctx, db, copied); err != nil {
		return &database.Unfit{
			Found:  fmt.Sprintf("no copy of it could be made before its schema is changed: %v", err),
			Remedy: "make room in " + filepath.Dir(file) + " for as much again; the database is as it was",
		}
	}
	var errs []error
	for _, file := range old {
		errs = append(errs, os.Remove(file))
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
