package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxBatch bounds how many changes share a commit, and so how long one waits.
const maxBatch = 128

// A change is one caller's transaction, waiting for its commit.
type change struct {
	ctx  context.Context
	do   func(tx) error
	done chan error
}

// errClosed is what a change gets when the store closes before it is its turn.
var errClosed = errors.New("the store is closed")

// change runs do in a transaction and returns once it is committed and synced to
// disk. An error of do undoes what do did. Changes that wait at the same time
// share one commit (and one fsync); each still succeeds or fails by itself. do
// may run twice and must have no effect but through its tx.
func (s *Store) change(ctx context.Context, do func(tx) error) error {
	c := &change{ctx: ctx, do: do, done: make(chan error, 1)}
	select {
	case s.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return errClosed
	}
	return <-c.done // the writer answers every change it takes
}

// write is the one writer: it gathers what waits and commits it together.
func (s *Store) write() {
	defer close(s.done)
	for {
		select {
		case c := <-s.queue:
			s.commit(s.gather(c))
		case <-s.closed:
			for {
				select {
				case c := <-s.queue:
					s.commit(s.gather(c))
				default:
					return
				}
			}
		}
	}
}

// gather yields once, so that callers who are about to ask are in the batch too.
func (s *Store) gather(first *change) []*change {
	runtime.Gosched()
	batch := []*change{first}
	for len(batch) < maxBatch {
		select {
		case c := <-s.queue:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch in one transaction, each change in a savepoint of its own,
// and answers each change.
func (s *Store) commit(batch []*change) {
	errs, err := s.try(batch)
	for i, c := range batch {
		if err != nil {
			c.done <- err
		} else {
			c.done <- errs[i]
		}
	}
}

func (s *Store) try(batch []*change) (errs []error, err error) {
	ctx := context.Background()
	t := tx{s.onWriter}
	if _, err := t.Exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return nil, fmt.Errorf("beginning transaction: %w", err)
	}
	defer func() {
		if err != nil {
			_, _ = t.Exec(ctx, `ROLLBACK`) // fails where SQLite has rolled back itself
		}
	}()
	errs = make([]error, len(batch))
	for i, c := range batch {
		if errs[i], err = t.nested(c); err != nil {
			return nil, err
		}
	}
	if _, err := t.Exec(ctx, `COMMIT`); err != nil {
		return nil, fmt.Errorf("committing: %w", err)
	}
	return errs, nil
}

// nested runs one change in a savepoint. The second error ends the whole batch.
func (t tx) nested(c *change) (failed, fatal error) {
	if c.ctx.Err() != nil {
		return c.ctx.Err(), nil
	}
	ctx := context.Background()
	if _, err := t.Exec(ctx, `SAVEPOINT change`); err != nil {
		return nil, fmt.Errorf("opening savepoint: %w", err)
	}
	if failed = c.do(t); failed != nil {
		if _, err := t.Exec(ctx, `ROLLBACK TO change`); err != nil {
			return nil, fmt.Errorf("undoing a change: %w", err)
		}
	}
	if _, err := t.Exec(ctx, `RELEASE change`); err != nil {
		return nil, fmt.Errorf("closing savepoint: %w", err)
	}
	return failed, nil
}

// A tx runs queries, in a change or on a read connection. Statements are
// prepared once.
type tx struct {
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
}

// read gives a tx for queries that change nothing.
func (s *Store) read() tx { return tx{s.onReader} }

func (s *Store) onReader(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.readStmts.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.reads.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("preparing query: %w", err)
	}
	if kept, loaded := s.readStmts.LoadOrStore(query, st); loaded {
		_ = st.Close()
		return kept.(*sql.Stmt), nil
	}
	return st, nil
}

// onWriter is called by the writer goroutine alone.
func (s *Store) onWriter(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.writeStmts[query]; ok {
		return st, nil
	}
	st, err := s.writes.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("preparing query: %w", err)
	}
	s.writeStmts[query] = st
	return st, nil
}

// Query runs a query that gives rows.
func (t tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := t.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// Row runs a query that gives one row. Scan gives sql.ErrNoRows if there is none.
func (t tx) Row(ctx context.Context, query string, args ...any) scanner {
	st, err := t.prepare(ctx, query)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, args...)
}

// Exec runs a query that gives no rows.
func (t tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := t.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

// A scanner is a row: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// isUnique reports whether err says that a unique index refused a row.
func isUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isForeignKey reports whether err says that a row refers to one that is not there.
func isForeignKey(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
}
