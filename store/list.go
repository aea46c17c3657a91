package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/page"
)

// A listing is a query whose rows are given in pages.
type listing[T any] struct {
	thing   string // what the rows are, for errors
	columns string
	from    string // the table, with its joins
	where   where
	ways    []string // conditions of which a row fits one, each with an index in the order of the list; none is no condition
	checks  []check  // conditions that are in no index; not with ways
	key     []string // the columns to sort by; the last is the id
	start   []any    // the key of the row to begin with; nil means the first
	until   []any    // the key of the row to stop before, on the way that is read; nil is none
	within  span     // of keys, where a filter bounds them
	desc    bool
	scan    func(scanner) (T, error)
	id      func(T) string
}

// page returns one page of the listing, with one query for its rows and one for
// the beginning of the page before it.
func (l listing[T]) page(ctx context.Context, t tx, q page.Query) (p page.Page[T], err error) {
	forward := l
	if forward.until, err = l.end(ctx, t, false); err != nil {
		return p, err
	}
	if p.Items, err = l.rows(ctx, t, forward.query(q.Size+1, false)); err != nil {
		return p, err
	}
	p.Next = idOf(forward.until)
	if len(p.Items) > q.Size {
		p.Items, p.Next = p.Items[:q.Size], l.id(p.Items[q.Size])
	}
	if l.start == nil {
		return p, nil
	}
	p.Prev, err = l.before(ctx, t, q.Size)
	return p, err
}

// before returns the id of the row with which the page before the start begins, and reads
// nothing else of them.
func (l listing[T]) before(ctx context.Context, t tx, n int) (id string, err error) {
	ids := l
	ids.columns = l.key[len(l.key)-1]
	if ids.until, err = l.end(ctx, t, true); err != nil {
		return "", err
	}
	q := ids.query(n, true)
	found, err := gather(ctx, t, "listing "+l.thing, func(row scanner) (id string, err error) {
		return id, row.Scan(&id)
	}, q.sql, q.args...)
	if id = idOf(ids.until); len(found) == n || id == "" && len(found) > 0 {
		id = found[len(found)-1]
	}
	return id, err
}

// A span bounds the keys of a listing whose key is one column: from low on, and
// below high; "" is no bound. It is no condition like others, since a database
// takes one bound of an index on each side, and the start of a page is the nearer
// one.
type span struct{ low, high string }

// startAt returns the key of the first row of a page within the span; one outside is
// of another list, and is no start.
func (s span) startAt(id string) []any {
	if id < s.low || s.high != "" && id >= s.high {
		return nil
	}
	return startAt(id)
}

// bound adds what of the span the start of the page does not say already.
func (l listing[T]) bound(w *where, backward bool) {
	up := l.desc == backward // the way that is read
	above := l.start != nil && up || l.until != nil && !up
	below := l.start != nil && !up || l.until != nil && up
	if l.within.low != "" && !above {
		w.and(l.key[0]+` >= $%d`, l.within.low)
	}
	if l.within.high != "" && !below {
		w.and(l.key[0]+` < $%d`, l.within.high)
	}
}

type query struct {
	sql  string
	args []any
}

// query asks for the rows from the start on, or backward for those before it.
func (l listing[T]) query(limit int, backward bool) query {
	w := where{slices.Clone(l.where.conditions), slices.Clone(l.where.args)}
	l.bound(&w, backward)
	for _, c := range l.checks {
		w.check(c)
	}
	conditions, args := w.conditions, w.args
	compare, direction := ">=", " ASC"
	switch {
	case l.desc && backward:
		compare = ">"
	case l.desc:
		compare, direction = "<=", " DESC"
	case backward:
		compare, direction = "<", " DESC"
	}
	if l.start != nil {
		conditions = append(conditions, fmt.Sprintf("(%s) %s (%s)", strings.Join(l.key, ", "), compare,
			params(len(args), len(l.start))))
		args = append(args, l.start...)
	}
	if l.until != nil {
		stop := "<"
		if l.desc != backward {
			stop = ">"
		}
		conditions = append(conditions, fmt.Sprintf("(%s) %s (%s)", strings.Join(l.key, ", "), stop,
			params(len(args), len(l.until))))
		args = append(args, l.until...)
	}
	args = append(args, limit)
	end := fmt.Sprintf(" ORDER BY %s%s LIMIT $%d", strings.Join(l.key, direction+", "), direction, len(args))
	rows := func(conditions ...string) string {
		where := ""
		if len(conditions) > 0 {
			where = " WHERE " + strings.Join(conditions, " AND ")
		}
		return fmt.Sprintf("SELECT %s FROM %s%s%s", l.columns, l.from, where, end)
	}
	if len(l.ways) == 0 {
		return query{rows(conditions...), args}
	}
	// A page's worth is read on each way in the order of its index, and of all that the page.
	parts := make([]string, len(l.ways))
	for i, way := range l.ways {
		parts[i] = fmt.Sprintf("SELECT * FROM (%s) AS way%d", rows(append(slices.Clone(conditions), way)...), i)
	}
	return query{fmt.Sprintf("SELECT * FROM (%s) AS ways%s", strings.Join(parts, " UNION ALL "), end), args}
}

// params writes n parameters after the first used ones: $3, $4.
func params(used, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("$%d", used+i+1)
	}
	return strings.Join(names, ", ")
}

func (l listing[T]) rows(ctx context.Context, t tx, q query) ([]T, error) {
	return gather(ctx, t, "listing "+l.thing, l.scan, q.sql, q.args...)
}

// gather reads all rows of a query. doing is what an error is said to have
// happened at.
func gather[T any](ctx context.Context, t tx, doing string, scan func(scanner) (T, error), sql string, args ...any) (found []T, err error) {
	rows, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer rows.Close()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		found = append(found, item)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return found, nil
}

// startAt returns the key of a listing by id alone.
func startAt(id string) []any {
	if id == "" {
		return nil
	}
	return []any{id}
}

// A where gathers conditions and their arguments.
type where struct {
	conditions []string
	args       []any
}

// and adds a condition in which $%d stands for the argument.
func (w *where) and(condition string, arg any) {
	w.args = append(w.args, arg)
	w.conditions = append(w.conditions, fmt.Sprintf(condition, len(w.args)))
}

// always adds a condition without an argument, written as a partial index has it.
func (w *where) always(condition string) { w.conditions = append(w.conditions, condition) }

// String returns the conditions in SQL.
func (w where) String() string { return strings.Join(w.conditions, " AND ") }
