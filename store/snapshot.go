package store

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// A Row holds the values of a row in the order of its table's columns. Each value is a string, an
// int64 or nil.
type Row = []any

// A Snapshot reads all tables as they were at one point in time. Rows have the same form and order
// on SQLite and on PostgreSQL. Only one table can be read at a time, row by row.
type Snapshot struct{ *database.Snapshot }

// Snapshot calls do with a snapshot of the database. The database can be changed while do runs.
func (s *Store) Snapshot(ctx context.Context, do func(*Snapshot) error) error {
	return s.db.Snapshot(ctx, func(d *database.Snapshot) error { return do(&Snapshot{d}) })
}

// Schema returns the version of the schema.
func (s *Snapshot) Schema(ctx context.Context) (version int64, err error) {
	err = s.Row(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+database.Versions).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("reading schema version: %w", err)
	}
	return version, nil
}

// MasterKey returns the fingerprint of the newest master key, or "" if the first one was never
// replaced.
func (s *Snapshot) MasterKey(ctx context.Context) (fingerprint string, err error) {
	err = s.Row(ctx, `SELECT COALESCE(MAX(fingerprint), '') FROM master_keys
		WHERE generation = (SELECT MAX(generation) FROM master_keys)`).Scan(&fingerprint)
	if err != nil {
		return "", fmt.Errorf("reading the newest master key: %w", err)
	}
	return fingerprint, nil
}

// Count returns the number of rows in the given tables.
func (s *Snapshot) Count(ctx context.Context, tables []database.Table) (rows int, err error) {
	for _, t := range tables {
		var n int
		if err := s.Row(ctx, `SELECT COUNT(*) FROM "`+t.Name+`"`).Scan(&n); err != nil {
			return 0, fmt.Errorf("counting the rows of table %s: %w", t.Name, err)
		}
		rows += n
	}
	return rows, nil
}

// Rows returns the rows of a table, ordered by the columns that identify them. Each row is valid only
// until the next one is read.
func (s *Snapshot) Rows(ctx context.Context, t database.Table) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		err := s.scanRows(ctx, t, func(r Row) bool { return yield(r, nil) })
		if err != nil {
			yield(nil, fmt.Errorf("reading table %s: %w", t.Name, err))
		}
	}
}

// scanRows calls do for each row of a table until do returns false. All calls get the same slice.
func (s *Snapshot) scanRows(ctx context.Context, t database.Table, do func(Row) bool) error {
	found, err := s.Query(ctx, `SELECT `+quoted(t.Names())+` FROM "`+t.Name+`" ORDER BY `+ordering(t))
	if err != nil {
		return err
	}
	defer found.Close()

	row := make(Row, len(t.Columns))
	dest := make([]any, len(row))
	for i := range row {
		dest[i] = &row[i]
	}

	for found.Next() {
		if err := found.Scan(dest...); err != nil {
			return err
		}
		for i, column := range t.Columns {
			if err := checkType(column, row[i]); err != nil {
				return err
			}
		}

		if !do(row) {
			return nil
		}
	}
	return found.Err()
}

// checkType returns an error unless a value has the type of its column, or is NULL.
func checkType(column database.Column, value any) error {
	switch value.(type) {
	case nil:
	case int64:
		if !column.Integer {
			return fmt.Errorf("column %s holds a number", column.Name)
		}
	case string:
		if column.Integer {
			return fmt.Errorf("column %s holds a text", column.Name)
		}
	default:
		return fmt.Errorf("column %s holds a %T", column.Name, value)
	}
	return nil
}

// quoted formats the names of columns for a query.
func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// ordering returns the columns that identify a row, for ORDER BY. SQLite and PostgreSQL sort NULL
// differently, so NULL counts as the empty text.
func ordering(t database.Table) string {
	var columns []string
	for _, name := range identityColumns(t) {
		column := `"` + name + `"`
		if len(t.Key) == 0 && !isInteger(t, name) {
			column = `COALESCE(` + column + `, '')`
		}
		columns = append(columns, column)
	}
	return strings.Join(columns, ", ")
}

// identities maps tables without a primary key to the columns that identify their rows.
var identities = map[string][]string{
	"audit":          {"lane", "seq", "id"},
	"dark_logos":     {"project_id", "client_id"},
	"logos":          {"project_id", "client_id"},
	"operator_roles": {"operator_id", "project_id"},
}

// identityColumns returns the columns that identify the rows of a table.
func identityColumns(t database.Table) []string {
	if len(t.Key) > 0 {
		return t.Key
	}
	return identities[t.Name]
}

// isInteger reports whether a column of a table holds numbers.
func isInteger(t database.Table, column string) bool {
	for _, c := range t.Columns {
		if c.Name == column {
			return c.Integer
		}
	}
	return false
}

// A StoredMedium is the file of a recording, as its row describes it.
type StoredMedium struct {
	Key    string
	Bytes  int64
	SHA256 string // in hex
}

// Media returns the files of all recordings that have one, ordered by their keys.
func (s *Snapshot) Media(ctx context.Context) iter.Seq2[StoredMedium, error] {
	return func(yield func(StoredMedium, error) bool) {
		rows, err := s.Query(ctx, `SELECT DISTINCT COALESCE(media_key, id), bytes, sha256 FROM recordings
			WHERE deleted = 0 AND waits = 0 AND bytes > 0 ORDER BY 1`)
		if err != nil {
			yield(StoredMedium{}, fmt.Errorf("listing media: %w", err))
			return
		}
		defer rows.Close()

		for rows.Next() {
			var m StoredMedium
			err := rows.Scan(&m.Key, &m.Bytes, &m.SHA256)
			if !yield(m, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(StoredMedium{}, fmt.Errorf("listing media: %w", err))
		}
	}
}
