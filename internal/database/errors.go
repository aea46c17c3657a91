package database

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/selvage/selvage/internal/problem"
)

// ErrClosed is what a query gets once the database is closed.
var ErrClosed = errors.New("the database is closed")

// ErrReadOnly is what a change gets in a database that was opened for reading.
var ErrReadOnly = errors.New("the database was opened for reading alone")

// explain makes problem.Unavailable of an error that is the database's.
func explain(err error) error {
	if !away(err) {
		return err
	}
	return unavailable(err)
}

func unavailable(err error) error {
	return fmt.Errorf("%w: %w", &problem.Error{
		Kind: problem.Unavailable, Code: "temporarily_unavailable", Message: "the database does not answer",
		RetryAfter: time.Second,
	}, err)
}

// The states of PostgreSQL that are told apart (its manual, appendix A).
const (
	uniqueViolation      = "23505"
	foreignKeyViolation  = "23503"
	readOnly             = "25006"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
)

// away reports whether an error is the database's, not the query's.
func away(err error) bool {
	if err == nil { // mostly, and then nothing is allocated
		return false
	}
	var file *sqlite.Error
	var server *pgconn.PgError
	var lost lostError
	switch {
	case errors.As(err, &file):
		return fileAway(file.Code() & 0xff) // the primary code of an extended one
	case errors.As(err, &server):
		return serverAway(server.Code)
	}
	return errors.Is(err, ErrClosed) || errors.As(err, &lost)
}

func fileAway(code int) bool {
	switch code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

func serverAway(code string) bool {
	switch code {
	case readOnly, serializationFailure, deadlockDetected, lockNotAvailable,
		"25P03", "25P04", // the transaction took too long, or waited for us
		"26000", // a prepared statement is gone: something between us shares connections
		"57014": // the statement took too long
		return true
	}
	switch class := code[:min(2, len(code))]; class {
	case "08", // the connection
		"28", // it does not let us in any more
		"53", // no memory, no disk, no connections
		"57", // it is shut down, or starting
		"58": // its machine
		return true
	}
	return false
}

// IsUnique reports whether err says that a unique index refused a row.
func IsUnique(err error) bool {
	return is(err, uniqueViolation, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// IsForeignKey reports whether err says that a row refers to one that is not
// there, or is referred to.
func IsForeignKey(err error) bool {
	return is(err, foreignKeyViolation, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY)
}

func is(err error, state string, codes ...int) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code == state
	}
	var file *sqlite.Error
	return errors.As(err, &file) && slices.Contains(codes, file.Code())
}
