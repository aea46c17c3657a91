package store

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/fstest"
	"time"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// TestFillEveryTable shows that the rows of every table can be copied between databases of the same type
// and of different types, by loading and by syncing.
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
					rows := snapshot.Rows(t.Context(), table)
					if err := f.Load(t.Context(), table, rows, func(int) {}); err != nil {
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

// TestSyncFollowsChanges shows that a second sync copies the changes: rows that were added, changed
// and deleted, and unique values that rows have exchanged.
func TestSyncFollowsChanges(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		from := opened(t, Config{Dir: t.TempDir()})
		to := filler(t, c)
		for _, id := range []string{"a", "b", "c"} {
			addProject(t, from, id)
			addPerson(t, from, id+"1", id, "one")
			addPerson(t, from, id+"2", id, "two")
		}
		syncAll(t, from, to)

		// Deleting a project also deletes its subscribers.
		runSQL(t, from, `DELETE FROM projects WHERE id = 'a'`)
		runSQL(t, from, `UPDATE projects SET name = 'other' WHERE id = 'b'`)

		// Two subscribers exchange their addresses, which are unique.
		runSQL(t, from, `UPDATE subscribers SET email = 'x' WHERE id = 'b1'`)
		runSQL(t, from, `UPDATE subscribers SET email = 'one' WHERE id = 'b2'`)
		runSQL(t, from, `UPDATE subscribers SET email = 'two' WHERE id = 'b1'`)

		addProject(t, from, "d")
		addPerson(t, from, "d1", "d", "one")
		if changed := syncAll(t, from, to); changed == 0 || changed > 10 {
			t.Errorf("the second sync changes %d rows, want 1 to 10", changed)
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
		addProject(t, used, "a")
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

		_, err = Open(t.Context(), c)
		wantUnfit(t, err, "unfinished copy")

		again := filler(t, c)
		if err := again.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		s := opened(t, c)
		addProject(t, s, "a")
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
		addProject(t, s, "a")

		requireRefused(t, c)
		reopen(t, c)
		requireRefused(t, c)

		// Earlier versions left this table in a database that they refused to fill.
		runSQL(t, s, `CREATE TABLE `+fillTable+` (state TEXT NOT NULL)`)
		requireRefused(t, c)
		reopen(t, c)

		newer := c
		newer.migrations = fstest.MapFS{
			"migrations/00001_none.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")},
			"migrations/09999_new.sql":  {Data: []byte("-- +goose Up\nCREATE TABLE new_table (id TEXT);\n")},
		}
		requireRefused(t, newer)
		reopen(t, c)
	})
}

// TestSnapshotIsStable shows that a snapshot does not see later changes.
func TestSnapshotIsStable(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		addProject(t, s, "a")

		err := s.Snapshot(t.Context(), func(snapshot *Snapshot) error {
			addProject(t, s, "b")
			projects := 0
			for _, table := range tablesOf(t, snapshot) {
				if table.Name == "projects" {
					projects = countRows(t, snapshot, table)
				}
			}
			if projects != 1 {
				t.Errorf("the snapshot has %d projects, want 1", projects)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// countRows returns the number of rows that a table has in a snapshot.
func countRows(t *testing.T, s *Snapshot, table database.Table) (n int) {
	t.Helper()
	for _, err := range s.Rows(t.Context(), table) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestSnapshotCanceled shows that a snapshot returns an error if its context is canceled while its
// rows are read.
func TestSnapshotCanceled(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		addProject(t, s, "a")

		ctx, cancel := context.WithCancel(t.Context())
		err := s.Snapshot(ctx, func(snapshot *Snapshot) error {
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
			`UPDATE login_sessions SET ended = 0`,
			`UPDATE grants SET revoked = 0`,
			`UPDATE families SET revoked = 0`,
			`UPDATE operator_sessions SET ended = 0`,
			`UPDATE totps SET step = 0`,
			`DELETE FROM revocations`,
			`DELETE FROM audit`,
			`UPDATE sequences SET value = 0`,
		} {
			runSQL(t, s, query)
		}

		until := time.UnixMicro(1_800_000_000_000_000)
		if err := s.EndAll(t.Context(), until); err != nil {
			t.Fatal(err)
		}

		for _, query := range []string{
			`SELECT COUNT(*) FROM login_sessions WHERE ended = 0`,
			`SELECT COUNT(*) FROM grants WHERE revoked = 0`,
			`SELECT COUNT(*) FROM families WHERE revoked = 0`,
			`SELECT COUNT(*) FROM operator_sessions WHERE ended = 0`,
			`SELECT COUNT(*) FROM mail_links`,
			`SELECT COUNT(*) FROM operator_links`,
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
