package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// A Report says what a database looks like from outside.
type Report struct {
	Tables    []string // their names
	Schema    int64    // the version that migrations have noted, 0 for none
	File      string   // the path of an SQLite file
	Size, Log int64    // bytes of an SQLite file, and of its log
	Checked   bool     // the whole file was looked through for damage
	Writer    int      // the process that keeps others from writing to it, 0 for none

	Server *ServerReport // nil of a file
}

// Look reads a database and changes nothing: it makes no file, no schema and no
// log. Of the Config it heeds all but Prepare.
//
// A file that is not there is an fs.ErrNotExist; a database that Open would refuse is
// an [Unfit].
func Look(ctx context.Context, c Config) (Report, error) {
	if IsServer(c.URL) {
		return lookServer(ctx, c)
	}
	name, err := path(c.URL, c.Dir)
	if err != nil {
		return Report{}, err
	}
	leave, err := enter(name, func() error { return c.first(name, false) })
	if err != nil {
		return Report{}, err
	}
	defer leave()
	r, err := look(ctx, name, c)
	if err == nil && c.beside(r) && len(r.Tables) > 0 {
		r.Checked, err = lookThrough(ctx, name, c)
	}
	r.File, r.Writer = name, writerOf(ctx, name)
	return r, diagnose(name, c.Sync, err)
}

// first looks at a file that is not open yet: whether it may be opened, and whether
// its log is whole. A Normal file may lack its last commits after a power cut.
func (c Config) first(name string, write bool) error {
	if err := permitted(name, write); err != nil || c.Sync != Full {
		return err
	}
	return checkLog(name)
}

func look(ctx context.Context, name string, c Config) (r Report, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return r, err
	}
	r.Size = info.Size()
	if log, err := os.Stat(name + "-wal"); err == nil {
		r.Log = log.Size()
	}
	if r.Size == 0 && r.Log == 0 {
		return r, nil // as a start leaves it that was killed at once
	}
	db, err := sql.Open("sqlite", address(name, "_pragma=busy_timeout(2000)&"+unchanging(name)))
	if err != nil {
		return r, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if err := r.readTables(ctx, db, fileTables); err != nil {
		return r, err
	}
	if len(r.Tables) > 0 && !c.Ours(r.Tables) {
		return r, foreign(r.Tables)
	}
	if err := r.readSchema(ctx, db); err != nil || c.beside(r) {
		return r, err
	}
	r.Checked, err = check(ctx, db, name, c)
	return r, err
}

// beside reports whether a file is looked through while it is used: one of so many bytes that
// a start would be felt to do so, whose schema stays. A damaged one would else be changed, and
// its last copy from before such a change make room for one of the damage.
func (c Config) beside(r Report) bool {
	const large = 16 << 20
	return r.Size > cmp.Or(c.large, large) && r.Schema == c.Schema
}

// lookThrough is check by a connection of its own.
func lookThrough(ctx context.Context, name string, c Config) (whole bool, err error) {
	db, err := sql.Open("sqlite", address(name, "_pragma=busy_timeout(2000)&"+unchanging(name)))
	if err != nil {
		return false, err
	}
	defer db.Close()
	return check(ctx, db, name, c)
}

// unchanging returns the parameters that keep SQLite from making files: whoever only
// reads would make a log and its index where there are none. With an index there is
// somebody who may write, and whose locks count.
func unchanging(name string) string {
	if _, err := os.Stat(name + "-shm"); errors.Is(err, fs.ErrNotExist) {
		if log, err := os.Stat(name + "-wal"); err != nil || log.Size() == 0 {
			return "immutable=1"
		}
	}
	return "mode=ro"
}

// The queries that list tables: of SQLite, and of PostgreSQL, but for those of extensions.
const (
	fileTables   = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	serverTables = `SELECT c.relname FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema()))
		AND c.relkind IN ('r', 'p') AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
		ORDER BY c.relname`
)

// readTables reads which tables there are, by the query of the database.
func (r *Report) readTables(ctx context.Context, db *sql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		r.Tables = append(r.Tables, name)
	}
	return rows.Err()
}

func (r *Report) readSchema(ctx context.Context, db *sql.DB) error {
	name := Versions
	if HasEarlier(r.Tables) {
		name = EarlierVersions
	}
	if !slices.Contains(r.Tables, name) {
		return nil
	}
	return db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+
		name+` WHERE is_applied`).Scan(&r.Schema)
}

// check looks for pages that are not what they should be, as far as it comes in the
// time it has.
func check(ctx context.Context, db *sql.DB, name string, c Config) (whole bool, err error) {
	if c.Check <= 0 {
		return false, nil
	}
	timed, cancel := context.WithTimeout(ctx, c.Check)
	defer cancel()
	var found string
	err = db.QueryRowContext(timed, `PRAGMA quick_check(1)`).Scan(&found)
	switch {
	case err != nil && timed.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, err
	case found != "ok":
		return true, damaged(name, c.Sync, strings.ReplaceAll(found, "\n", ": "))
	}
	return true, nil
}
