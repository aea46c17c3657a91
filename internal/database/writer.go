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
	"time"
)

// maxBatch is the maximum number of changes that share a commit. It bounds how long a change waits
// for the others in its batch.
const maxBatch = 128

// shrinkAfter is how long a writer waits for a change before it frees its page cache.
const shrinkAfter = 10 * time.Second

// A writer owns the only connection that writes to the database. A single goroutine uses the
// connection.
type writer struct {
	db     *sql.DB
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	queue  chan change
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once
	closed error // the result of close
	memory memory

	pages int           // pages written to the log since full was last signaled
	full  chan struct{} // signaled when a checkpoint is due
	rest  chan struct{} // signaled when the writer should copy the rest of the log into the database

	changes, commits atomic.Int64
}

// A change is one caller's transaction, waiting to be committed.
type change struct {
	do   func(Tx) error
	once bool // do executes at most one statement that changes rows; SQLite undoes it if it fails
	done chan error
}

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &writer{
		db:    db,
		conn:  conn,
		stmts: make(map[string]*sql.Stmt),
		queue: make(chan change, maxBatch),
		quit:  make(chan struct{}),
		done:  make(chan struct{}),
		full:  make(chan struct{}, 1),
		rest:  make(chan struct{}, 1),
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
	case <-w.done: // the writer has ended, perhaps after it answered
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

	idle := time.NewTimer(shrinkAfter)
	defer idle.Stop()
	for {
		select {
		case c := <-w.queue:
			w.commit(w.gather(c))
			w.countPages()
			idle.Reset(shrinkAfter)
		case <-w.rest:
			_ = w.exec(`PRAGMA wal_checkpoint(PASSIVE)`) // the next checkpoint repeats it
		case <-idle.C:
			_ = w.exec(`PRAGMA shrink_memory`) // if it fails, the process only uses more memory
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

// gather returns a batch of waiting changes. It yields once, so that other callers can add their
// changes to the batch.
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

// commit runs a batch and sends each change its result.
func (w *writer) commit(batch []change) {
	var errs []error
	var err error
	if len(batch) == 1 && batch[0].once {
		errs = []error{safely(batch[0].do, w.statementTx())} // a single statement is a transaction by itself
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

// count adds a commit, and the changes in it that succeeded, to the statistics. If all changes
// failed, it adds nothing.
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

// together runs a batch in one transaction. It first runs the changes without savepoints, since
// changes rarely fail. If one fails, or a remembered value is no longer valid, all of them run
// again, each in its own savepoint. errs has an error for each change; err applies to all of them.
func (w *writer) together(batch []change) (errs []error, err error) {
	errs, again, err := w.try(batch, w.plain)
	if again {
		errs, _, err = w.try(batch, w.nested)
	}
	return errs, err
}

// try runs each change of a batch with run. If again is true, the batch was undone and may succeed
// if it is run again.
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
			// If the file failed, SQLite may have rolled back the whole batch.
			errs[i] = safely(c.do, w.statementTx())
			if isOutage(errs[i]) {
				return nil, false, errs[i]
			}
		} else if errs[i], err = run(c); err != nil {
			return nil, len(batch) > 1, err
		}
	}

	// If a recalled value is no longer valid, the batch must run again.
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

// plain runs one change without a savepoint, so its error is fatal to the batch.
func (w *writer) plain(c change) (refused, fatal error) { return nil, safely(c.do, w.tx()) }

// nested runs one change in a savepoint. If the savepoint fails, fatal is not nil, and the batch
// ends.
func (w *writer) nested(c change) (refused, fatal error) {
	if err := w.exec(`SAVEPOINT change`); err != nil {
		return nil, fmt.Errorf("opening savepoint: %w", err)
	}

	before := w.memory
	refused = safely(c.do, w.tx())
	if refused != nil {
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

// safely runs a change. If the change panics, safely returns the panic as an error.
func safely(do func(Tx) error, t Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in a change: %v\n%s", cause, debug.Stack())
		}
	}()
	return do(t)
}

func (w *writer) tx() Tx { return stmtTx{prepare: w.prepare, memory: &w.memory} }

// statementTx returns a Tx for a single statement. It cannot remember or recall values.
func (w *writer) statementTx() Tx { return stmtTx{prepare: w.prepare} }

// prepare returns the statement for a query, and prepares it if necessary. Only the writer's
// goroutine calls it.
func (w *writer) prepare(query string) (*sql.Stmt, error) {
	if st, ok := w.stmts[query]; ok {
		return st, nil
	}
	st, err := w.conn.PrepareContext(context.Background(), forDriver(query))
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

// close commits the waiting changes and closes the connection. Only the first call has an effect.
func (w *writer) close() error {
	w.once.Do(func() {
		close(w.quit)
		<-w.done
		// The checkpoint makes the file complete without its log. If it fails, the next start
		// repeats it.
		_ = w.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
		// The driver does not close the statements of a connection, and SQLite keeps the files open
		// as long as any statement is open.
		for _, stmt := range w.stmts {
			w.closed = errors.Join(w.closed, stmt.Close())
		}
		w.closed = errors.Join(w.closed, w.conn.Close(), w.db.Close())
	})
	return w.closed
}

// A memory holds a value that changes pass on to later changes. The value is valid until another
// process writes. Only the writer's goroutine uses the memory.
type memory struct {
	v        any
	last     func(Tx) error // runs before the commit; nil if no change in this commit has remembered a value
	recalled bool           // a change in this commit relies on a value that was remembered before the commit
}

func (m *memory) recall() any {
	if m.v != nil && m.last == nil {
		m.recalled = true
	}
	return m.v
}

// begin prepares the memory for a new commit.
func (m *memory) begin() { m.last, m.recalled = nil, false }

// forget deletes the remembered value, and reports whether a change relied on it.
func (m *memory) forget() (recalled bool) {
	recalled = m.recalled
	*m = memory{}
	return recalled
}
