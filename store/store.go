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
	"math/rand/v2"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
)

// Config says which database to open.
type Config struct {
	URL   string           // sqlite:FILE or postgres://…; "" means sqlite:selvage.db
	Dir   string           // where a relative FILE lies
	Pool  int              // connections to PostgreSQL, at most; 0 means 16
	Now   func() time.Time // nil means time.Now
	Check time.Duration    // how long a file is looked through for damage before it is used

	Patience time.Duration // how long a query may take on PostgreSQL; 0 means 5 s

	Audit *audit.Key // of the audit chains; nil means that AuditBy is called before anything is changed

	ReadOnly bool // the database is read as it is: nothing is made or changed
}

// A Store is a database whose schema is up to date. Its parts each hold the rows of one noun.
// All methods are safe for concurrent use. A change is on disk once its method has returned.
type Store struct {
	*core

	*Audit
	*Certificates
	*Clients
	*Factors
	*Families
	*Grants
	*Keys
	*Letters
	*Links
	*Logins
	*Logouts
	*Operators
	*Presence
	*Projects
	*Recordings
	*Resources
	*Revocations
	*Ring
	*Subscribers
	*Webhooks
}

// newStore returns a Store whose parts share c.
func newStore(c *core) *Store {
	return &Store{
		core:         c,
		Audit:        &Audit{c},
		Certificates: &Certificates{c},
		Clients:      &Clients{c},
		Factors:      &Factors{c},
		Families:     &Families{c},
		Grants:       &Grants{c},
		Keys:         &Keys{c},
		Letters:      &Letters{c},
		Links:        &Links{c},
		Logins:       &Logins{c},
		Logouts:      &Logouts{c},
		Operators:    &Operators{c},
		Presence:     &Presence{c},
		Projects:     &Projects{c},
		Recordings:   &Recordings{c},
		Resources:    &Resources{c},
		Revocations:  &Revocations{c},
		Ring:         &Ring{c},
		Subscribers:  &Subscribers{c},
		Webhooks:     &Webhooks{c},
	}
}

// Open opens the database and brings its schema up to date.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := newStore(&core{now: c.Now, lanes: 1})
	d, err := c.database()
	if err != nil {
		return nil, err
	}
	d.Prepare = func(ctx context.Context, db *sql.DB, dialect database.Dialect) (err error) {
		s.from, err = migrate(ctx, db, dialect)
		return err
	}
	db, err := database.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	s.db = db
	if database.IsServer(c.URL) {
		s.lanes = serverLanes
		s.turn.Store(rand.Uint64N(serverLanes)) // so that nodes are not in step
	}
	s.auditKey.Store(c.Audit)
	if !c.ReadOnly {
		if err := s.SealAudit(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return s, nil
}

// serverLanes is how many lanes of audit events there are on PostgreSQL.
const serverLanes = 16

// database says how the database is opened, or looked at. Sessions may be kept in the
// same one, and have been there first.
func (c Config) database() (d database.Config, err error) {
	known, err := knownSchema()
	if err != nil {
		return d, err
	}
	if c.URL == "" {
		c.URL = "sqlite:selvage.db"
	}
	return database.Config{
		URL: c.URL, Dir: c.Dir, Pool: c.Pool, Sync: database.Full, Patience: c.Patience,
		Ours: database.IsOurs, Check: c.Check,
		Schema: known, ReadOnly: c.ReadOnly,
	}, nil
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

// Clock returns the current time on the database's machine.
func (s *Store) Clock(ctx context.Context) (time.Time, error) { return s.clock(ctx) }

// Stats returns how busy the database is.
func (s *Store) Stats() database.Stats { return s.db.Stats() }

func isUnique(err error) bool     { return database.IsUnique(err) }
func isForeignKey(err error) bool { return database.IsForeignKey(err) }

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
