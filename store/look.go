package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/database"
)

// Look tells what the database looks like and changes nothing, see [database.Look],
// and the version of the schema that this binary makes.
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

// Newest returns when the newest row was made, by the clock of whoever made it; the
// zero time where there is none. Ids tell: they are UUIDs of version 7 (RFC 9562,
// section 5.7).
func (s *Store) Newest(ctx context.Context) (newest time.Time, err error) {
	scan := func(row scanner) (id string, err error) { return id, row.Scan(&id) }
	ids, err := gather(ctx, s.read(), "reading the newest ids", scan, `
		SELECT id FROM (
			SELECT MAX(kid) AS id FROM ring UNION ALL SELECT MAX(id) FROM projects UNION ALL SELECT MAX(id) FROM subscribers
			UNION ALL SELECT MAX(id) FROM login_sessions UNION ALL SELECT MAX(id) FROM grants UNION ALL SELECT MAX(id) FROM recordings
		) AS newest WHERE id IS NOT NULL`)
	if err != nil {
		return newest, err
	}
	for _, id := range ids {
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 7 {
			continue
		}
		if made := time.Unix(u.Time().UnixTime()); made.After(newest) {
			newest = made
		}
	}
	return newest, nil
}

// HasRecordings reports whether there is any recording whose bytes are kept.
func (s *Store) HasRecordings(ctx context.Context) (has bool, err error) {
	var n int
	if err := s.read().Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM recordings WHERE deleted = 0 LIMIT 1) AS found`).Scan(&n); err != nil {
		return false, fmt.Errorf("looking for recordings: %w", err)
	}
	return n > 0, nil
}
