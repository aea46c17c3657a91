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
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Config says which database to open.
type Config struct {
	URL string           // sqlite:FILE; "" means sqlite:selvage.db
	Dir string           // where a relative FILE lies
	Now func() time.Time // nil means time.Now
}

// A Store is a database with its schema up to date. Its methods may be called
// at once from any number of goroutines.
type Store struct {
	now        func() time.Time
	reads      *sql.DB
	readStmts  sync.Map // query to *sql.Stmt
	writer     *sql.DB
	writes     *sql.Conn // SQLite has one writer: one connection, one goroutine
	writeStmts map[string]*sql.Stmt
	queue      chan *change
	closed     chan struct{}
	done       chan struct{}
}

// Open opens the database, brings its schema up to date and starts the writer.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	file, ok := strings.CutPrefix(c.URL, "sqlite:")
	if c.URL == "" {
		file, ok = "selvage.db", true
	}
	if !ok || file == "" {
		return nil, fmt.Errorf("opening database: %q is not sqlite:FILE", redact(c.URL))
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir, file)
	}
	s := &Store{
		now: c.Now, writeStmts: make(map[string]*sql.Stmt),
		queue: make(chan *change, 2*maxBatch), closed: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.open(ctx, file); err != nil {
		return nil, errors.Join(err, s.closePools())
	}
	go s.write()
	return s, nil
}

func (s *Store) open(ctx context.Context, file string) (err error) {
	if s.writer, err = openSQLite(file, ""); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	if err := migrate(ctx, s.writer); err != nil {
		return err
	}
	if s.writes, err = s.writer.Conn(ctx); err != nil {
		return fmt.Errorf("opening %s: %w", file, err)
	}
	if s.reads, err = openSQLite(file, "&_pragma=query_only(1)"); err != nil {
		return err
	}
	s.reads.SetMaxOpenConns(8)
	s.reads.SetMaxIdleConns(8)
	return nil
}

func openSQLite(file, extra string) (*sql.DB, error) {
	pragmas := "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)"
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+pragmas+extra)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	return db, nil
}

// redact takes the password out of a database URL.
func redact(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Redacted()
	}
	return "(unreadable URL)"
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.reads.PingContext(ctx); err != nil {
		return fmt.Errorf("asking the database: %w", err)
	}
	return nil
}

// Close commits what is waiting and closes the database.
func (s *Store) Close() error {
	close(s.closed)
	<-s.done
	return s.closePools()
}

func (s *Store) closePools() (err error) {
	if s.writes != nil {
		err = s.writes.Close()
	}
	if s.writer != nil {
		err = errors.Join(err, s.writer.Close())
	}
	if s.reads != nil {
		err = errors.Join(err, s.reads.Close())
	}
	return err
}

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
