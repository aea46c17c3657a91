package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// awkward is a text that a careless encoding would change.
const awkward = "ü \"quoted\" \\ \n\t\u2028 'x' <&> 𝄞"

// fillEveryTable adds three rows to every table of the schema, and returns the number of tables.
// In the last row of each table, the columns that may be NULL are NULL.
func fillEveryTable(t *testing.T, s *Store) int {
	t.Helper()
	nullable := nullableColumns(t)
	var tables []database.Table
	err := s.Snapshot(t.Context(), func(snapshot *Snapshot) error {
		tables = tablesOf(t, snapshot)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	err = s.db.Change(t.Context(), func(tx database.Tx) error {
		for _, table := range tables {
			for number := range 3 {
				row := exampleRow(table, number, nullable)
				insert := (&Filler{s}).writer(table, func(int) {}).insertSQL
				if _, err := tx.Exec(t.Context(), insert, row...); err != nil {
					return fmt.Errorf("%s: %w", insert, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(tables)
}

// exampleRow returns the row with the given number, from 0 to 2.
func exampleRow(table database.Table, number int, nullable map[string]bool) Row {
	row := make(Row, len(table.Columns))
	for i, column := range table.Columns {
		if number == 2 && nullable[table.Name+"."+column.Name] {
			continue
		}
		row[i] = exampleValue(column, number)
	}
	return row
}

// exampleValue returns the value of a column in the row with the given number. All columns with ids
// have the same value in a row, so that every reference to another table is valid.
func exampleValue(column database.Column, number int) any {
	switch {
	case column.Integer:
		return int64(1)<<62 - int64(number)
	case strings.HasSuffix(column.Name, "id") || column.Name == "sid":
		return fmt.Sprint("id ", number)
	default:
		return fmt.Sprint(awkward, number)
	}
}

// runSQL runs a statement that writes no event.
func runSQL(t *testing.T, s *Store, query string, args ...any) {
	t.Helper()
	err := s.once(t.Context(), audit.None("a test"), func(tx tx) error {
		_, err := tx.Exec(t.Context(), query, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// addProject adds a project with an id that is also its name.
func addProject(t *testing.T, s *Store, id string) {
	t.Helper()
	runSQL(t, s, `INSERT INTO projects (id, name, record_rate, created, updated) VALUES ($1, $1, 0, 0, 0)`, id)
}

// addPerson adds a subscriber.
func addPerson(t *testing.T, s *Store, id, projectID, email string) {
	t.Helper()
	runSQL(t, s, `INSERT INTO subscribers (id, project_id, email, created, updated)
		VALUES ($1, $2, $3, 0, 0)`, id, projectID, email)
}

func tablesOf(t *testing.T, s *Snapshot) []database.Table {
	t.Helper()
	tables, err := s.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// nullableColumns returns the columns that may be NULL, as table.column.
func nullableColumns(t *testing.T) map[string]bool {
	t.Helper()
	s := opened(t, Config{Dir: t.TempDir()})
	names, err := gather(t.Context(), s.read(), "listing columns", scanID, `SELECT m.name || '.' || c.name
		FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c."notnull" = 0 AND c.pk = 0`)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, name := range names {
		found[name] = true
	}
	return found
}

// contents returns all rows of all tables as text.
func contents(t *testing.T, s *Store) map[string]string {
	t.Helper()
	tables := make(map[string]string)
	err := s.Snapshot(t.Context(), func(snapshot *Snapshot) error {
		for _, table := range tablesOf(t, snapshot) {
			for row, err := range snapshot.Rows(t.Context(), table) {
				if err != nil {
					return err
				}
				tables[table.Name] += fmt.Sprintf("%q\n", row)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// requireEqual fails the test unless two databases have the same contents.
func requireEqual(t *testing.T, got, want map[string]string) {
	t.Helper()
	for table, rows := range want {
		if got[table] != rows {
			t.Errorf("table %s:\n%s\nwant\n%s", table, got[table], rows)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d tables with rows, want %d", len(got), len(want))
	}
}

// syncAll syncs all tables and returns how many rows it changed.
func syncAll(t *testing.T, from *Store, to *Filler) (changed int) {
	t.Helper()
	err := from.Snapshot(t.Context(), func(snapshot *Snapshot) error {
		for _, table := range tablesOf(t, snapshot) {
			n, err := to.Sync(t.Context(), snapshot, table, func(int) {})
			if err != nil {
				return err
			}
			changed += n
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// filler opens a database to fill it, and closes it at the end of the test.
func filler(t *testing.T, c Config) *Filler {
	t.Helper()
	f, err := OpenFiller(t.Context(), FillConfig{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// requireRefused fails the test unless the database is refused as a database in use.
func requireRefused(t *testing.T, c Config) {
	t.Helper()
	if _, err := OpenFiller(t.Context(), FillConfig{Config: c}); !errors.Is(err, problem.Conflict) {
		t.Fatalf("OpenFiller = %v, want a conflict", err)
	}
}

// reopen opens and closes a database, to show that it is usable.
func reopen(t *testing.T, c Config) {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
