// Package sql keeps sessions in a SQL database. It is the default [session.Store]. It uses
// PostgreSQL, or a separate SQLite file. Entries survive a crash and a restart.
//
// Each operation changes entries with a single statement, in the SQL that SQLite and PostgreSQL
// share. The database decides which of several concurrent callers succeeds. An expired entry is
// never returned, even before it is deleted. Commits do not wait for the disk, so a power failure
// may lose the latest logins in progress.
package sql

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/session"
)

// Config configures a Store.
type Config struct {
	URL   string           // sqlite:FILE or postgres://…; "" means sqlite:sessions.db
	Dir   string           // directory for a relative FILE
	Pool  int              // maximum number of connections to PostgreSQL; 0 means 16
	Sweep time.Duration    // how often expired entries are deleted; 0 means every 30 s
	Now   func() time.Time // nil means time.Now
	Check time.Duration    // how long checking a file for damage may delay the start

	Patience time.Duration // maximum time of a query on PostgreSQL; 0 means 5 s
}

// A Store is a session.Store in a database. Create one with [Open].
type Store struct {
	now   func() time.Time
	db    database.DB
	stop  chan struct{}
	swept sync.WaitGroup
}

var _ session.Store = (*Store)(nil)

const schema = `
	CREATE TABLE selvage_sessions (
		kind    TEXT   NOT NULL,
		id      TEXT   NOT NULL,
		value   BYTEA  NOT NULL,
		count   BIGINT NOT NULL,
		expires BIGINT NOT NULL,
		PRIMARY KEY (kind, id)
	);
	CREATE INDEX selvage_sessions_expires ON selvage_sessions (expires);`

// Open opens the database, creates its table if necessary, and starts deleting expired entries.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sweep <= 0 {
		c.Sweep = 30 * time.Second
	}

	db, err := database.Open(ctx, c.database())
	if err != nil {
		return nil, fmt.Errorf("opening sessions: %w", err)
	}

	s := &Store{now: c.Now, db: db, stop: make(chan struct{})}
	s.swept.Go(func() { s.sweepEvery(c.Sweep) })
	return s, nil
}

// Look describes the database without changing anything; see [database.Look].
func Look(ctx context.Context, c Config) (database.Report, error) {
	return database.Look(ctx, c.database())
}

// database returns the configuration of the database, which may also contain rows of package store.
func (c Config) database() database.Config {
	if c.URL == "" {
		c.URL = "sqlite:sessions.db"
	}
	// With Normal, a power failure may lose the latest logins in progress.
	return database.Config{
		URL:      c.URL,
		Dir:      c.Dir,
		Pool:     c.Pool,
		Sync:     database.Normal,
		Patience: c.Patience,
		Ours:     database.IsOurs,
		Check:    c.Check,
		Prepare:  prepare,
	}
}

func prepare(ctx context.Context, db *sql.DB, dialect database.Dialect) error {
	if exists, err := dialect.HasTable(ctx, db, database.Sessions); exists || err != nil {
		return err
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("creating table: %w", err)
	}
	defer tx.Rollback()

	_, err = tx.ExecContext(ctx, dialect.Schema(schema))
	if err != nil {
		return fmt.Errorf("creating table: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("creating table: %w", err)
	}
	return nil
}

// Ping checks that the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.Ping(ctx); err != nil {
		return fmt.Errorf("querying the session database: %w", err)
	}
	return nil
}

// Close finishes pending writes and closes the database.
func (s *Store) Close() error {
	close(s.stop)
	s.swept.Wait()
	return s.db.Close()
}

// Stats returns statistics of the database.
func (s *Store) Stats() database.Stats { return s.db.Stats() }
