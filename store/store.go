// Package store keeps the rows of a database: everything that must survive a restart.
//
// Queries are written once, in the SQL that SQLite and PostgreSQL share: $1 parameters, ON
// CONFLICT, RETURNING, and times as BIGINT microseconds. Constraints of the database ensure that
// values are unique and that each thing happens only once; the Go code does not check first. This
// package contains no rules. The rules are in packages such as fabric, idp and recordings, whose
// interfaces the parts of a [Store] implement.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
)

// Config describes the database to open.
type Config struct {
	URL   string           // sqlite:FILE or postgres://…; "" means sqlite:selvage.db
	Dir   string           // the directory that contains FILE, if its path is relative
	Pool  int              // maximum number of connections to PostgreSQL; 0 means 16
	Now   func() time.Time // nil means time.Now
	Check time.Duration    // maximum time for checking an SQLite file for damage before it is used

	Patience time.Duration // maximum time for a query on PostgreSQL; 0 means 5 s

	Audit *audit.Key // authenticates the audit trail; if nil, AuditBy must be called before the first change

	ReadOnly bool // open the database as it is, without creating or changing anything

	// Wrap returns the database through which rows are read and changed once the schema is up to
	// date. nil means the database itself.
	Wrap func(database.DB) database.DB

	migrations fs.FS // nil means the migrations of this package
	schema     int64 // the version of the schema to create; 0 means the newest
	filling    bool  // the database is opened by a Filler
}

// A Store is a database whose schema is up to date. Each part holds the rows of one kind of object.
// All methods are safe for concurrent use. When a method that changes rows returns, the change is
// on disk.
type Store struct {
	*core
	known int64 // the version of the schema that this binary creates

	*Audit
	*Callbacks
	*Calls
	*Certificates
	*Clients
	*Counts
	*Factors
	*Families
	*Grants
	*Keys
	*Letters
	*Links
	*Logins
	*Logouts
	*Messages
	*Operators
	*Presence
	*Projects
	*Recordings
	*Resources
	*Revocations
	*Ring
	*Rooms
	*Subscribers
	*Upstreams
	*Webhooks
}

// newStore returns a Store whose parts share c.
func newStore(c *core) *Store {
	return &Store{
		core: c,

		Audit:        &Audit{c},
		Callbacks:    &Callbacks{c},
		Calls:        &Calls{c},
		Certificates: &Certificates{c},
		Clients:      &Clients{c},
		Counts:       &Counts{c},
		Factors:      &Factors{c},
		Families:     &Families{c},
		Grants:       &Grants{c},
		Keys:         &Keys{c},
		Letters:      &Letters{c},
		Links:        &Links{c},
		Logins:       &Logins{c},
		Logouts:      &Logouts{c},
		Messages:     &Messages{c},
		Operators:    &Operators{c},
		Presence:     &Presence{c},
		Projects:     &Projects{c},
		Recordings:   &Recordings{c},
		Resources:    &Resources{c},
		Revocations:  &Revocations{c},
		Ring:         &Ring{c},
		Rooms:        &Rooms{c},
		Subscribers:  &Subscribers{c},
		Upstreams:    &Upstreams{c},
		Webhooks:     &Webhooks{c},
	}
}

// serverLanes is the number of lanes of the audit trail on PostgreSQL.
const serverLanes = 16

