package database

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A server is a PostgreSQL database.
type server struct {
	pool     *pool
	watch    *pool // has a single connection
	readOnly bool

	// connectUntimed opens a connection whose statements and transactions have no time limit.
	connectUntimed func(context.Context) (*conn, error)

	changes, retries atomic.Int64
}

var _ DB = (*server)(nil)

func openServer(ctx context.Context, c Config) (*server, error) {
	config, err := c.server()
	if err != nil {
		return nil, err
	}
	if err := prepareServer(ctx, config, c); err != nil {
		return nil, fmt.Errorf("opening %s: %w", shown(config), err)
	}

	if c.Pool <= 0 {
		c.Pool = 16
	}
	connect := connector(config)
	return &server{
		pool:           newPool(c.Pool, c.patience(), connect),
		watch:          newPool(1, c.patience(), connect),
		readOnly:       c.ReadOnly,
		connectUntimed: connector(withoutTimeLimits(config)),
	}, nil
}

func (s *server) Ping(ctx context.Context) error {
	var standby bool
	if err := s.Watch().Row(ctx, `SELECT pg_is_in_recovery()`).Scan(&standby); err != nil {
		return err
	}
	if standby && !s.readOnly {
		return unavailable(errStandby)
	}
	return nil
}

func (s *server) Clock(ctx context.Context) (time.Time, error) {
	var us int64
	err := s.Watch().Row(ctx, `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`).Scan(&us)
	return time.UnixMicro(us), err
}

func (s *server) Stats() Stats {
	stats, watch := s.pool.stats(), s.watch.stats()
	stats.Open += watch.Open
	stats.InUse += watch.InUse
	stats.Changes, stats.Retries = s.changes.Load(), s.retries.Load()
	stats.Commits = stats.Changes
	return stats
}

func (s *server) Close() error {
	s.pool.close()
	s.watch.close()
	return nil
}

func (s *server) Read() Tx  { return serverRead{s.pool} }
func (s *server) Watch() Tx { return serverRead{s.watch} }

// Change runs do in a transaction.
func (s *server) Change(ctx context.Context, do func(Tx) error) error {
	return s.retry(ctx, func(c *conn) error { return transact(c, do) })
}

// Once runs do without a transaction: each statement is committed by itself. This saves sending BEGIN
// and COMMIT.
func (s *server) Once(ctx context.Context, do func(Tx) error) error {
	return s.retry(ctx, func(c *conn) error { return safely(do, &serverTx{conn: c}) })
}

// retry runs a change, and runs it again if the server has undone it because of a concurrent
// change.
func (s *server) retry(ctx context.Context, run func(*conn) error) error {
	if s.readOnly {
		return ErrReadOnly
	}
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}

		c, err := s.pool.get(ctx)
		if err != nil {
			return err
		}
		err = run(c)
		s.pool.put(c)
		if err == nil {
			s.changes.Add(1)
			return nil
		}

		if try >= tries(err) {
			return explain(err)
		}
		s.retries.Add(1)
		select {
		case <-time.After(rand.N(firstPause << (try - 1))):
		case <-ctx.Done(): // the next iteration returns its error
		}
	}
}

// firstPause is the longest pause before the second try. It doubles with each further try. Pauses are
// random, so that changes that failed together do not collide again.
const firstPause = 10 * time.Millisecond

// tries returns how many times a change that failed with err may run in total. It returns 1 if the server
// did not answer the commit, because the change may have been committed.
func tries(err error) int {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return 1
	}
	switch e.Code {
	case serializationFailure, deadlockDetected:
		return 5
	case lockNotAvailable: // the change has already waited for the lock timeout
		return 2
	}
	return 1
}

// transact runs a change in a transaction. It sends BEGIN together with the first query.
func transact(c *conn, do func(Tx) error) error {
	t := &serverTx{conn: c, queued: new(pgx.Batch)}
	t.queued.Queue("begin")
	err := safely(do, t)
	if err == nil {
		err = t.commit()
	}
	if err != nil {
		rollback(c)
	}
	return err
}

// rollback ends a connection's transaction, if one is open. If this fails, the connection is not
// used again.
func rollback(c *conn) {
	const noTransaction = 'I'
	if c.IsClosed() || c.PgConn().TxStatus() == noTransaction {
		return
	}
	if _, err := c.Exec(context.Background(), "rollback"); err != nil {
		c.bad = true
	}
}
