package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A serverTx implements Tx. It runs queries on one connection. It ignores contexts, because
// pgx closes a connection if the context of its query is canceled.
type serverTx struct {
	conn   *conn
	queued *pgx.Batch // queries to send together with the next one; nil if there are none
}

// Query runs the queued queries, if any, and then query.
func (t *serverTx) Query(_ context.Context, query string, args ...any) (Rows, error) {
	if err := checkText(args); err != nil {
		return nil, err
	}
	if t.queued == nil {
		rows, err := t.conn.Query(context.Background(), query, args...)
		if err != nil {
			return nil, t.conn.check(err)
		}
		return &serverRows{rows: rows, conn: t.conn}, nil
	}

	batch, err := t.send(query, args)
	if err != nil {
		return nil, err
	}
	rows, err := batch.Query()
	if err != nil {
		_ = batch.Close()
		return nil, t.conn.check(err)
	}
	return &serverRows{rows: rows, conn: t.conn, batch: batch}, nil
}

// Row is like Query, but for a single row. Its Scan returns the error of the query.
func (t *serverTx) Row(ctx context.Context, query string, args ...any) Scanner {
	rows, err := t.Query(ctx, query, args...)
	if err != nil {
		return failed{err}
	}
	return single{rows}
}

// Shared is like Row, but also locks the row against changes by others.
func (t *serverTx) Shared(ctx context.Context, query string, args ...any) Scanner {
	return t.Row(ctx, query+" FOR SHARE", args...)
}

// Locked is like Row, but also locks the row against changes and locks by others. New rows may still
// refer to it by a foreign key.
func (t *serverTx) Locked(ctx context.Context, query string, args ...any) Scanner {
	return t.Row(ctx, query+" FOR NO KEY UPDATE", args...)
}

