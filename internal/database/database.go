// Package database opens SQLite and PostgreSQL databases behind one interface. Queries are written
// once, in the SQL that both share.
//
// A query's context is checked before the query runs, not during it: the queries here take
// microseconds, and a context that can end costs two goroutines each. A change never stops in the
// middle because its caller has left.
//
// On PostgreSQL, changes are READ COMMITTED: of two changes of the same row, the second waits for the
// first and then sees its result. A change that reads a row which another may be writing locks the row
// first, by an UPDATE that changes nothing.
//
// Text is UTF-8 without NULs; anything else is problem.Malformed. It is compared by bytes.
//
// If a database cannot be reached, or is full, locked or failing, a query returns problem.Unavailable.
// Once a damaged page of a file was found, all queries do, because other pages may be damaged, too.
package database

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Sync is how durable a commit is when it returns.
type Sync string

// After a crash of the process nothing is lost with either. After a power cut, a Normal database may
// lack its last commits.
const (
	Full   Sync = "FULL"
	Normal Sync = "NORMAL"
)

// Config describes the database to open.
type Config struct {
	URL  string // sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/NAME
	Dir  string // the directory of a relative FILE
	Pool int    // maximum number of connections to PostgreSQL; 0 means 16
	Sync Sync
	// Patience is the maximum time of a query on a server, of the wait for a connection, and of
	// connecting; 0 means 5 s. The wait for a lock is shorter.
	Patience time.Duration
	// Ours reports whether a database is selvage's, by the names of all its tables. Open refuses a
	// database of another program.
	Ours func(tables []string) bool
	// Check is the maximum time to check an SQLite file for damage. The file is checked before it is
	// used; a large file that Prepare does not change is checked while it is used.
	Check time.Duration
	// Schema is the version that Prepare makes.
	Schema int64
	large  int64 // size in bytes above which a file is large; 0 means 16 MiB
	// ReadOnly opens the database as it is, without creating, preparing or changing anything.
	ReadOnly bool
	// Prepare creates or updates the schema. It runs before anything else, and in one process at a
	// time for the same database.
	Prepare func(context.Context, *sql.DB, Dialect) error
}

// Open opens the database that a URL names.
func Open(ctx context.Context, c Config) (DB, error) {
	var d DB
	var err error
	if IsServer(c.URL) {
		d, err = openServer(ctx, c)
	} else {
		d, err = openFile(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("opening database: %w", err)
	}
	return d, nil
}

// A DB is an open database. Its methods are safe for concurrent use.
type DB interface {
	// Ping reports whether the database answers.
	Ping(ctx context.Context) error

	// Read returns a Tx for queries that change nothing, each by itself.
	Read() Tx

	// Watch is like Read, for the few small queries that must be answered however busy the database
	// is: they never wait for the others.
	Watch() Tx

	// Change runs do in a transaction and returns once it is committed. If do returns an error,
	// everything it did is undone, and Change returns the error. do may run more than once: it must
	// set variables of its caller, not append to them.
	Change(ctx context.Context, do func(Tx) error) error

	// Once is like Change, for a do with at most one statement that changes rows. That needs no
	// transaction: an error of do undoes nothing.
	Once(ctx context.Context, do func(Tx) error) error

	// Clock returns the current time on the database's machine.
	Clock(ctx context.Context) (time.Time, error)

	// Stats returns how busy the database is.
	Stats() Stats

	// Close commits the waiting changes and closes the database.
	Close() error
}

// A Tx runs queries, either within a change or read-only. Each query is prepared once.
type Tx interface {
	// Query runs a query that returns rows. The caller must close them.
	Query(ctx context.Context, query string, args ...any) (Rows, error)

	// Row runs a query that returns at most one row. If there is no row, Scan returns sql.ErrNoRows.
	Row(ctx context.Context, query string, args ...any) Scanner

	// Exec runs a query that returns no rows.
	Exec(ctx context.Context, query string, args ...any) (sql.Result, error)

	// Later runs a query whose result is not needed, before the next query or the commit. If it fails,
	// so does that one.
	Later(ctx context.Context, query string, args ...any) error

	// Recall returns what the change before this one passed to Remember, in this process; nil if
	// there is no such change, or it was undone. Another process may have written since.
	Recall() any

	// Remember keeps v for the changes after this one, and runs last right before the commit. Of all
	// changes that share a commit, only the last one's last runs. If it fails, the changes are undone,
	// v is forgotten, and the changes run once more. So last is what verifies that a recalled value
	// still holds. Only SQLite remembers; on PostgreSQL, last runs at once.
	Remember(v any, last func(Tx) error) error
}

// A Scanner is one row, or the current one of Rows.
type Scanner interface{ Scan(dest ...any) error }

// Rows are the result of a query, used like *sql.Rows.
type Rows interface {
	Scanner
	Next() bool
	Err() error
	Close() error
}

// Stats counts since the database was opened. Open and InUse are current numbers.
type Stats struct {
	Open, InUse int           // connections
	Waits       int64         // queries that waited for a connection
	Waited      time.Duration // total time of those waits
	Changes     int64         // changes that were committed
	Commits     int64         // commits of those changes; one commit may have several
	Retries     int64         // changes that ran again
}

// The tables by which a database is recognized as selvage's: one records the applied migrations, the
// other holds sessions.
const (
	Versions = "selvage_versions"
	Sessions = "selvage_sessions"
)

// IsOurs reports whether a database is selvage's, by the names of all its tables.
func IsOurs(tables []string) bool {
	return slices.Contains(tables, Versions) || slices.Contains(tables, Sessions)
}
