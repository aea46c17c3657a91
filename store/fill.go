package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// A Filler writes the rows of another database into this one, unchanged. Until [Filler.Finish] is
// called, [Open] refuses the database, because it holds only some of the rows. After an
// interruption, [Filler.Sync] continues the copy.
type Filler struct{ s *Store }

// fillTable marks a database as a copy of another one. Its only row holds the state of the copy.
const (
	fillTable  = "selvage_filling"
	unfinished = "unfinished"
	finished   = "finished" // the copy is complete, and no program has used the database since
)

// FillConfig describes how [OpenFiller] opens a database.
type FillConfig struct {
	Config
	Schema int64 // the version of the schema to create; 0 means the newest
}

// OpenFiller opens a database to fill it, and creates its schema. The database must have no rows,
// or only rows that a Filler wrote and that no program has used since.
func OpenFiller(ctx context.Context, c FillConfig) (_ *Filler, err error) {
	c.schema, c.filling = c.Schema, true
	s, err := Open(ctx, c.Config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()

	f := &Filler{s}
	return f, f.mark(ctx, unfinished)
}

// Store returns the database that is being filled.
func (f *Filler) Store() *Store { return f.s }

// Close closes the database.
func (f *Filler) Close() error { return f.s.Close() }

// Finish records that the copy is complete.
func (f *Filler) Finish(ctx context.Context) error { return f.mark(ctx, finished) }

// Used records that the database is in use, so that no Filler may write to it again.
func (f *Filler) Used(ctx context.Context) error {
	return f.do(ctx, `DROP TABLE IF EXISTS `+fillTable)
}

func (f *Filler) mark(ctx context.Context, state string) error {
	return f.do(ctx, `CREATE TABLE IF NOT EXISTS `+fillTable+` (state TEXT NOT NULL)`,
		`DELETE FROM `+fillTable, `INSERT INTO `+fillTable+` (state) VALUES ('`+state+`')`)
}

// do runs statements in one transaction.
func (f *Filler) do(ctx context.Context, statements ...string) error {
	return f.s.db.Change(ctx, func(t database.Tx) error {
		for _, statement := range statements {
			if _, err := t.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkFilled returns an error if the database is an incomplete copy. If the copy is complete,
// checkFilled records that it is in use.
func checkFilled(ctx context.Context, db *sql.DB, dialect database.Dialect) error {
	marked, err := dialect.HasTable(ctx, db, fillTable)
	if err != nil {
		return err
	}
	if !marked {
		return nil
	}

	state, err := fillState(ctx, db)
	if err != nil {
		return err
	}
	if state == unfinished {
		return errUnfinished
	}

	if _, err = db.ExecContext(ctx, `DROP TABLE `+fillTable); err != nil {
		return fmt.Errorf("using a copy: %w", err)
	}
	return nil
}

var errUnfinished = &database.Unfit{
	Found:  "the database holds an unfinished copy of another one",
	Remedy: "run the command that copies again; it continues where it stopped",
}

// CheckWhole returns an error if the snapshot was taken from an incomplete copy. It is for
// databases that were opened with ReadOnly; [Open] checks all others.
func (s *Snapshot) CheckWhole(ctx context.Context) error {
	marked, err := s.Has(ctx, fillTable)
	if err != nil {
		return err
	}
	if !marked {
		return nil
	}
	var n int
	err = s.Row(ctx, `SELECT COUNT(*) FROM `+fillTable+` WHERE state = $1`, unfinished).Scan(&n)
	if err != nil {
		return fmt.Errorf("reading the state of a copy: %w", err)
	}
	if n > 0 {
		return errUnfinished
	}
	return nil
}

// fillState returns the state in fillTable. The state is "" if the table is empty. Older versions
// left an empty table in databases that they refused to fill.
func fillState(ctx context.Context, db *sql.DB) (state string, err error) {
	err = db.QueryRowContext(ctx, `SELECT state FROM `+fillTable).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("reading the state of a copy: %w", err)
	}
	return state, nil
}

// checkFillable returns an error unless the database is empty or an unused copy. It changes
// nothing, because a database that is not fillable may be in use.
func checkFillable(ctx context.Context, db *sql.DB, dialect database.Dialect) error {
	marked, err := dialect.HasTable(ctx, db, fillTable)
	if err != nil {
		return err
	}
	if marked {
		if state, err := fillState(ctx, db); err != nil || state != "" {
			return err
		}
	}
	return requireEmpty(ctx, db, dialect)
}

// initial lists the tables that have rows in a new database.
var initial = []string{"audit_heads", "sequences"}

// requireEmpty returns an error if the database has rows that a new database does not have.
func requireEmpty(ctx context.Context, db *sql.DB, dialect database.Dialect) error {
	tables, err := dialect.Tables(ctx, db)
	if err != nil {
		return err
	}

	for _, name := range tables {
		if slices.Contains(initial, name) {
			continue
		}
		var n int
		err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM "`+name+`" LIMIT 1) AS found`).Scan(&n)
		if err != nil {
			return fmt.Errorf("reading table %s: %w", name, err)
		}
		if n > 0 {
			return problem.New(problem.Conflict, "not_empty",
				"the database is in use: its table %s has rows", name)
		}
	}
	return nil
}

// Load replaces the rows of a table with the given rows. Tables must be loaded in the order of
// [Snapshot.Tables]. Load calls progress with the number of rows after each transaction.
func (f *Filler) Load(
	ctx context.Context, t database.Table, rows iter.Seq2[Row, error], progress func(rows int),
) error {
	if err := f.clear(ctx, t); err != nil {
		return err
	}
	w := f.writer(t, progress)
	for row, err := range rows {
		if err != nil {
			return err
		}
		if err := w.insert(ctx, row); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// clear deletes all rows of a table, and the rows of other tables that depend on them.
func (f *Filler) clear(ctx context.Context, t database.Table) error {
	if err := f.do(ctx, `DELETE FROM "`+t.Name+`"`); err != nil {
		return fmt.Errorf("clearing table %s: %w", t.Name, err)
	}
	return nil
}