// Exec runs the queued queries, if any, and then a statement.
func (t *serverTx) Exec(_ context.Context, query string, args ...any) (sql.Result, error) {
	if err := checkText(args); err != nil {
		return nil, err
	}

	if t.queued == nil {
		tag, err := t.conn.Exec(context.Background(), query, args...)
		if err != nil {
			return nil, t.conn.check(err)
		}
		return driver.RowsAffected(tag.RowsAffected()), nil
	}

	batch, err := t.send(query, args)
	if err != nil {
		return nil, err
	}
	tag, err := finish(batch)
	if err != nil {
		return nil, t.conn.check(err)
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// finish reads the last result of a batch and closes the batch.
func finish(batch pgx.BatchResults) (pgconn.CommandTag, error) {
	tag, err := batch.Exec()
	if err != nil {
		_ = batch.Close() // returns the same error
		return tag, err
	}
	return tag, batch.Close()
}

// Later queues a query, which is sent together with the next query or the commit. Outside a
// transaction, Later runs the query immediately.
func (t *serverTx) Later(ctx context.Context, query string, args ...any) error {
	if t.queued == nil {
		if t.isIdle() { // there is no commit
			_, err := t.Exec(ctx, query, args...)
			return err
		}
		t.queued = new(pgx.Batch)
	}
	if err := checkText(args); err != nil {
		return err
	}
	t.queued.Queue(query, args...)
	return nil
}

// isIdle reports whether no transaction is open on this connection.
func (t *serverTx) isIdle() bool { return t.conn.PgConn().TxStatus() == 'I' }

// Recall returns nil, because other nodes also write.
func (t *serverTx) Recall() any { return nil }

// Remember runs last immediately.
func (t *serverTx) Remember(_ any, last func(Tx) error) error { return last(t) }

// send sends the queued queries together with query, and reads the results of the queued queries.
func (t *serverTx) send(query string, args []any) (pgx.BatchResults, error) {
	queries := t.queued
	t.queued = nil
	queuedBefore := queries.Len()
	queries.Queue(query, args...)

	results := t.conn.SendBatch(context.Background(), queries)
	for range queuedBefore {
		if _, err := results.Exec(); err != nil {
			_ = results.Close()
			return nil, t.conn.check(err)
		}
	}
	return results, nil
}

// commit commits the transaction, if one has begun. If the connection is lost during the commit, it
// is unknown whether the transaction was committed.
func (t *serverTx) commit() error {
	if t.queued != nil && t.queued.Len() == 1 && t.isIdle() {
		return nil // only BEGIN is queued, so nothing has run
	}
	if t.queued == nil {
		t.queued = new(pgx.Batch)
	}

	batch, err := t.send("commit", nil)
	if err != nil {
		return err
	}

	tag, err := finish(batch)
	if err != nil {
		return fmt.Errorf("committing: %w", t.conn.check(err))
	}
	if tag.String() != "COMMIT" {
		rolledBack := errors.New("the server rolled back the transaction")
		return fmt.Errorf("committing: %w", t.conn.check(rolledBack))
	}
	return nil
}

// A serverRead implements Tx for read-only queries, each on any free connection.
type serverRead struct{ pool *pool }

// Recall is like serverTx.Recall.
func (r serverRead) Recall() any { return nil }

// Remember is like serverTx.Remember.
func (r serverRead) Remember(_ any, last func(Tx) error) error { return last(r) }

// Query runs a query. Closing its rows puts the connection back into the pool.
func (r serverRead) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := r.pool.get(ctx)
	if err != nil {
		return nil, err
	}

	rows, err := (&serverTx{conn: c}).Query(ctx, query, args...)
	if err != nil {
		r.pool.put(c)
		return nil, explain(err)
	}

	pooled := rows.(*serverRows)
	pooled.pool = r.pool
	return pooled, nil
}

func (r serverRead) Row(ctx context.Context, query string, args ...any) Scanner {
	rows, err := r.Query(ctx, query, args...)
	if err != nil {
		return failed{err}
	}
	return single{rows}
}

// Shared does not lock the row, because the lock would end together with the query.
func (r serverRead) Shared(ctx context.Context, query string, args ...any) Scanner {
	return r.Row(ctx, query, args...)
}

// Locked does not lock the row either.
func (r serverRead) Locked(ctx context.Context, query string, args ...any) Scanner {
	return r.Row(ctx, query, args...)
}

// errReadOnly is the error of statements that change rows where only queries are permitted.
var errReadOnly = errors.New("a read-only query cannot change rows")

// Exec returns an error.
func (r serverRead) Exec(context.Context, string, ...any) (sql.Result, error) {
	return nil, errReadOnly
}

// Later returns an error.
func (r serverRead) Later(context.Context, string, ...any) error { return errReadOnly }

// serverRows implements Rows.
type serverRows struct {
	rows   pgx.Rows
	conn   *conn
	batch  pgx.BatchResults // closed along with the rows; may be nil
	pool   *pool            // the pool to which Close returns conn; nil within a change
	closed bool
	err    error // the result of Close
}

func (r *serverRows) Next() bool             { return r.rows.Next() }
func (r *serverRows) Scan(dest ...any) error { return r.explained(r.rows.Scan(dest...)) }

func (r *serverRows) Err() error {
	if r.closed {
		return r.err
	}
	return r.explained(r.rows.Err())
}

// explained checks the connection after an error. It passes an error from a read-only query to
// explain. Within a change, DB.Change does this.
func (r *serverRows) explained(err error) error {
	if err == nil {
		return nil
	}
	err = r.conn.check(err)
	if r.pool != nil {
		return explain(err)
	}
	return err
}

// Close ends the query. It returns the first error of the query, even if called again.
func (r *serverRows) Close() error {
	if r.closed {
		return r.err
	}
	r.rows.Close()
	r.err = r.Err()
	if r.batch != nil {
		if err := r.batch.Close(); r.err == nil {
			r.err = r.explained(err)
		}
	}

	r.closed = true
	if r.pool != nil {
		r.pool.put(r.conn)
	}
	return r.err
}

// A single is the only row of a result.
type single struct{ rows Rows }

func (s single) Scan(dest ...any) error {
	defer s.rows.Close() // in case Scan panics
	if !s.rows.Next() {
		// There is no row: either the query failed, and Close returns its error, or no row matches.
		if err := s.rows.Close(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}

	scanErr := s.rows.Scan(dest...)
	closeErr := s.rows.Close()
	if scanErr != nil {
		return scanErr
	}
	return closeErr
}
