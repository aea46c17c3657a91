package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// maxBatch bounds how many changes share a commit, and so how long one waits.
const maxBatch = 128

// A writer is the one connection that writes, and the goroutine that owns it.
type writer struct {
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	queue  chan change
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once
	closed error // of closing
	memory memory

	changes, commits atomic.Int64
}

// A change is one caller's transaction, waiting for its commit.
type change struct {
	do   func(Tx) error
	once bool // it changes rows by one statement at most, which SQLite undoes where it fails
	done chan error
}

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
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

func (w *writer) do(ctx context.Context, c change) error {
	c.done = make(chan error, 1)
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return ErrClosed
	}
	select {
	case err := <-c.done:
		return err
	case <-w.done: // the writer ended; it may have answered before
		select {
		case err := <-c.done:
			return err
		default:
			return ErrClosed
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
			for {
				select {
				case c := <-w.queue:
					w.commit(w.gather(c))
				default:
					return
				}
			}
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

// commit runs a batch and answers each of its changes.
func (w *writer) commit(batch []change) {
	var errs []error
	var err error
	if len(batch) == 1 && batch[0].once {
		errs = []error{safely(batch[0].do, w.alone())} // SQLite makes a transaction of the statement
	} else {
		errs, err = w.together(batch)
	}
	w.count(errs)
	for i, c := range batch {
		if err != nil {
			c.done <- err
		} else {
			c.done <- errs[i]
		}
	}
}

// count counts a commit and the changes in it.
func (w *writer) count(errs []error) {
	var n int64
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	if n > 0 {
		w.commits.Add(1)
		w.changes.Add(n)
	}
}

// together runs a batch in one transaction: first as it is, since hardly a change is
// refused; where one is, or what was remembered is not so any more, all are run again, each
// in a savepoint of its own. The second error is the fate of them all.
func (w *writer) together(batch []change) (errs []error, err error) {
	errs, again, err := w.try(batch, w.plain)
	if again {
		errs, _, err = w.try(batch, w.nested)
	}
	return errs, err
}

// try runs a batch by a way to run one change. again means that it was undone, and that
// another try may do better.
func (w *writer) try(batch []change, run func(change) (refused, fatal error)) (errs []error, again bool, err error) {
	if err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return nil, false, fmt.Errorf("beginning transaction: %w", err)
	}
	w.memory.begin()
	defer func() {
		if err != nil {
			_ = w.exec(`ROLLBACK`) // fails where SQLite has rolled back itself
			w.memory.forget()
		}
	}()
	errs = make([]error, len(batch))
	for i, c := range batch {
		if c.once {
			// Where the file has failed, SQLite may have undone them all by itself.
			if errs[i] = safely(c.do, w.alone()); away(errs[i]) {
				return nil, false, errs[i]
			}
		} else if errs[i], err = run(c); err != nil {
			return nil, len(batch) > 1, err
		}
	}
	if w.memory.last != nil {
		recalled := w.memory.recalled
		if err := safely(w.memory.last, w.alone()); err != nil {
			return nil, recalled, err
		}
	}
	if err := w.exec(`COMMIT`); err != nil {
		return nil, false, fmt.Errorf("committing: %w", err)
	}
	return errs, false, nil
}

// plain runs one change as it is: a refusal ends the batch.
func (w *writer) plain(c change) (refused, fatal error) { return nil, safely(c.do, w.tx()) }

// nested runs one change in a savepoint. The second error ends the whole batch.
func (w *writer) nested(c change) (refused, fatal error) {
	if err := w.exec(`SAVEPOINT change`); err != nil {
		return nil, fmt.Errorf("opening savepoint: %w", err)
	}
	before := w.memory
	if refused = safely(c.do, w.tx()); refused != nil {
		w.memory = before
		if err := w.exec(`ROLLBACK TO change`); err != nil {
			return nil, fmt.Errorf("undoing a change: %w", errors.Join(refused, err))
		}
	}
	if err := w.exec(`RELEASE change`); err != nil {
		return nil, fmt.Errorf("closing savepoint: %w", err)
	}
	return refused, nil
}

// safely runs a change. A panic in it is its own failure, not the end of us all.
func safely(do func(Tx) error, t Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in a change: %v\n%s", cause, debug.Stack())
		}
	}()
	return do(t)
}

func (w *writer) tx() Tx { return stmtTx{prepare: w.prepare, memory: &w.memory} }

// alone is for one statement, with which nothing is remembered.
func (w *writer) alone() Tx { return stmtTx{prepare: w.prepare} }

// prepare is called by the writer's goroutine alone.
func (w *writer) prepare(query string) (*sql.Stmt, error) {
	if st, ok := w.stmts[query]; ok {
		return st, nil
	}
	st, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("preparing query: %w", err)
	}
	w.stmts[query] = st
	return st, nil
}

func (w *writer) exec(query string) error {
	st, err := w.prepare(query)
	if err != nil {
		return err
	}
	_, err = st.Exec()
	return err
}

// close commits what waits, once.
func (w *writer) close() error {
	w.once.Do(func() {
		close(w.quit)
		<-w.done
		_ = w.exec(`PRAGMA wal_checkpoint(TRUNCATE)`) // so that the file alone is whole; else the next start does it
		w.closed = errors.Join(w.conn.Close(), w.db.Close())
	})
	return w.closed
}
