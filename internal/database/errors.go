package database

import (
	"errors"
	"fmt"
	"time"

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
		Kind: problem.Unavailable, Code: "temporarily_unavailable", Message: "the database does not answer", RetryAfter: time.Second,
	}, err)
}

// away reports whether an error is the database's, not the query's.
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
