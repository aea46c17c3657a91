package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// awkward is a text that a careless encoding would change.
const awkward = "ü \"quoted\" \\ \n\t\u2028 'x' <&> 𝄞"

// fillEveryTable adds rows to every table of the schema. All columns that refer to other rows hold
// the same ids, so that every reference is valid. In the last row, each column that may be NULL is
// NULL.
func fillEveryTable(t *testing.T, s *Store) (tables int) {
	t.Helper()
	nullable := nullableColumns(t)
	var inserts []statement
	err := s.Snapshot(t.Context(), func(snapshot *Snapshot) error {
		for _, table := range tablesOf(t, snapshot) {
			for i := range 3 {
				row := make(Row, len(table.Columns))
				for c, column := range table.Columns {
					switch {
					case i == 2 && nullable[table.Name+"."+column.Name]:
					case column.Integer:
						row[c] = int64(1)<<62 - int64(i)
					case strings.HasSuffix(column.Name, "id") || column.Name == "sid":
						row[c] = fmt.Sprint("id ", i)
					default:
						row[c] = fmt.Sprint(awkward, i)
					}
				}
				inserts = append(inserts, statement{(&Filler{s}).writer(table, func(int) {}).insertSQL, row})
			}
		}
		tables = len(tablesOf(t, snapshot))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	err = s.db.Change(t.Context(), func(d database.Tx) error {
		for _, insert := range inserts {
			if _, err := d.Exec(t.Context(), insert.query, insert.args...); err != nil {
				return fmt.Errorf("%s: %w", insert.query, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

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
	scan := func(row scanner) (name string, err error) { return name, row.Scan(&name) }
	names, err := gather(t.Context(), s.read(), "listing columns", scan, `SELECT m.name || '.' || c.name
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
	all := make(map[string]string)
	err := s.Snapshot(t.Context(), func(snapshot *Snapshot) error {
		for _, table := range tablesOf(t, snapshot) {
			for row, err := range snapshot.Rows(t.Context(), table) {
				if err != nil {
					return err
				}
				all[table.Name] += fmt.Sprintf("%q\n", row)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func requireEqual(t *testing.T, got, want map[string]string) {
	t.Helper()
	for table, rows := range want {
		if got[table] != rows {
			t.Errorf("table %s:\n%s\nwant\n%s", table, got[table], rows)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tables with rows, want %d", len(got), len(want))
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

// TestFillEveryTable copies rows of every table from each database to each other, by loading and by
// syncing. Both copies are equal to the source.
func TestFillEveryTable(t *testing.T) {
	EachDatabase(t, func(t *testing.T, source Config) {
		from := opened(t, source)
		tables := fillEveryTable(t, from)
		want := contents(t, from)
		if len(want) != tables {
			t.Fatalf("%d of %d tables have rows", len(want), tables)
		}

		EachDatabase(t, func(t *testing.T, target Config) {
			f := filler(t, target)
			if changed := syncAll(t, from, f); changed == 0 {
				t.Error("the first sync changes nothing")
			}
			requireEqual(t, contents(t, f.Store()), want)
			if changed := syncAll(t, from, f); changed != 0 {
				t.Errorf("a sync of equal databases changes %d rows", changed)
			}
		})

		EachDatabase(t, func(t *testing.T, target Config) {
			f := filler(t, target)
			err := from.Snapshot(t.Context(), func(snapshot *Snapshot) error {
				for _, table := range tablesOf(t, snapshot) {
					if err := f.Load(t.Context(), table, snapshot.Rows(t.Context(), table), func(int) {}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			requireEqual(t, contents(t, f.Store()), want)
		})
	})
}

func filler(t *testing.T, c Config) *Filler {
	t.Helper()
	f, err := OpenFiller(t.Context(), FillConfig{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestSyncFollowsChanges shows that a second sync copies the changes: rows that were added, changed
// and deleted, and unique values that rows have exchanged.
func TestSyncFollowsChanges(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		from, to := opened(t, Config{Dir: t.TempDir()}), filler(t, c)
		project := func(id string) {
			runSQL(t, from, `INSERT INTO projects (id, name, record_rate, created, updated)
				VALUES ($1, $1, 0, 0, 0)`, id)
		}
		person := func(id, project, email string) {
			runSQL(t, from, `INSERT INTO subscribers (id, project_id, email, created, updated)
				VALUES ($1, $2, $3, 0, 0)`, id, project, email)
		}
		for _, id := range []string{"a", "b", "c"} {
			project(id)
			person(id+"1", id, "one")
			person(id+"2", id, "two")
		}
		syncAll(t, from, to)

		runSQL(t, from, `DELETE FROM projects WHERE id = 'a'`)
		runSQL(t, from, `UPDATE projects SET name = 'other' WHERE id = 'b'`)
		runSQL(t, from, `UPDATE subscribers SET email = 'x' WHERE id = 'b1'`)
		runSQL(t, from, `UPDATE subscribers SET email = 'one' WHERE id = 'b2'`)
		runSQL(t, from, `UPDATE subscribers SET email = 'two' WHERE id = 'b1'`)
		project("d")
		person("d1", "d", "one")
		if changed := syncAll(t, from, to); changed == 0 || changed > 10 {
			t.Errorf("the second sync changes %d rows", changed)
		}
		requireEqual(t, contents(t, to.Store()), contents(t, from))
	})
}

// TestFillGuards shows that a database in use cannot be filled, and that a database that is being
// filled cannot be used.
func TestFillGuards(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		c.Dir = t.TempDir() // the prepared database is not needed
		used := opened(t, c)
		runSQL(t, used, `INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('a', 'a', 0, 0, 0)`)
		_, err := OpenFiller(t.Context(), FillConfig{Config: c})
		if !errors.Is(err, problem.Conflict) {
			t.Errorf("filling a database in use = %v, want a conflict", err)
		}
		runSQL(t, used, `DELETE FROM projects`)
		if err := used.Close(); err != nil {
			t.Fatal(err)
		}

		f, err := OpenFiller(t.Context(), FillConfig{Config: c})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		var unfit *database.Unfit
		_, err = Open(t.Context(), c)
		if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "unfinished copy") {
			t.Errorf("opening an unfinished copy = %v", err)
		}

		again := filler(t, c)
		if err := errors.Join(again.Finish(t.Context()), again.Close()); err != nil {
			t.Fatal(err)
		}
		s := opened(t, c)
		runSQL(t, s, `INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('a', 'a', 0, 0, 0)`)
		if _, err := OpenFiller(t.Context(), FillConfig{Config: c}); !errors.Is(err, problem.Conflict) {
			t.Errorf("filling a copy that was used = %v, want a conflict", err)
		}
	})
}

// TestRefusedFillChangesNothing shows that a database in use stays usable, and keeps its schema, when
// a Filler refuses it.
func TestRefusedFillChangesNothing(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		c.Dir = t.TempDir()
		s := opened(t, c)
		runSQL(t, s, `INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('a', 'a', 0, 0, 0)`)
		reopens := func(after string) {
			t.Helper()
			again, err := Open(t.Context(), c)
			if err != nil {
				t.Fatalf("Open after %s = %v", after, err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		refused := func() {
			t.Helper()
			if _, err := OpenFiller(t.Context(), FillConfig{Config: c}); !errors.Is(err, problem.Conflict) {
				t.Fatalf("OpenFiller = %v, want a conflict", err)
			}
		}
		refused()
		reopens("a refused OpenFiller")
		refused()

		runSQL(t, s, `CREATE TABLE `+fillTable+` (state TEXT NOT NULL)`) // as earlier versions did
		refused()
		reopens("an older version refused to fill the database")

		newer := c
		newer.migrations = fstest.MapFS{"migrations/00001_none.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")},
			"migrations/09999_new.sql": {Data: []byte("-- +goose Up\nCREATE TABLE new_table (id TEXT);\n")}}
		if _, err := OpenFiller(t.Context(), FillConfig{Config: newer}); !errors.Is(err, problem.Conflict) {
			t.Fatalf("OpenFiller of a newer version = %v, want a conflict", err)
		}
		reopens("a newer version refused to fill the database")
	})
}

// TestSnapshotIsStable shows that a snapshot does not see later changes.
func TestSnapshotIsStable(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		add := func(id string) {
			runSQL(t, s, `INSERT INTO projects (id, name, record_rate, created, updated) VALUES ($1, $1, 0, 0, 0)`, id)
		}
		add("a")
		err := s.Snapshot(t.Context(), func(snapshot *Snapshot) error {
			add("b")
			at := slices.IndexFunc(tablesOf(t, snapshot), func(t database.Table) bool { return t.Name == "projects" })
			n := 0
			for _, err := range snapshot.Rows(t.Context(), tablesOf(t, snapshot)[at]) {
				if err != nil {
					return err
				}
				n++
			}
			if n != 1 {
				t.Errorf("the snapshot has %d projects, want 1", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		err = s.Snapshot(ctx, func(snapshot *Snapshot) error {
			next, stop := iter.Pull2(snapshot.Rows(ctx, tablesOf(t, snapshot)[0]))
			defer stop()
			cancel()
			for _, err, ok := next(); ok; _, err, ok = next() {
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		if err == nil {
			t.Error("a snapshot continues after its context was canceled")
		}
	})
}

// TestEndAll shows that EndAll ends everything that could have been used or revoked after a backup.
func TestEndAll(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		fillEveryTable(t, s)
		for _, query := range []string{
			`UPDATE login_sessions SET ended = 0`, `UPDATE grants SET revoked = 0`, `UPDATE families SET revoked = 0`,
			`UPDATE operator_sessions SET ended = 0`, `UPDATE totps SET step = 0`,
		} {
			runSQL(t, s, query)
		}
		runSQL(t, s, `DELETE FROM revocations`)
		runSQL(t, s, `DELETE FROM audit`)
		runSQL(t, s, `UPDATE sequences SET value = 0`)

		until := time.UnixMicro(1_800_000_000_000_000)
		if err := s.EndAll(t.Context(), until); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			`SELECT COUNT(*) FROM login_sessions WHERE ended = 0`,
			`SELECT COUNT(*) FROM grants WHERE revoked = 0`,
			`SELECT COUNT(*) FROM families WHERE revoked = 0`,
			`SELECT COUNT(*) FROM operator_sessions WHERE ended = 0`,
			`SELECT COUNT(*) FROM mail_links`, `SELECT COUNT(*) FROM operator_links`,
			`SELECT COUNT(*) FROM totps WHERE step <> 60000000`,
			`SELECT COUNT(*) FROM subscribers WHERE epoch <> 1800000000000000`,
			`SELECT 1 - COUNT(*) FROM revocations WHERE kind = 'installation' AND until = 1800000000000000`,
			`SELECT 1 - COUNT(*) FROM audit WHERE action = 'installation.restored'`,
		} {
			var n int
			if err := s.read().Row(t.Context(), query).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s = %d, %v, want 0", query, n, err)
			}
		}
	})
}
