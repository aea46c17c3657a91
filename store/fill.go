package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A Filler writes the rows of another database into this one, unchanged. Until [Filler.Finish] is
// called, [Open] refuses the database, because it holds only some of the rows. After an
// interruption, [Filler.Sync] continues the copy.
type Filler struct{ s *Store }

// The table that marks a database as a copy of another one. Its one row holds the state.
const (
	fillTable  = "selvage_filling"
	unfinished = "unfinished"
	finished   = "finished" // complete, and no program has used the database since
)

// FillConfig describes how [OpenFiller] opens a database.
type FillConfig struct {
	Config
	Schema int64 // the version of the schema to create; 0 means the newest
}

// OpenFiller opens a database to fill it, and creates its schema. The database must have no rows, or
// rows that a Filler wrote and that nothing has used since.
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
	if err != nil || !marked {
		return err
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

// CheckWhole returns an error if the snapshot is of an incomplete copy. It is for databases that were
// opened with ReadOnly; [Open] checks all others.
func (s *Snapshot) CheckWhole(ctx context.Context) error {
	marked, err := s.Has(ctx, fillTable)
	if err != nil || !marked {
		return err
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

// fillState returns the state in a fillTable. The state is "" if the table is empty. Older versions
// left an empty table in databases that they refused to fill.
func fillState(ctx context.Context, db *sql.DB) (state string, err error) {
	err = db.QueryRowContext(ctx, `SELECT state FROM `+fillTable).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("reading the state of a copy: %w", err)
	}
	return state, nil
}

// checkFillable returns an error unless the database is empty or a copy that nothing has used. It
// changes nothing, because a database that is not fillable may be in use.
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

// initial are the tables that have rows in a new database.
var initial = []string{"audit_heads", "sequences"}

// requireEmpty returns an error if the database has rows that a new one does not have.
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

// Sync makes the rows of a table equal to those of a snapshot, and returns how many it changed.
// Tables must be synced in the order of [Snapshot.Tables]. Sync calls progress with numbers of
// rows.
func (f *Filler) Sync(
	ctx context.Context, from *Snapshot, t database.Table, progress func(rows int),
) (changed int, err error) {
	changed, err = f.merge(ctx, from, t, progress)
	if !isUnique(err) {
		return changed, err
	}
	// Rows have exchanged unique values, so they cannot be updated one after the other.
	return changed, f.Load(ctx, t, from.Rows(ctx, t), func(int) {})
}

// merge reads the rows of both databases in the same order. The first pass deletes rows that the
// source does not have, so that they cannot conflict with the rows that the second pass writes.
func (f *Filler) merge(
	ctx context.Context, from *Snapshot, t database.Table, progress func(rows int),
) (changed int, err error) {
	for _, deletes := range []bool{true, false} {
		p := pass{deletes: deletes, w: f.writer(t, func(int) {}), progress: progress}
		err := f.s.Snapshot(ctx, func(here *Snapshot) error {
			return compare(t, from.Rows(ctx, t), here.Rows(ctx, t), func(want, have Row) error {
				return p.compared(ctx, want, have)
			})
		})
		if err == nil {
			err = p.w.flush(ctx)
		}

		changed += p.changed
		if err != nil {
			return changed, err
		}
		if p.different == 0 {
			break // the second pass would find nothing
		}
	}
	return changed, nil
}

// A pass of merge deletes rows, or writes them.
type pass struct {
	deletes            bool
	w                  *rowWriter
	progress           func(rows int)
	changed, different int // rows that this pass changed, and rows for the next one
}

// compared handles one row: want is its content in the source, and have its content here. Either
// may be nil.
func (p *pass) compared(ctx context.Context, want, have Row) error {
	if want != nil && p.deletes {
		p.progress(1)
	}
	switch {
	case want != nil && have != nil && slices.Equal(want, have):
		return nil
	case p.deletes && want != nil:
		p.different++
		return nil
	}

	p.changed++
	switch {
	case want == nil:
		return p.w.delete(ctx, have)
	case have == nil:
		return p.w.insert(ctx, want)
	}
	return p.w.update(ctx, want)
}

// compare calls do for each row of a table in either of two databases, in the order of their keys.
// A row that is missing in one database is passed as nil.
func compare(t database.Table, left, right iter.Seq2[Row, error], do func(left, right Row) error) error {
	nextLeft, stopLeft := iter.Pull2(left)
	defer stopLeft()
	nextRight, stopRight := iter.Pull2(right)
	defer stopRight()
	order := orderOf(t)

	l, err := pull(nextLeft)
	if err != nil {
		return err
	}
	r, err := pull(nextRight)
	if err != nil {
		return err
	}
	for l != nil || r != nil {
		which := 0
		switch {
		case l == nil:
			which = 1
		case r == nil:
			which = -1
		default:
			which = order(l, r)
		}

		switch {
		case which < 0:
			err = do(l, nil)
		case which > 0:
			err = do(nil, r)
		default:
			err = do(l, r)
		}
		if err == nil && which <= 0 {
			l, err = pull(nextLeft)
		}
		if err == nil && which >= 0 {
			r, err = pull(nextRight)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func pull(next func() (Row, error, bool)) (Row, error) {
	row, err, ok := next()
	if !ok {
		return nil, nil
	}
	return row, err
}

// orderOf returns a function that compares rows by the columns that identify them.
func orderOf(t database.Table) func(a, b Row) int {
	var at []int
	for _, name := range identity(t) {
		at = append(at, slices.Index(t.Names(), name))
	}
	return func(a, b Row) int {
		for _, i := range at {
			if c := compareValues(a[i], b[i]); c != 0 {
				return c
			}
		}
		return 0
	}
}

// compareValues compares two values of a column that identifies rows. NULL equals the empty text.
func compareValues(a, b any) int {
	if x, ok := a.(int64); ok {
		y, _ := b.(int64)
		return cmp.Compare(x, y)
	}
	x, _ := a.(string)
	y, _ := b.(string)
	return strings.Compare(x, y)
}

// fillBatch is the number of rows that a Filler writes in one transaction.
const fillBatch = 500

// A rowWriter collects changes to a table and writes them in transactions.
type rowWriter struct {
	f                    *Filler
	insertSQL, updateSQL string
	deleteSQL            string
	keys                 []int
	pending              []statement
	progress             func(rows int)
	thing                string
}

type statement struct {
	query string
	args  []any
}

func (f *Filler) writer(t database.Table, progress func(rows int)) *rowWriter {
	names := t.Names()
	w := &rowWriter{f: f, progress: progress, thing: t.Name}
	places := make([]string, len(names))
	sets := make([]string, len(names))
	for i, name := range names {
		places[i] = fmt.Sprintf("$%d", i+1)
		sets[i] = fmt.Sprintf(`"%s" = $%d`, name, i+1)
	}
	where, only := make([]string, 0), make([]string, 0)
	for _, name := range identity(t) {
		i := slices.Index(names, name)
		w.keys = append(w.keys, i)
		// NULL can identify a row, too.
		is := `("%[1]s" = $%[2]d OR "%[1]s" IS NULL AND $%[2]d IS NULL)`
		if len(t.Key) > 0 {
			is = `"%[1]s" = $%[2]d`
		}
		where = append(where, fmt.Sprintf(is, name, i+1))
		only = append(only, fmt.Sprintf(is, name, len(w.keys)))
	}

	table := `"` + t.Name + `"`
	w.insertSQL = `INSERT INTO ` + table + ` (` + quoted(names) + `) VALUES (` + strings.Join(places, ", ") + `)`
	w.updateSQL = `UPDATE ` + table + ` SET ` + strings.Join(sets, ", ") + ` WHERE ` + strings.Join(where, " AND ")
	w.deleteSQL = `DELETE FROM ` + table + ` WHERE ` + strings.Join(only, " AND ")
	return w
}

func (w *rowWriter) insert(ctx context.Context, row Row) error {
	return w.add(ctx, statement{w.insertSQL, slices.Clone(row)})
}

func (w *rowWriter) update(ctx context.Context, row Row) error {
	return w.add(ctx, statement{w.updateSQL, slices.Clone(row)})
}

func (w *rowWriter) delete(ctx context.Context, row Row) error {
	args := make([]any, len(w.keys))
	for i, at := range w.keys {
		args[i] = row[at]
	}
	return w.add(ctx, statement{w.deleteSQL, args})
}

func (w *rowWriter) add(ctx context.Context, s statement) error {
	if w.pending = append(w.pending, s); len(w.pending) < fillBatch {
		return nil
	}
	return w.flush(ctx)
}

// flush writes the pending changes.
func (w *rowWriter) flush(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	err := w.f.s.db.Change(ctx, func(t database.Tx) error {
		for _, s := range w.pending {
			if err := t.Later(ctx, s.query, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing table %s: %w", w.thing, err)
	}
	w.progress(len(w.pending))
	w.pending = w.pending[:0]
	return nil
}

// endingYears is how long the revocation made by a restore is kept. No token lives longer.
const endingYears = 10

// EndAll ends all existing logins, grants, tokens and links, and revokes the tokens issued until
// the given time. It is called after a restore, because the restored database does not know which
// of them were used or revoked after the backup.
//
// Passwords, API keys, recovery codes and redeemed codes are left unchanged.
func (s *Store) EndAll(ctx context.Context, until time.Time) error {
	now := micros(until)
	e := audit.Of("installation.restored", "", "installation", "")
	return s.change(ctx, e, func(t tx) error {
		for _, end := range []statement{
			{`UPDATE login_sessions SET ended = $1 WHERE ended = 0`, []any{now}},
			{`UPDATE grants SET revoked = $1 WHERE revoked = 0`, []any{now}},
			{`UPDATE families SET revoked = 1 WHERE revoked = 0`, nil},
			{`UPDATE operator_sessions SET ended = $1 WHERE ended = 0`, []any{now}},
			{`DELETE FROM mail_links`, nil},
			{`DELETE FROM operator_links`, nil},
			// A new epoch invalidates the marks of known devices. Its number was never used for any
			// subscriber.
			{`UPDATE subscribers SET epoch = $1`, []any{now}},
			// The codes of authenticator apps can be used only once.
			{`UPDATE totps SET step = $1 WHERE step < $1`, []any{until.Unix() / totpSeconds}},
		} {
			if err := t.Later(ctx, end.query, end.args...); err != nil {
				return fmt.Errorf("ending logins and tokens: %w", err)
			}
		}
		return t.revoke(ctx, revocation.Revocation{
			Kind: revocation.Installation, Until: until, Expires: until.AddDate(endingYears, 0, 0)})
	})
}

// totpSeconds is the length of a step of authenticator apps (RFC 6238, section 4).
const totpSeconds = 30

// DropMedia marks the recordings with the given media keys as deleted. Their media were deleted
// while a backup was written.
func (f *Filler) DropMedia(ctx context.Context, keys []string, at time.Time) error {
	for some := range slices.Chunk(keys, fillBatch) {
		err := f.s.db.Change(ctx, func(t database.Tx) error {
			for _, key := range some {
				err := t.Later(ctx, `UPDATE recordings SET deleted = $2, updated = $2
					WHERE COALESCE(media_key, id) = $1 AND deleted = 0`, key, micros(at))
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("marking deleted recordings: %w", err)
		}
	}
	return nil
}
