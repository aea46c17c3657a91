// Package store keeps rows: what an owner would be angry to lose.
//
// Every query is written once, in the SQL that SQLite and PostgreSQL share:
// $1 parameters, ON CONFLICT, RETURNING, times as BIGINT microseconds. The
// database decides what must be unique or happen once; Go does not look first.
// There are no rules in here: those are in packages fabric, idp and recordings,
// whose Store interfaces this package fulfils, one file a noun.
package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/sqlite"
)

// Config says which database to open.
type Config struct {
	URL string           // sqlite:FILE; "" means sqlite:selvage.db
	Dir string           // where a relative FILE lies
	Now func() time.Time // nil means time.Now
}

// A Store is a database with its schema up to date. Its methods may be called
// at once from any number of goroutines. What it has acknowledged is on disk.
type Store struct {
	now func() time.Time
	db  *sqlite.DB
}

// Open opens the database and brings its schema up to date.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.URL == "" {
		c.URL = "sqlite:selvage.db"
	}
	file, err := sqlite.Path(c.URL, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening database: %w", err)
	}
	db, err := sqlite.Open(ctx, sqlite.Config{File: file, Sync: sqlite.Full, Prepare: migrate})
	if err != nil {
		return nil, err
	}
	return &Store{c.Now, db}, nil
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.Ping(ctx); err != nil {
		return fmt.Errorf("asking the database: %w", err)
	}
	return nil
}

// Close commits what is waiting and closes the database.
func (s *Store) Close() error { return s.db.Close() }

// A tx runs queries, in a change or for reading alone.
type tx struct{ sqlite.Tx }

// A scanner is a row.
type scanner = sqlite.Scanner

// read gives a tx for queries that change nothing.
func (s *Store) read() tx { return tx{s.db.Read()} }

// change runs do in a transaction and returns once it is committed and synced to
// disk. An error of do undoes what do did.
func (s *Store) change(ctx context.Context, do func(tx) error) error {
	return s.db.Change(ctx, func(t sqlite.Tx) error { return do(tx{t}) })
}

func isUnique(err error) bool     { return sqlite.IsUnique(err) }
func isForeignKey(err error) bool { return sqlite.IsForeignKey(err) }

// micros turns a time into its column: microseconds since 1970, 0 for no time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// moment turns a column back into a time.
func moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