// Open opens the database and brings its schema up to date.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	d, err := c.database()
	if err != nil {
		return nil, err
	}
	db, err := database.Open(ctx, d)
	if err != nil {
		return nil, err
	}

	if c.Wrap != nil {
		db = c.Wrap(db)
	}

	s := newStore(&core{db: db, now: c.Now, lanes: 1})
	s.known = d.Schema
	if database.IsServer(c.URL) {
		s.lanes = serverLanes
		s.turn.Store(rand.Uint64N(serverLanes)) // each node begins with a random lane
	}

	// Write the codes of lanes without events before the first change.
	s.auditKey.Store(c.Audit)
	if !c.ReadOnly && !c.filling {
		if err := s.SealAudit(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return s, nil
}

// database returns the configuration for opening or describing the database. The database may also
// contain the session store, whose tables may have been created first.
func (c Config) database() (d database.Config, err error) {
	if c.migrations == nil {
		c.migrations = migrations
	}
	known, err := newestSchema(c.migrations)
	if err != nil {
		return d, err
	}
	if c.schema > known {
		return d, newer(c.schema, known)
	}
	known = cmp.Or(c.schema, known)
	if c.URL == "" {
		c.URL = "sqlite:selvage.db"
	}

	return database.Config{
		URL:      c.URL,
		Dir:      c.Dir,
		Pool:     c.Pool,
		Sync:     database.Full,
		Patience: c.Patience,
		Ours:     database.IsOurs,
		Check:    c.Check,
		Schema:   known,
		ReadOnly: c.ReadOnly,
		Prepare: func(ctx context.Context, db *sql.DB, dialect database.Dialect) error {
			if c.filling {
				if err := checkFillable(ctx, db, dialect); err != nil {
					return err
				}
			}
			if err := migrate(ctx, db, dialect, c.migrations, known); err != nil || c.filling {
				return err
			}
			return checkFilled(ctx, db, dialect)
		},
	}, nil
}

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.Ping(ctx); err != nil {
		return fmt.Errorf("querying the database: %w", err)
	}
	return nil
}

// Close writes the counts that have not been written yet, commits the waiting changes and closes
// the database.
func (s *Store) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	return errors.Join(s.FlushCounts(ctx), s.db.Close())
}

// Clock returns the current time on the database's machine.
func (s *Store) Clock(ctx context.Context) (time.Time, error) { return s.clock(ctx) }

// Stats returns statistics about the load of the database.
func (s *Store) Stats() database.Stats { return s.db.Stats() }

// SchemaVersion returns the current version of the schema, and the version that this binary
// creates.
func (s *Store) SchemaVersion(ctx context.Context) (current, known int64, err error) {
	err = s.read().Row(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+database.Versions).Scan(&current)
	if err != nil {
		return 0, 0, fmt.Errorf("reading schema version: %w", err)
	}
	return current, s.known, nil
}

// Look describes the database without changing anything; see [database.Look]. It also returns the
// version of the schema that this binary creates.
func Look(ctx context.Context, c Config) (r database.Report, known int64, err error) {
	d, err := c.database()
	if err != nil {
		return r, 0, err
	}
	r, err = database.Look(ctx, d)
	if err == nil && r.Schema > d.Schema {
		err = newer(r.Schema, d.Schema)
	}
	return r, d.Schema, err
}

// Newest returns when the newest ring key, project, subscriber, login, grant or recording was
// created, by the clock of the node that created it. It returns the zero time if there are none. It
// reads the times in ids, which are UUIDs of version 7 (RFC 9562, section 5.7).
func (s *Store) Newest(ctx context.Context) (newest time.Time, err error) {
	ids, err := gather(ctx, s.read(), "reading the newest ids", scanID, `
		SELECT id FROM (
			SELECT MAX(kid) AS id FROM ring UNION ALL SELECT MAX(id) FROM projects
			UNION ALL SELECT MAX(id) FROM subscribers UNION ALL SELECT MAX(id) FROM login_sessions
			UNION ALL SELECT MAX(id) FROM grants UNION ALL SELECT MAX(id) FROM recordings
		) AS newest WHERE id IS NOT NULL`)
	if err != nil {
		return newest, err
	}

	for _, id := range ids {
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 7 {
			continue
		}
		if created := time.Unix(u.Time().UnixTime()); created.After(newest) {
			newest = created
		}
	}
	return newest, nil
}

// HasRecordings reports whether any recording exists that has not been deleted.
func (s *Store) HasRecordings(ctx context.Context) (has bool, err error) {
	var n int
	err = s.read().Row(ctx, `SELECT COUNT(*) FROM (
		SELECT 1 FROM recordings WHERE deleted = 0 LIMIT 1) AS found`).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("finding recordings: %w", err)
	}
	return n > 0, nil
}
