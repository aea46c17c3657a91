package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// A core is shared by all parts of a Store. It holds the database, and the audit trail in which
// changes are recorded.
type core struct {
	db  database.DB
	now func() time.Time

	auditKey atomic.Pointer[audit.Key]       // nil until Config.Audit or AuditBy sets it
	replaced func(ctx context.Context) error // set by OnReplacedMaster; may be nil
	lanes    uint64                          // number of lanes in the audit trail
	turn     atomic.Uint64                   // number of audited changes, by which they take turns with the lanes

	tally tally
}

// A tx runs queries, either within a change or read-only.
type tx struct {
	database.Tx
	event *audit.Event   // describes the change; nil when reading
	more  *[]audit.Event // further events of the same change; see addEvent
	keys  **audit.Key    // the key that authenticates the events; nil means auditKey
}

// A scanner is a row to be scanned.
type scanner = database.Scanner

// read returns a tx for read-only queries.
func (c *core) read() tx { return tx{Tx: c.db.Read()} }

// watch is like read, for queries that must be answered even if the database is busy.
func (c *core) watch() tx { return tx{Tx: c.db.Watch()} }

// clock returns the current time on the database's machine.
func (c *core) clock(ctx context.Context) (time.Time, error) {
	now, err := c.db.Clock(ctx)
	if err != nil {
		return now, fmt.Errorf("reading the database's clock: %w", err)
	}
	return now, nil
}

// change runs do in a transaction that also records the event e. It returns once both are committed
// and synced to disk. If do fails, everything that it did is undone. If the master key was
// replaced, change fetches the new one and runs do again.
func (c *core) change(ctx context.Context, e audit.Event, do func(tx) error) error {
	if err := e.Check(); err != nil {
		return err
	}
	for {
		key := c.auditKey.Load()
		err := c.changeOnce(ctx, e, do)
		if !errors.Is(err, errReplaced) || c.replaced == nil {
			return err
		}

		if err := c.replaced(ctx); err != nil {
			return unaudited(err)
		}
		if c.auditKey.Load() == key {
			return err
		}
	}
}

// changeOnce is like change, but fails if the master key has just been replaced.
func (c *core) changeOnce(ctx context.Context, e audit.Event, do func(tx) error) error {
	var done []audit.Event
	err := c.db.Change(ctx, func(d database.Tx) error {
		event := e // a copy, since do may run again
		t := tx{Tx: d, event: &event, more: new([]audit.Event), keys: new(*audit.Key)}
		if err := do(t); err != nil {
			return err
		}
		done = append((*t.more)[:len(*t.more):len(*t.more)], event)
		return c.record(ctx, t)
	})
	if err == nil {
		for _, event := range done {
			c.tally.note(event, c.now())
		}
	}
	return err
}

// addEvent adds an event to a change that does several things.
func (t tx) addEvent(e audit.Event) { *t.more = append(*t.more, e) }

// once is like change, for a function that does not depend on a transaction. If e is not written,
// once runs do without a transaction, so an error from do undoes nothing.
func (c *core) once(ctx context.Context, e audit.Event, do func(tx) error) error {
	if !e.Unwritten() {
		return c.change(ctx, e, do)
	}
	return c.db.Once(ctx, func(d database.Tx) error { return do(tx{Tx: d, event: &e}) })
}

// resultOf runs a change that has a result. run is change, once or keepOwner.
func resultOf[T any](
	ctx context.Context, run func(context.Context, audit.Event, func(tx) error) error, e audit.Event,
	do func(tx) (T, error),
) (result T, err error) {
	err = run(ctx, e, func(t tx) (err error) {
		result, err = do(t)
		return err
	})
	return result, err
}

// sweepBatch is the maximum number of rows that sweep deletes or changes in one transaction. It bounds
// how long a login may have to wait for a sweep.
const sweepBatch = 500

// sweep repeats query until it finds no more rows to delete or change. query must delete or change at
// most $1 rows. The next run of query must not find the rows that an earlier run has changed.
func (c *core) sweep(ctx context.Context, query string, bounds ...any) error {
	bounds = append([]any{sweepBatch}, bounds...)
	for {
		var n int64
		err := c.once(ctx, audit.None("expired rows"), func(t tx) error {
			res, err := t.Exec(ctx, query, bounds...)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		if err != nil {
			return fmt.Errorf("sweeping rows: %w", err)
		}
		if n < sweepBatch {
			return nil
		}
	}
}

// withoutIndex returns a condition that has the same result, but uses no index. A sweep checks its condition
// a second time, for the rows that its subquery has found. If an index covered this second check, SQLite
// would read all rows that meet the condition, each time that it runs the statement.
func withoutIndex(condition string) string {
	return `CASE WHEN ` + condition + ` THEN TRUE ELSE FALSE END`
}

func isUnique(err error) bool     { return database.IsUnique(err) }
func isForeignKey(err error) bool { return database.IsForeignKey(err) }

// findRow runs a query that returns at most one row, and reports whether there was a row.
func (t tx) findRow(ctx context.Context, thing, query string, args []any, dest ...any) (bool, error) {
	err := checkRow(t.Row(ctx, query, args...).Scan(dest...), thing)
	if errors.Is(err, problem.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// checkRow converts the error from reading a row to problem.NotFound if the row is missing.
func checkRow(err error, thing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return problem.NoSuch(thing)
	}
	return fmt.Errorf("reading %s: %w", thing, err)
}

// countChanged returns the number of rows that a statement changed.
func countChanged(res sql.Result, err error, thing string) (int64, error) {
	if err != nil {
		return 0, fmt.Errorf("updating %s: %w", thing, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("updating %s: %w", thing, err)
	}
	return n, nil
}

// requireRow returns problem.NotFound if a statement changed no row.
func requireRow(res sql.Result, err error, thing string) error {
	n, err := countChanged(res, err, thing)
	if err != nil {
		return err
	}
	if n == 0 {
		return problem.NoSuch(thing)
	}
	return nil
}

// conflictIfMissing returns conflict if err is problem.NotFound, and err otherwise.
func conflictIfMissing(conflict, err error) error {
	if errors.Is(err, problem.NotFound) {
		return conflict
	}
	return err
}

// requireRowOr is like requireRow, but returns conflict if no row was changed.
func requireRowOr(conflict error, res sql.Result, err error, thing string) error {
	return conflictIfMissing(conflict, requireRow(res, err, thing))
}

// requireUnchanged returns problem.Conflict if a statement changed no row, which means that the row
// has changed since it was read.
func requireUnchanged(res sql.Result, err error, thing string) error {
	return requireRowOr(changedMeanwhile(thing), res, err, thing)
}

func changedMeanwhile(thing string) error {
	return problem.New(problem.Conflict, "conflict", "the %s was changed in the meantime", thing)
}

// requireInserted returns conflict if an INSERT … ON CONFLICT DO NOTHING inserted nothing.
func requireInserted(res sql.Result, err error, thing string, conflict error) error {
	if err != nil {
		return fmt.Errorf("inserting %s: %w", thing, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("inserting %s: %w", thing, err)
	}
	if n == 0 {
		return conflict
	}
	return nil
}
