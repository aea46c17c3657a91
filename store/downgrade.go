package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// A Downgrade describes the consequences of a return to an older version of selvage.
type Downgrade struct {
	Current int64 // the schema of the database
	Schema  int64 // the older schema: the schema of the copy or, without a copy, the schema before Current
	Copy    string
	// Until is the time of the last audited change in the copy. Lost is the number of audited
	// changes after it.
	Until time.Time
	Lost  int
	// Breaking lists the changes between the two schemas that a running older version may not
	// expect.
	Breaking []string
}

// CheckDowngrade describes a return to the schema from before the last update. It changes nothing.
// For an SQLite database, it opens and reads the copy that was made at that time.
func CheckDowngrade(ctx context.Context, c Config) (d Downgrade, err error) {
	r, known, err := Look(ctx, c)
	if err != nil {
		return d, err
	}
	d.Current = r.Schema
	d.Schema = max(min(r.Schema, known)-1, 0)
	c.ReadOnly = true
	if r.File != "" {
		d.Copy = Before(r.File)
	}

	if d.Copy != "" {
		copied := c
		if copied.Dir, err = filepath.Abs(filepath.Dir(d.Copy)); err != nil {
			return d, fmt.Errorf("finding the copy: %w", err)
		}

		copied.URL = "sqlite:" + filepath.Base(d.Copy)
		older, _, err := Look(ctx, copied)
		if err != nil {
			return d, fmt.Errorf("reading the copy: %w", err)
		}

		last, err := lastEvent(ctx, copied)
		if err != nil {
			return d, fmt.Errorf("reading the copy: %w", err)
		}

		if d.Lost, err = eventsAfter(ctx, c, last.id); err != nil {
			return d, err
		}
		d.Schema = older.Schema
		d.Until = last.at
	}

	files := c.migrations
	if files == nil {
		files = migrations
	}
	d.Breaking, err = breaking(files, d.Schema, d.Current)
	return d, err
}

// A trailEvent is an event of the audit trail.
type trailEvent struct {
	id string
	at time.Time
}

// lastEvent returns the last event of a database's audit trail.
func lastEvent(ctx context.Context, c Config) (e trailEvent, err error) {
	err = readOnly(ctx, c, func(s *Snapshot) error {
		var at int64
		err := s.Row(ctx, `SELECT COALESCE(MAX(id), ''), COALESCE(MAX(at), 0) FROM audit`).Scan(&e.id, &at)
		if err != nil {
			return err
		}
		e.at = time.UnixMicro(at).UTC()
		return nil
	})
	return e, err
}

// eventsAfter counts the events of a database's audit trail that follow the event with the given
// id.
func eventsAfter(ctx context.Context, c Config, id string) (n int, err error) {
	err = readOnly(ctx, c, func(s *Snapshot) error {
		return s.Row(ctx, `SELECT COUNT(*) FROM audit WHERE id > $1`, id).Scan(&n)
	})
	return n, err
}

// readOnly calls read with a snapshot of a database, which may have an older schema.
func readOnly(ctx context.Context, c Config, read func(*Snapshot) error) (err error) {
	s, err := Open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Snapshot(ctx, read)
}

// additive matches the statements that add to a schema without changing what an older version reads
// or writes: tables, rows, columns that have a default or may be null, and indexes that are not
// unique.
var additive = regexp.MustCompile(`(?is)^(CREATE TABLE|CREATE INDEX|INSERT INTO|` +
	`ALTER TABLE \S+ ADD COLUMN \S+ \S+( NOT NULL DEFAULT \S+)?$)`)

// uniqueOn matches the creation of a unique index, and captures the name of the table. The index is
// additive, too, if the same migration creates the table.
var uniqueOn = regexp.MustCompile(`(?is)^CREATE UNIQUE INDEX \S+ ON (\S+)`)

// breaking returns the statements between two versions of the schema that are not additive.
func breaking(dir fs.FS, from, to int64) (found []string, err error) {
	files, err := fs.Glob(dir, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("reading migrations: %w", err)
	}

	for _, file := range files {
		version, err := goose.NumericComponent(file)
		if err != nil {
			return nil, fmt.Errorf("reading migrations: %w", err)
		}
		if version <= from || version > to {
			continue
		}
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, fmt.Errorf("reading migrations: %w", err)
		}

		created := make(map[string]bool)
		for _, statement := range statements(string(text)) {
			if name, ok := strings.CutPrefix(statement, "CREATE TABLE "); ok {
				created[strings.Fields(name)[0]] = true
			}
			on := uniqueOn.FindStringSubmatch(statement)
			if additive.MatchString(statement) || on != nil && created[on[1]] {
				continue
			}
			found = append(found, fmt.Sprintf("schema %d: %s", version, statement))
		}
	}
	return found, nil
}

// comment matches a comment of SQL.
var comment = regexp.MustCompile(`--[^\n]*`)

// statements returns the statements of a migration on one line each, without comments.
func statements(text string) (found []string) {
	for part := range strings.SplitSeq(comment.ReplaceAllString(text, ""), ";") {
		if statement := strings.Join(strings.Fields(part), " "); statement != "" {
			found = append(found, statement)
		}
	}
	return slices.Clip(found)
}
