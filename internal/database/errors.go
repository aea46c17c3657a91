package database

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/selvage/selvage/internal/problem"
)

// ErrClosed is returned by queries after the database has been closed.
var ErrClosed = errors.New("the database is closed")

// ErrReadOnly is returned by changes to a database that was opened with Config.ReadOnly.
var ErrReadOnly = errors.New("the database was opened read-only")

// explain converts an error to problem.Unavailable if the database caused it, rather than the
// query. It returns other errors unchanged.
func explain(err error) error {
	if !isOutage(err) {
		return err
	}
	return unavailable(err)
}

func unavailable(err error) error {
	message := "the database is unavailable"
	if isFull(err) {
		message = "the database's disk is full"
	}
	return fmt.Errorf("%w: %w", &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    message,
		RetryAfter: time.Second,
	}, err)
}

// isFull reports whether a full disk caused the error.
func isFull(err error) bool {
	var file *sqlite.Error
	var server *pgconn.PgError
	switch {
	case errors.As(err, &file):
		return file.Code()&0xff == sqlite3.SQLITE_FULL
	case errors.As(err, &server):
		return server.Code == "53100"
	}
	return false
}

// PostgreSQL error codes (appendix A of its manual).
const (
	uniqueViolation      = "23505"
	foreignKeyViolation  = "23503"
	readOnly             = "25006"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
)

// isOutage reports whether the database caused the error, rather than the query.
func isOutage(err error) bool {
	if err == nil { // the common case should not allocate
		return false
	}
	var file *sqlite.Error
	var server *pgconn.PgError
	var lost lostError
	switch {
	case errors.As(err, &file):
		return isFileOutage(file.Code() & 0xff) // without the extended part of the code
	case errors.As(err, &server):
		return isServerOutage(server.Code)
	}
	return errors.Is(err, ErrClosed) || errors.As(err, &lost)
}

func isFileOutage(code int) bool {
	switch code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

func isServerOutage(code string) bool {
	switch code {
	case readOnly, serializationFailure, deadlockDetected, lockNotAvailable,
		"25P03", "25P04", // the transaction was idle too long, or took too long
		"26000",       // a prepared statement is missing, because a proxy shares connections
		queryCanceled: // the statement took too long
		return true
	}

	switch class := code[:min(2, len(code))]; class {
	case "08", // the connection failed
		"28", // authorization was withdrawn
		"53", // no memory, no disk, no connections
		"57", // the server is shutting down or starting
		"58": // a system error, such as a failing disk
		return true
	}
	return false
}

// IsUnique reports whether a unique index refused a row.
func IsUnique(err error) bool {
	return hasCode(err, uniqueViolation, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// IsForeignKey reports whether a foreign key refused a change: a row references a missing row, or a
// row to be deleted is still referenced.
func IsForeignKey(err error) bool {
	return hasCode(err, foreignKeyViolation, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY)
}

// IsCanceled reports whether the server canceled a statement, because it took longer than
// [Config.Patience].
func IsCanceled(err error) bool { return hasCode(err, queryCanceled) }

// hasCode reports whether err has the given SQLSTATE of PostgreSQL, or one of the given codes of
// SQLite.
func hasCode(err error, state string, codes ...int) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code == state
	}
	var file *sqlite.Error
	return errors.As(err, &file) && slices.Contains(codes, file.Code())
}

// Plainly formats an error as one line: the message of an [Unfit] or a problem in it, or else its
// first line.
func Plainly(err error) string {
	var unfit *Unfit
	if errors.As(err, &unfit) {
		return unfit.Error()
	}
	if p := problem.First(err); p != nil {
		return p.Message
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
