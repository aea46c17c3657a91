// Package sqlite opens SQLite files the way selvage uses them: one writer whose
// changes share commits, and many readers.
//
// A query's context is looked at before it runs, not while: the queries here take
// microseconds, and a context that can end costs two goroutines each.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/selvage/selvage/internal/problem"
)

// Sync is how far a commit is on its way to the disk when it returns.
type Sync string

// The two ways. After a crash of the process nothing is lost in either; after a
// power cut a Normal file may lack its last commits.
const (
	Full   Sync = "FULL"
	Normal Sync = "NORMAL"
)

// Path gives the file that a URL of the form sqlite:FILE names; a relative FILE
// lies in dir.
func Path(raw, dir string) (string, error) {
	file, ok := strings.CutPrefix(raw, "sqlite:")
	if !ok || file == "" {
		return "", errors.New("the URL is not sqlite:FILE")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return file, nil
}

// A DB is an open file.
type DB struct {
	writer *writer
	reads  *sql.DB
	stmts  sync.Map // query to *sql.Stmt
}

// Config says how to open a file.
type Config struct {
	File string
	Sync Sync
	// Single promises that each change is one statement. It then needs no
	// savepoint among others, and no transaction when alone.
	Single bool
	// Prepare is run on the writing connection before anything else: it makes or
	// updates the schema.
	Prepare func(context.Context, *sql.DB) error
}

// Open opens a file and starts its writer.
func Open(ctx context.Context, c Config) (*DB, error) {
	d := &DB{}
	if err := d.open(ctx, c); err != nil {
		return nil, fmt.Errorf("opening %s: %w", c.File, errors.Join(err, d.Close()))
	}
	return d, nil
}

func (d *DB) open(ctx context.Context, c Config) error {
	db, err := connect(c, "")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := alone(ctx, c.File, func() error { return c.Prepare(ctx, db) }); err != nil {
		return errors.Join(err, db.Close())
	}
	if d.writer, err = newWriter(ctx, db, c.Single); err != nil {
		return err
	}
	if d.reads, err = connect(c, "&_pragma=query_only(1)"); err != nil {
		return err
	}
	d.reads.SetMaxOpenConns(8)
	d.reads.SetMaxIdleConns(8)
	return d.reads.PingContext(ctx)
}

// alone runs do while no other process does for the same file: two that start
// together must not both make its schema.
func alone(ctx context.Context, file string, do func() error) error {
	lock, err := os.OpenFile(file+"-schema-lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("locking schema: %w", err)
	}
	defer lock.Close() // which ends the lock
	for deadline := time.Now().Add(patience); ; {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return fmt.Errorf("locking schema: another selvage has been changing it for %s: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// patience is how long a start waits for another that makes the schema.
const patience = 30 * time.Second

func connect(c Config, extra string) (*sql.DB, error) {
	pragmas := "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(" + string(c.Sync) +
		")&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)&_pragma=wal_autocheckpoint(4000)"
	return sql.Open("sqlite", "file:"+(&url.URL{Path: c.File}).EscapedPath()+"?"+pragmas+extra)
}

// Ping reports whether the file can be read.
func (d *DB) Ping(ctx context.Context) error { return d.reads.PingContext(ctx) }

// Close commits what is waiting and closes the file.
func (d *DB) Close() (err error) {
	if d.writer != nil {
		err = d.writer.close()
	}
	if d.reads != nil {
		err = errors.Join(err, d.reads.Close())
	}
	return err
}

// Read gives a Tx for queries that change nothing.
func (d *DB) Read() Tx { return Tx{d.onReader, explain} }

// Change runs do in a transaction and returns once it is committed. An error of
// do undoes what do did. Changes that wait at the same time share one commit;
// each still succeeds or fails by itself. A change that waits is given up when
// ctx ends; one that runs is not.
// Where the file is locked, the disk full or failing, it is problem.Unavailable.
func (d *DB) Change(ctx context.Context, do func(Tx) error) error {
	return explain(d.writer.do(ctx, do))
}

// explain makes problem.Unavailable of an error that is the file's.
func explain(err error) error {
	if !away(err) {
		return err
	}
	return fmt.Errorf("%w: %w", &problem.Error{
		Kind: problem.Unavailable, Code: "temporarily_unavailable", Message: "the database does not answer", RetryAfter: time.Second,
	}, err)
}

// away reports whether an error is the file's, not the change's.
func away(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return errors.Is(err, ErrClosed)
	}
	switch e.Code() & 0xff { // the primary code of an extended one
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

func (d *DB) onReader(query string) (*sql.Stmt, error) {
	if st, ok := d.stmts.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := d.reads.Prepare(query)
	if err != nil {
		return nil, explain(fmt.Errorf("preparing query: %w", err))
	}
	if kept, loaded := d.stmts.LoadOrStore(query, st); loaded {
		_ = st.Close()
		return kept.(*sql.Stmt), nil
	}
	return st, nil
}

// A Tx runs queries: in a change, or on a reading connection. Each is prepared
// once.
type Tx struct {
	prepare func(query string) (*sql.Stmt, error)
	explain func(error) error // of reading; nil in a change, which is explained as a whole
}

// Query runs a query that gives rows.
func (t Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := t.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := st.Query(args...)
	if t.explain != nil {
		err = t.explain(err)
	}
	return rows, err
}

// Row runs a query that gives one row. Scan gives sql.ErrNoRows if there is none.
func (t Tx) Row(ctx context.Context, query string, args ...any) Scanner {
	st, err := t.ready(ctx, query)
	if err != nil {
		return failed{err}
	}
	if t.explain != nil {
		return explained{st.QueryRow(args...), t.explain}
	}
	return st.QueryRow(args...)
}

// Exec runs a query that gives no rows.
func (t Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := t.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.Exec(args...)
}

func (t Tx) ready(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.prepare(query)
}

// A Scanner is a row: *sql.Row or *sql.Rows.
type Scanner interface{ Scan(dest ...any) error }

// explained is a row whose error is explained.
type explained struct {
	row     *sql.Row
	explain func(error) error
}

func (e explained) Scan(dest ...any) error { return e.explain(e.row.Scan(dest...)) }

// failed is the row of a query that could not be run.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

// IsUnique reports whether err says that a unique index refused a row.
func IsUnique(err error) bool {
	return is(err, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// IsForeignKey reports whether err says that a row refers to one that is not
// there, or is referred to.
func IsForeignKey(err error) bool { return is(err, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY) }

func is(err error, codes ...int) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code() == code {
			return true
		}
	}
	return false
}
