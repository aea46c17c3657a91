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

// A Report describes a database.
type Report struct {
	Tables    []string // the names of all tables
	Schema    int64    // the version of the applied migrations; 0 if none were applied
	File      string   // the path of an SQLite file
	Size, Log int64    // the sizes of an SQLite file and its log, in bytes
	Checked   bool     // whether the whole file was checked for damage
	Writer    int      // the id of the process that holds the write lock, or 0

	Server *ServerReport // nil for SQLite
}

// Look describes a database without changing anything: it creates no file, schema or log. It does
// not use Prepare.
//
// If the file is missing, the error is fs.ErrNotExist. If Open would refuse the database, the error
// is an [Unfit].
func Look(ctx context.Context, c Config) (Report, error) {
	if IsServer(c.URL) {
		return lookServer(ctx, c)
	}
	name, err := filePath(c.URL, c.Dir)
	if err != nil {
		return Report{}, err
	}

	leave, err := register(name, func() error { return c.checkUnopened(name, false) })
	if err != nil {
		return Report{}, err
	}
	defer leave()

	r, err := readReport(ctx, name, c)
	if err == nil && c.inBackground(r) && len(r.Tables) > 0 {
		r.Checked, err = checkFile(ctx, name, c)
	}
	// The name and the writer are reported even if the file could not be read.
	r.File = name
	r.Writer = writerOf(ctx, name)
	return r, diagnose(name, c.Sync, err)
}

// checkUnopened checks whether a file may be opened, and whether its log is complete. This process
// must not have the file open. The log of a Normal file is not checked, since the last commits may
// be missing after a power cut.
func (c Config) checkUnopened(name string, write bool) error {
	if err := checkAccess(name, write); err != nil {
		return err
	}
	if c.Sync != Full {
		return nil
	}
	return checkLog(name)
}

// maxReads is how many times readReport tries to read a file that another process writes to at the
// same time.
const maxReads = 10

// readReport reads and checks a file. If there is neither a FILE-shm nor a log, it reads without
// locks: if another process begins to write at the same time, an intact file may appear damaged. In
// that case, readReport tries again. The Report of a failed attempt contains what was read before
// the error.
func readReport(ctx context.Context, name string, c Config) (r Report, err error) {
	for range maxReads {
		access := readOnlyAccess(name)
		before, _ := os.Stat(name) // if Stat fails, readReportOnce fails, too
		r, err = readReportOnce(ctx, name, c, access)
		if err == nil || access != immutable || !hasChanged(name, before) {
			break
		}
	}
	return r, err
}

// hasChanged reports whether a file that was read without locks has been written to since. It also
// reports true if the file can no longer be read without locks.
func hasChanged(name string, before fs.FileInfo) bool {
	if readOnlyAccess(name) != immutable {
		return true
	}
	now, err := os.Stat(name)
	if err != nil || before == nil {
		return false
	}
	return !now.ModTime().Equal(before.ModTime()) || now.Size() != before.Size()
}

// readReportOnce reads and checks a file with the given URI parameters from readOnlyAccess.
func readReportOnce(ctx context.Context, name string, c Config, access string) (r Report, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return r, err
	}
	r.Size = info.Size()
	if log, err := os.Stat(name + "-wal"); err == nil {
		r.Log = log.Size()
	}
	if r.Size == 0 && r.Log == 0 {
		return r, nil // a process was killed right after creating this file
	}

	db, err := sql.Open("sqlite", fileURI(name, "_pragma=busy_timeout(2000)&"+access))
	if err != nil {
		return r, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)

	// First check which program the tables belong to. Files of other programs are not read or
	// checked further.
	if err := r.readTables(ctx, db, fileTables); err != nil {
		return r, err
	}
	if len(r.Tables) > 0 && !c.Ours(r.Tables) {
		return r, foreign(r.Tables, "use another file, or an empty one")
	}

	if err := r.readSchema(ctx, db); err != nil {
		return r, err
	}
	if c.inBackground(r) {
		return r, nil
	}
	r.Checked, err = check(ctx, db, name, c)
	return r, err
}

// inBackground reports whether a file is checked while it is in use. This is the case for a file
// whose check would delay the start noticeably, unless a migration is due. A migration must not
// start before the check: it would migrate damaged data, and replace an intact backup with a
// damaged copy.
func (c Config) inBackground(r Report) bool {
	const large = 16 << 20
	return r.Size > cmp.Or(c.large, large) && r.Schema == c.Schema
}

// checkFile is like check, but opens its own connection.
func checkFile(ctx context.Context, name string, c Config) (whole bool, err error) {
	db, err := sql.Open("sqlite", fileURI(name, "_pragma=busy_timeout(2000)&"+readOnlyAccess(name)))
	if err != nil {
		return false, err
	}
	defer db.Close()
	return check(ctx, db, name, c)
}

// readOnlyAccess returns the URI parameters that keep SQLite from creating files, since even a
// reader would create a log and FILE-shm. If FILE-shm or a log exists, another process may be
// writing, so SQLite must use locks.
func readOnlyAccess(name string) string {
	_, err := os.Stat(name + "-shm")
	if !errors.Is(err, fs.ErrNotExist) {
		return "mode=ro"
	}
	log, err := os.Stat(name + "-wal")
	if err == nil && log.Size() > 0 {
		return "mode=ro"
	}
	return immutable
}

// immutable makes SQLite read a file without locks (https://sqlite.org/uri.html).
const immutable = "immutable=1"

// Queries for the names of all tables. On PostgreSQL, tables that belong to extensions are omitted.
const (
	fileTables   = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	serverTables = `SELECT c.relname FROM pg_class c
		WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p')
		AND NOT EXISTS (SELECT 1 FROM pg_depend d
			WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
		ORDER BY c.relname`
)

// readTables reads the names of all tables with the given query.
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
	if !slices.Contains(r.Tables, Versions) {
		return nil
	}
	return db.QueryRowContext(ctx,
		`SELECT coalesce(max(version_id), 0) FROM `+Versions+` WHERE is_applied`).Scan(&r.Schema)
}

// check looks for damaged pages, for at most c.Check. whole reports whether it checked the whole
// file.
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
