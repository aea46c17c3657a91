// Package database opens the databases that rows are kept in, and hides which of
// them it is: queries are written once, in the SQL they share.
//
// A query's context is looked at before it runs, not while: the queries here take
// microseconds, and a context that can end costs two goroutines each. A change is
// never given up in the middle because its caller left.
//
// On PostgreSQL changes are READ COMMITTED: of two that meet in a row, the second
// waits for the first and then sees what it did. One that reads what another may be
// changing locks that row first, by an UPDATE that changes nothing.
//
// Text is UTF-8 without NULs; anything else is problem.Malformed. It is compared by
// bytes.
//
// A database that cannot be reached, is full, locked or failing is
// problem.Unavailable. So is everything, reading too, once a page of a file was met
// that is not what it should be: what else is wrong is not known.
package database

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Sync is how far a commit is on its way to the disk when it returns.
type Sync string

// The two ways. After a crash of the process nothing is lost in either; after a
// power cut a Normal database may lack its last commits.
const (
	Full   Sync = "FULL"
	Normal Sync = "NORMAL"
)

// Config says how to open a database.
type Config struct {
	URL  string // sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/NAME
	Dir  string // where a relative FILE lies
	Pool int    // connections to PostgreSQL, at most; 0 means 16
	Sync Sync
	// Patience is how long a query may take on a server, how long one waits for a connection,
	// and how long one may take to be made; 0 means 5 s. Locks are waited for less long.
	Patience time.Duration
	// Ours tells by the names of all tables whether a database that has some is ours.
	// Another program's is refused.
	Ours func(tables []string) bool
	// Check is how long an SQLite file is looked through for damage: before it is used,
	// or beside that where it is large, and Prepare has nothing to change.
	Check time.Duration
	// Schema is the one that Prepare makes.
	Schema int64
	large  int64 // bytes from which on a file is large; 0 means 16 MiB
	// ReadOnly opens the database as it is: nothing is made, prepared or changed.
	ReadOnly bool
	// Prepare makes or updates the schema. It runs before anything else, and while
	// that of no other process does for the same database.
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

// A DB is an open database. Its methods may be called at once from any number of
// goroutines.
type DB interface {
	// Ping reports whether the database answers.
	Ping(ctx context.Context) error

	// Read returns a Tx for queries that change nothing, each by itself.
	Read() Tx

	// Watch is Read for the few small queries that must be answered however busy the
	// database is: they wait for none of the others.
	Watch() Tx

	// Change runs do in a transaction and returns once it is committed. An error of
	// do undoes what do did, and is given. do may be run more than once: what it
	// leaves behind in Go it must set, not append.
	Change(ctx context.Context, do func(Tx) error) error

	// Once is Change for a do that changes rows by one statement at most, and then
	// needs no transaction: an error of do undoes nothing.
	Once(ctx context.Context, do func(Tx) error) error

	// Clock returns the time that the database's machine has.
	Clock(ctx context.Context) (time.Time, error)

	// Stats tells how busy the database is.
	Stats() Stats

	// Close finishes the changes that wait and closes the database.
	Close() error
}

// A Tx runs queries: in a change, or for reading. Each is prepared once.
type Tx interface {
	// Query runs a query that gives rows, which are to be closed.
	Query(ctx context.Context, query string, args ...any) (Rows, error)

	// Row runs a query that gives one row. Scan gives sql.ErrNoRows if there is none.
	Row(ctx context.Context, query string, args ...any) Scanner

	// Exec runs a query that gives no rows.
	Exec(ctx context.Context, query string, args ...any) (sql.Result, error)

	// Later runs a query whose result nobody looks at: before the next one, or before
	// the commit. Where it fails, so does that.
	Later(ctx context.Context, query string, args ...any) error

	// Recall returns what the change before this one has left with Remember, in this
	// process: nil where there is none, or it was undone. Another process may have
	// written since.
	Recall() any

	// Remember leaves v for the changes after this one, and has last run right before
	// the commit: of all changes that share it only the last one's. Where last fails,
	// they are undone, what is remembered is forgotten, and they are run once more: so
	// it is last that finds out whether what was recalled is still true. Only SQLite
	// remembers; on PostgreSQL last is run at once.
	Remember(v any, last func(Tx) error) error
}

// A Scanner is a row: one, or the present one of Rows.
type Scanner interface{ Scan(dest ...any) error }

// Rows are what a query found, read as *sql.Rows are.
type Rows interface {
	Scanner
	Next() bool
	Err() error
	Close() error
}

// Stats counts since the database was opened, but for Open and InUse, which are
// as of now.
type Stats struct {
	Open, InUse int           // connections
	Waits       int64         // queries that had to wait for a connection
	Waited      time.Duration // how long, together
	Changes     int64         // changes that were committed
	Commits     int64         // commits that it took
	Retries     int64         // changes that were run again
}
