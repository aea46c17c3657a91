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

// maxBatch is the most changes that share a commit. It bounds how long a change waits for the others.
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
	closed error // the result of closing
	memory memory

	changes, commits atomic.Int64
}

// A change is one caller's transaction, waiting for its commit.
type change struct {
	do   func(Tx) error
	once bool // it has at most one statement that changes rows, which SQLite undoes if it fails
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
			// Commit the changes that are still waiting.
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

// gather yields once, so that callers that are about to write join the batch.
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
		errs = []error{safely(batch[0].do, w.statementTx())} // the statement is its own transaction
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

// together runs a batch in one transaction. It first runs it without savepoints, since few changes are
// refused. If one is refused, or a remembered value no longer holds, all run again, each in a savepoint
// of its own. The second error applies to all of them.
func (w *writer) together(batch []change) (errs []error, err error) {
	errs, again, err := w.try(batch, w.plain)
	if again {
		errs, _, err = w.try(batch, w.nested)
	}
	return errs, err
}

// try runs a batch with a func that runs one change. again means that the batch was undone, and may
// succeed on another try.
func (w *writer) try(batch []change, run func(change) (refused, fatal error)) (errs []error, again bool, err error) {
	if err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return nil, false, fmt.Errorf("beginning transaction: %w", err)
	}

	w.memory.begin()
	defer func() {
		if err != nil {
			_ = w.exec(`ROLLBACK`) // fails if SQLite has rolled back by itself
			w.memory.forget()
		}
	}()

	errs = make([]error, len(batch))
	for i, c := range batch {
		if c.once {
			// If the file has failed, SQLite may have undone the whole batch by itself.
			if errs[i] = safely(c.do, w.statementTx()); isOutage(errs[i]) {
				return nil, false, errs[i]
			}
		} else if errs[i], err = run(c); err != nil {
			return nil, len(batch) > 1, err
		}
	}

	// A recalled value may have changed since, in which case the batch runs again.
	if w.memory.last != nil {
		recalled := w.memory.recalled
		if err := safely(w.memory.last, w.statementTx()); err != nil {
			return nil, recalled, err
		}
	}

	if err := w.exec(`COMMIT`); err != nil {
		return nil, false, fmt.Errorf("committing: %w", err)
	}
	return errs, false, nil
}

// plain runs one change without a savepoint: a refusal ends the batch.
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

// safely runs a change. A panic becomes the error of that change, and the process continues.
func safely(do func(Tx) error, t Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in a change: %v\n%s", cause, debug.Stack())
		}
	}()
	return do(t)
}

func (w *writer) tx() Tx { return stmtTx{prepare: w.prepare, memory: &w.memory} }

// statementTx is for a single statement, which remembers nothing.
func (w *writer) statementTx() Tx { return stmtTx{prepare: w.prepare} }

// prepare is called by the writer's goroutine only.
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

// close commits the waiting changes, once.
func (w *writer) close() error {
	w.once.Do(func() {
		close(w.quit)
		<-w.done
		// The checkpoint makes the file complete without its log. If it fails, the next start does it.
		_ = w.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
		// Nobody else closes the statements of a single connection, and SQLite keeps the files open as long
		// as there are any.
		for _, stmt := range w.stmts {
			w.closed = errors.Join(w.closed, stmt.Close())
		}
		w.closed = errors.Join(w.closed, w.conn.Close(), w.db.Close())
	})
	return w.closed
}

// A memory is what changes leave for one another, while no other process writes. Only the writer's
// goroutine uses it.
type memory struct {
	v        any
	last     func(Tx) error // to run before the commit; nil if nothing was remembered in it
	recalled bool           // a change in this commit relies on what was remembered before it
}

func (m *memory) recall() any {
	if m.v != nil && m.last == nil {
		m.recalled = true
	}
	return m.v
}

// begin begins a commit.
func (m *memory) begin() { m.last, m.recalled = nil, false }

// forget forgets everything, and reports whether a change relied on it.
func (m *memory) forget() (recalled bool) {
	recalled = m.recalled
	*m = memory{}
	return recalled
}
