package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
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
	db    *sql.DB
	queue chan change
	full  chan struct{} // signaled when a checkpoint is due
	rest  chan struct{} // signaled when the writer should copy the rest of the log into the database

	// Only the writer's goroutine uses these fields, until it has ended.
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt // by query
	memory memory
	pages  int // pages written to the log since full was last signaled

	quit      chan struct{} // closed to make the goroutine end
	done      chan struct{} // closed when the goroutine has ended
	closeOnce sync.Once
	closeErr  error // the result of close

	changes, commits atomic.Int64 // statistics
}

// A change is one caller's transaction, waiting to be committed.
type change struct {
	do   func(Tx) error
	once bool       // do executes at most one statement that changes rows; SQLite undoes it if it fails
	done chan error // has room for the result
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
			w.commitWaiting()
			return
		}
	}
}

// commitWaiting commits the changes that are still waiting.
func (w *writer) commitWaiting() {
	for {
		select {
		case c := <-w.queue:
			w.commit(w.gather(c))
		default:
			return
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
	errs := w.runBatch(batch)
	w.countChanges(errs)
	for i, c := range batch {
		c.done <- errs[i]
	}
}

// runBatch runs and commits a batch. It returns the error of each change.
func (w *writer) runBatch(batch []change) []error {
	if len(batch) == 1 && batch[0].once {
		return []error{safely(batch[0].do, w.statementTx())} // a single statement is a transaction by itself
	}

	// Changes rarely fail, so they first run without savepoints.
	errs, again, err := w.runTransaction(batch, w.runPlain)
	if again {
		errs, _, err = w.runTransaction(batch, w.runInSavepoint)
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	return errs
}

// countChanges adds a commit, and the changes in it that succeeded, to the statistics. If all changes
// failed, it adds nothing.
func (w *writer) countChanges(errs []error) {
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

// runTransaction runs the changes of a batch in one transaction, by calling run for each. The result
// errs has an error for each change. If err is not nil, the whole batch was undone. In this case, again
// reports whether the batch may succeed if each change runs in its own savepoint.
func (w *writer) runTransaction(batch []change, run runChange) (errs []error, again bool, err error) {
	if err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return nil, false, fmt.Errorf("beginning transaction: %w", err)
	}

	w.memory.begin()
	errs, again, err = w.runChanges(batch, run)
	if err == nil {
		err = w.exec(`COMMIT`)
		if err == nil {
			return errs, false, nil
		}
		err = fmt.Errorf("committing: %w", err)
	}

	_ = w.exec(`ROLLBACK`) // fails if SQLite has rolled back by itself
	w.memory.forget()
	return nil, again, err
}

// runChanges runs the changes of a batch within a transaction. Its results are those of
// runTransaction.
func (w *writer) runChanges(batch []change, run runChange) (errs []error, again bool, err error) {
	for _, c := range batch {
		if c.once {
			refused := safely(c.do, w.statementTx())
			if isOutage(refused) {
				return nil, false, refused // SQLite may have rolled back the whole batch
			}
			errs = append(errs, refused)
			continue
		}

		refused, fatal := run(c)
		if fatal != nil {
			return nil, len(batch) > 1, fatal
		}
		errs = append(errs, refused)
	}

	if w.memory.last == nil {
		return errs, false, nil
	}
	// If a recalled value is no longer valid, the batch must run again.
	recalled := w.memory.recalled
	if err := safely(w.memory.last, w.statementTx()); err != nil {
		return nil, recalled, err
	}
	return errs, false, nil
}

// A runChange runs one change within a transaction. The error refused concerns only this change,
// whose effects were undone. The error fatal ends the transaction.
type runChange func(change) (refused, fatal error)

// runPlain runs a change without a savepoint, so every error is fatal.
func (w *writer) runPlain(c change) (refused, fatal error) { return nil, safely(c.do, w.tx()) }

// runInSavepoint runs a change in a savepoint. Only a failure of the savepoint is fatal.
func (w *writer) runInSavepoint(c change) (refused, fatal error) {
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
	w.closeOnce.Do(func() {
		close(w.quit)
		<-w.done
		// The checkpoint makes the file complete without its log. If it fails, the next start
		// repeats it.
		_ = w.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
		// The driver does not close the statements of a connection, and SQLite keeps the files open
		// as long as any statement is open.
		for _, stmt := range w.stmts {
			w.closeErr = errors.Join(w.closeErr, stmt.Close())
		}
		w.closeErr = errors.Join(w.closeErr, w.conn.Close(), w.db.Close())
	})
	return w.closeErr
}
