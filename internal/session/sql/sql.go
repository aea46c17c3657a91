// Package sql keeps sessions in SQL: the default [session.Store], in an SQLite
// file of its own which survives a crash and a restart.
//
// Each operation is one statement, in the SQL that SQLite and PostgreSQL share,
// and the database decides who wins. An entry that has expired is never given,
// whether or not it was swept yet. What a power cut takes from this file are the
// last logins in progress, so commits do not wait for the disk.
package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/selvage/selvage/internal/session"
)

// Config says where sessions are kept.
type Config struct {
	URL   string           // sqlite:FILE; "" means sqlite:sessions.db
	Dir   string           // where a relative FILE lies
	Sweep time.Duration    // how often expired entries are deleted; 0 means every 30 s
	Now   func() time.Time // nil means time.Now
}

// A Store is a session.Store in a database. Make one with [Open].
type Store struct {
	now    func() time.Time
	reader *sql.DB
	get    *sql.Stmt
	writer *writer
	stop   chan struct{}
	swept  sync.WaitGroup
}

var _ session.Store = (*Store)(nil)

const schema = `
	CREATE TABLE IF NOT EXISTS session_entries (
		kind    TEXT   NOT NULL,
		id      TEXT   NOT NULL,
		value   BYTEA  NOT NULL,
		count   BIGINT NOT NULL,
		expires BIGINT NOT NULL,
		PRIMARY KEY (kind, id)
	);
	CREATE INDEX IF NOT EXISTS session_entries_expires ON session_entries (expires);`

// Open opens the database, makes its table if there is none, and begins to
// sweep.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sweep <= 0 {
		c.Sweep = 30 * time.Second
	}
	file, err := c.file()
	if err != nil {
		return nil, err
	}
	s := &Store{now: c.Now, stop: make(chan struct{})}
	if err := s.open(ctx, file); err != nil {
		return nil, fmt.Errorf("opening sessions in %s: %w", file, errors.Join(err, s.close()))
	}
	s.swept.Go(func() { s.sweepEvery(c.Sweep) })
	return s, nil
}

func (c Config) file() (string, error) {
	file, ok := strings.CutPrefix(c.URL, "sqlite:")
	if c.URL == "" {
		file, ok = "sessions.db", true
	}
	if !ok || file == "" {
		return "", errors.New("opening sessions: the URL is not sqlite:FILE")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir, file)
	}
	return file, nil
}

func (s *Store) open(ctx context.Context, file string) (err error) {
	db, err := openSQLite(file, "")
	if err != nil {
		return err
	}
	if s.writer, err = newWriter(ctx, db); err != nil {
		return err
	}
	if s.reader, err = openSQLite(file, "&_pragma=query_only(1)"); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(8)
	s.reader.SetMaxIdleConns(8)
	s.get, err = s.reader.PrepareContext(ctx, `SELECT value FROM session_entries WHERE kind = $1 AND id = $2 AND expires > $3`)
	return err
}

// openSQLite opens a file with the pragmas of short-lived state: NORMAL, since a
// crash of the process loses nothing even so, and a WAL long enough that
// checkpoints are rare.
func openSQLite(file, extra string) (*sql.DB, error) {
	pragmas := "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=wal_autocheckpoint(4000)"
	return sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+pragmas+extra)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.reader.PingContext(ctx); err != nil {
		return fmt.Errorf("asking the session database: %w", err)
	}
	return nil
}

// Close finishes what is being written and closes the database.
func (s *Store) Close() error {
	close(s.stop)
	s.swept.Wait()
	return s.close()
}

func (s *Store) close() (err error) {
	if s.writer != nil {
		err = s.writer.close()
	}
	if s.reader != nil {
		err = errors.Join(err, s.reader.Close())
	}
	return err
}
