package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/database"
)

// fillBatch is the maximum number of rows that a Filler writes in one transaction.
const fillBatch = 500

// A rowWriter collects changes to a table and writes them in transactions.
type rowWriter struct {
	f                    *Filler
	insertSQL, updateSQL string
	deleteSQL            string
	keys                 []int // the indexes of the columns that identify a row
	pending              []statement
	progress             func(rows int)
	table                string
}

type statement struct {
	query string
	args  []any
}

func (f *Filler) writer(t database.Table, progress func(rows int)) *rowWriter {
	names := t.Names()
	w := &rowWriter{f: f, progress: progress, table: t.Name}
	places := make([]string, len(names))
	sets := make([]string, len(names))
	for i, name := range names {
		places[i] = fmt.Sprintf("$%d", i+1)
		sets[i] = fmt.Sprintf(`"%s" = $%d`, name, i+1)
	}

	where, only := make([]string, 0), make([]string, 0)
	for _, name := range identityColumns(t) {
		i := slices.Index(names, name)
		w.keys = append(w.keys, i)
		// The columns that identify a row may be NULL, unless they are the primary key.
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
	w.pending = append(w.pending, s)
	if len(w.pending) < fillBatch {
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
		return fmt.Errorf("writing table %s: %w", w.table, err)
	}

	w.progress(len(w.pending))
	w.pending = w.pending[:0]
	return nil
}
