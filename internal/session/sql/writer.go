package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
)

// maxBatch bounds how many changes share a transaction.
const maxBatch = 128

// errClosed is what a change gets once the store is closed.
var errClosed = errors.New("the session store is closed")

// A writer is the one connection that writes, and the goroutine that owns it.
// Changes that wait at the same time share a transaction: each is one statement,
// so that none can half fail.
type writer struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	queue chan change
	quit  chan struct{}
	done  chan struct{}
}

// A change is a caller's statement, waiting for its turn.
type change struct {
	do   func(tx) error
	done chan error
}

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("making table: %w", err), db.Close())
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &writer{
		db: db, conn: conn, stmts: make(map[string]*sql.Stmt),
		queue: make(chan change, maxBatch), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go w.run()
	return w, nil
}

// do runs a change and returns once it is committed. A change that waits is
// given up when ctx ends; one that runs is not.
func (w *writer) do(ctx context.Context, do func(tx) error) error {
	c := change{do: do, done: make(chan error, 1)}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return errClosed
	}
	select {
	case err := <-c.done:
		return err
	case <-w.done: // the writer ended; it may have answered before
		select {
		case err := <-c.done:
			return err
		default:
			return errClosed
		}
	}
}

func (w *writer) run() {
	defer close(w.done)
	for {
		select {
		case c := <-w.queue:
			w.commit(w.gather(c))
		case <-w.quit:
			return
		}
	}
}

// gather yields once, so that callers who are about to write are in the batch too.
func (w *writer) gather(first change) []change {
	runtime.Gosched()
	batch := []change{first}
	for len(batch) < maxBatch {
		select {
		case c := <-w.queue:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch and answers each of its changes. A change that is alone
// needs no transaction: SQLite makes one for its statement.
func (w *writer) commit(batch []change) {
	if len(batch) == 1 {
		batch[0].done <- batch[0].do(tx{w})
		return
	}
	errs, err := w.together(batch)
	for i, c := range batch {
		if err != nil {
			c.done <- err
		} else {
			c.done <- errs[i]
		}
	}
}

func (w *writer) together(batch []change) (errs []error, err error) {
	t := tx{w}
	if _, err := t.exec(`BEGIN IMMEDIATE`); err != nil {
		return nil, fmt.Errorf("beginning transaction: %w", err)
	}
	errs = make([]error, len(batch))
	for i, c := range batch {
		errs[i] = c.do(t)
	}
	if _, err := t.exec(`COMMIT`); err != nil {
		_, _ = t.exec(`ROLLBACK`) // fails where SQLite has rolled back itself
		return nil, fmt.Errorf("committing: %w", err)
	}
	return errs, nil
}

func (w *writer) close() error {
	close(w.quit)
	<-w.done
	return errors.Join(w.conn.Close(), w.db.Close())
}

// A tx runs statements on the writer's connection, each prepared once.
type tx struct{ w *writer }

func (t tx) prepare(query string) (*sql.Stmt, error) {
	if st, ok := t.w.stmts[query]; ok {
		return st, nil
	}
	st, err := t.w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("preparing statement: %w", err)
	}
	t.w.stmts[query] = st
	return st, nil
}

func (t tx) exec(query string, args ...any) (sql.Result, error) {
	st, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.Exec(args...)
}

// row runs a statement that gives one row. Scan gives sql.ErrNoRows if there is none.
func (t tx) row(query string, args ...any) interface{ Scan(...any) error } {
	st, err := t.prepare(query)
	if err != nil {
		return failed{err}
	}
	return st.QueryRow(args...)
}

// failed is the row of a statement that could not be prepared.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }
