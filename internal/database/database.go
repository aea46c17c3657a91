// Package database opens SQLite and PostgreSQL databases behind one interface. Queries are written
// once, in the SQL that both share.
//
// Outside a [Snapshot], a query's context is checked before the query runs, not while it runs. The
// queries here take microseconds, and watching a context would cost two goroutines per query. A
// change never stops in the middle because its caller has gone away.
//
// On PostgreSQL, changes are READ COMMITTED: of two changes to the same row, the second waits for
// the first and then sees its result. If a change reads a row that another change may write, it
// first locks the row, by an UPDATE that changes nothing.
//
// Text arguments must be UTF-8 without NULs. For other text, a query returns problem.Malformed.
// Text is compared byte by byte.
//
// If a database cannot be reached, or is full, locked or failing, a query returns
// problem.Unavailable. Once a damaged page of a file is found, all queries return this error,
// because other pages may be damaged, too.
package database

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Sync determines which commits survive a power failure.
type Sync string

// If only the process crashes, no commit is lost with either value.
const (
	Full   Sync = "FULL"   // all commits survive a power failure
	Normal Sync = "NORMAL" // the last commits may be lost in a power failure
)

// Config describes the database to open.
type Config struct {
	URL  string // sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/NAME
	Dir  string // the directory that contains FILE, if its path is relative
	Pool int    // maximum number of connections to PostgreSQL; 0 means 16
	Sync Sync
	// Patience is the maximum time for a query on a server, for waiting for a connection, and for
	// connecting; 0 means 5 s. The wait for a lock is shorter.
	Patience time.Duration
	// Ours reports whether a database belongs to selvage, judging by the names of all its tables.
	// Open refuses databases that belong to other programs.
	Ours func(tables []string) bool
	// Check is the maximum time for checking an SQLite file for damage. The file is checked before
	// it is used. A large file that Prepare does not change is checked while it is in use instead.
	Check time.Duration
	// Schema is the version of the schema that Prepare creates.
	Schema int64
	large  int64 // size in bytes above which a file is large; 0 means 16 MiB
	// ReadOnly opens the database as it is, without creating, preparing or changing anything.
	ReadOnly bool
	// Prepare creates or updates the schema. It runs before the database is used, and in only one
	// process at a time.
	Prepare func(context.Context, *sql.DB, Dialect) error
}

// Open opens the database at c.URL.
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
	// Ping returns an error unless the database answers.
	Ping(ctx context.Context) error

	// Read returns a Tx for read-only queries. Each query stands alone, outside any transaction.
	Read() Tx

	// Watch is like Read, for the few small queries that must be answered even if the database is
	// busy. On PostgreSQL, they have their own connection. On SQLite, Watch is the same as
	// Read.
	Watch() Tx

	// Change runs do in a transaction and returns once it is committed. If do returns an error,
	// Change undoes everything do did, and returns the error. The function do may run more than
	// once, so it must set the caller's variables, not append to them.
	Change(ctx context.Context, do func(Tx) error) error

	// Once is like Change, for a function with at most one statement that changes rows. It uses no
	// transaction, so an error from do undoes nothing.
	Once(ctx context.Context, do func(Tx) error) error

	// Snapshot calls do with a read-only transaction, which sees the database as it is now.
	Snapshot(ctx context.Context, do func(*Snapshot) error) error

	// Clock returns the current time on the database's machine.
	Clock(ctx context.Context) (time.Time, error)

	// Stats returns statistics about the load of the database.
	Stats() Stats

	// Close commits the waiting changes and closes the database.
	Close() error
}

// A Tx runs queries, either within a change or read-only. Each distinct query is prepared once.
type Tx interface {
	// Query runs a query that returns rows. The caller must close them.
	Query(ctx context.Context, query string, args ...any) (Rows, error)

	// Row runs a query that returns at most one row. If there is no row, Scan returns
	// sql.ErrNoRows.
	Row(ctx context.Context, query string, args ...any) Scanner

	// Shared runs a SELECT, as Row does, and locks its row until the end of the transaction.
	// Changes to the row must wait, but other transactions may lock it in the same way. A
	// transaction that also changes the row must use Locked instead, since two transactions with
	// shared locks would wait for each other.
	Shared(ctx context.Context, query string, args ...any) Scanner

	// Locked runs a SELECT, as Row does, and locks its row until the end of the transaction. Other
	// transactions that lock or change the row must wait.
	Locked(ctx context.Context, query string, args ...any) Scanner

	// Exec runs a query that returns no rows.
	Exec(ctx context.Context, query string, args ...any) (sql.Result, error)

	// Later runs a query whose result is not needed. The query may be delayed until the next query
	// or the commit. If it then fails, the commit fails.
	Later(ctx context.Context, query string, args ...any) error

	// Recall returns the value that an earlier change in this process passed to Remember. It
	// returns nil if there is no value, or if the change was undone. Another process may have
	// written to the database since.
	Recall() any

	// Remember keeps v for later changes, and calls last immediately before the commit. last should
	// verify that a recalled value is still valid. If several changes share a commit, only the last
	// function that was passed to Remember is called. If it fails, the changes are undone and v is
	// forgotten. The changes then run once more if one of them relied on a recalled value.
	//
	// Only SQLite remembers values. On PostgreSQL, last runs immediately.
	Remember(v any, last func(Tx) error) error
}

// A Scanner is a single row, or the current row of Rows.
type Scanner interface{ Scan(dest ...any) error }

// Rows are the result of a query, used like *sql.Rows.
type Rows interface {
	Scanner
	Next() bool
	Err() error
	Close() error
}

// Stats holds statistics. Open and InUse are current numbers; all others count from when the database was
// opened.
type Stats struct {
	Open, InUse int           // connections now: all, and those in use
	Waits       int64         // queries that waited for a connection
	Waited      time.Duration // total time of those waits
	Changes     int64         // changes that were committed
	Commits     int64         // commits of those changes; several changes may share a commit
	Retries     int64         // changes that ran again
}

// A database with one of these tables belongs to selvage.
const (
	Versions = "selvage_versions" // records the applied migrations
	Sessions = "selvage_sessions" // holds sessions
)

// IsOurs reports whether a database belongs to selvage, judging by the names of all its tables.
func IsOurs(tables []string) bool {
	return slices.Contains(tables, Versions) || slices.Contains(tables, Sessions)
}
