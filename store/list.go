package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/page"
)

// A selection is a query that returns its rows in pages. It does not depend on the type of the
// rows, so that it is compiled only once.
type selection struct {
	thing   string // the name of the rows in errors, such as "logins"
	columns string
	from    string // the table, along with any joins
	where   where
	ways    []string // alternative conditions, each with an index in the list's order; a row meets at most one
	indexed []string // for each way, the part of its condition that its index decides; nil means all of it
	checks  []check  // conditions without an index
	checked int      // maximum number of rows that are checked for a page; 0 means maxChecked
	skip    int      // number of rows to skip, in each way
	key     []string // columns to sort by; the last one is the id
	start   []any    // key of the first row; nil means the beginning of the list
	until   []any    // key of the row before which reading stops; nil means the end
	within  span     // limits on the keys
	desc    bool
}

// A listing is a selection whose rows become values of T.
type listing[T any] struct {
	selection
	scan func(scanner) (T, error)
	id   func(T) string
}

// A direction is the direction in which the rows of a list are read.
type direction bool

const (
	forward  direction = false
	backward direction = true
)

// page returns one page of the listing. It uses one query for the rows and, except on the first
// page, another to find the first row of the previous page. If the listing has checks, end runs a
// query before each of these queries.
func (l *listing[T]) page(ctx context.Context, t tx, q page.Query) (p page.Page[T], err error) {
	rows := l.selection
	if rows.until, err = rows.end(ctx, t, forward); err != nil {
		return p, err
	}
	found := rows.query(q.Size+1, forward)
	if p.Items, err = gather(ctx, t, rows.doing(), l.scan, found.sql, found.args...); err != nil {
		return p, err
	}

	p.Next = idOf(rows.until)
	if len(p.Items) > q.Size {
		p.Next = l.id(p.Items[q.Size])
		p.Items = p.Items[:q.Size]
	}
	if l.start == nil {
		return p, nil
	}
	p.Prev, err = l.before(ctx, t, q.Size)
	return p, err
}

// doing returns the beginning of errors from the selection's queries.
func (s *selection) doing() string { return "listing " + s.thing }

// before returns the id of the first row of the previous page, which ends before start. If there
// are no rows before start, the id is "". It reads only ids.
func (s *selection) before(ctx context.Context, t tx, n int) (id string, err error) {
	ids := *s
	ids.columns = s.key[len(s.key)-1]
	if ids.until, err = s.end(ctx, t, backward); err != nil {
		return "", err
	}
	q := ids.query(n, backward)
	found, err := gather(ctx, t, s.doing(), scanID, q.sql, q.args...)
	if err != nil {
		return "", err
	}
	id = idOf(ids.until)
	if len(found) == n || id == "" && len(found) > 0 {
		id = found[len(found)-1]
	}
	return id, nil
}

// maxChecked is the default maximum number of rows that are read for one page of a listing with
// checks. A page that would need more rows ends early, so that rare matches do not make a page slow.
const maxChecked = 5000

// end returns the key of the row before which a page with checks must stop, so that it checks no
// more rows than allowed, counted from start. Each way has the same share of these rows. If fewer
// rows are left, end returns nil.
func (s *selection) end(ctx context.Context, t tx, dir direction) ([]any, error) {
	if len(s.checks) == 0 {
		return nil, nil
	}
	keys := *s
	keys.checks = nil
	keys.columns = strings.Join(s.key, ", ")
	if s.indexed != nil {
		keys.ways = s.indexed
	}
	keys.skip = cmp.Or(s.checked, maxChecked) / max(1, len(s.ways))
	q := keys.query(1, dir)
	found, err := gather(ctx, t, s.doing(), s.scanKey, q.sql, q.args...)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

// scanKey reads the key of a row.
func (s *selection) scanKey(row scanner) (key []any, err error) {
	texts := make([]string, len(s.key))
	into := make([]any, len(s.key))
	for i := range texts {
		into[i] = &texts[i]
	}
	if err := row.Scan(into...); err != nil {
		return nil, err
	}
	for _, text := range texts {
		key = append(key, text)
	}
	return key, nil
}

// idOf returns the id at the end of a key, or "" if the key is nil.
func idOf(key []any) string {
	if key == nil {
		return ""
	}
	id, _ := key[len(key)-1].(string)
	return id
}

// A span limits the keys of a listing whose key has one column. Keys are at least low and less than
// high; "" means no limit. A span is not part of where, because a database uses only one limit per
// side of an index, and the start of a page is a tighter limit.
type span struct{ low, high string }

// startAt returns the key of the first row of a page. It ignores an id outside the span, because
// the id belongs to another list.
func (s span) startAt(id string) []any {
	if id < s.low || s.high != "" && id >= s.high {
		return nil
	}
	return startAt(id)
}

// bound adds the limits of the span on the sides that start and until do not limit.
func (s *selection) bound(w *where, dir direction) {
	up := s.desc == (dir == backward) // whether rows are read in ascending order
	above := s.start != nil && up || s.until != nil && !up
	below := s.start != nil && !up || s.until != nil && up
	if s.within.low != "" && !above {
		w.and(s.key[0]+` >= $%d`, s.within.low)
	}
	if s.within.high != "" && !below {
		w.and(s.key[0]+` < $%d`, s.within.high)
	}
}

// A query is an SQL query and its arguments.
type query struct {
	sql  string
	args []any
}

// query returns the query for the rows from start on. If dir is backward, it returns the query for
// the rows before start.
func (s *selection) query(limit int, dir direction) query {
	w := where{slices.Clone(s.where.conditions), slices.Clone(s.where.args)}
	s.bound(&w, dir)
	for _, c := range s.checks {
		w.check(c)
	}
	from, stop, sort := s.comparisons(dir)
	if s.start != nil {
		w.compare(s.key, from, s.start)
	}
	if s.until != nil {
		w.compare(s.key, stop, s.until)
	}
	w.args = append(w.args, limit)
	end := fmt.Sprintf(" ORDER BY %s%s LIMIT $%d", strings.Join(s.key, sort+", "), sort, len(w.args))
	skip := ""
	if s.skip > 0 {
		skip = fmt.Sprintf(" OFFSET %d", s.skip)
	}

	if len(s.ways) == 0 {
		return query{s.sql(w) + end + skip, w.args}
	}
	// For each way, read as many rows as a page may have, in the order of its index. The rows of
	// the page are among them.
	parts := make([]string, len(s.ways))
	for i, way := range s.ways {
		conditions := where{conditions: append(slices.Clone(w.conditions), way)}
		parts[i] = fmt.Sprintf("SELECT * FROM (%s%s) AS way%d", s.sql(conditions), end+skip, i)
	}
	return query{fmt.Sprintf("SELECT * FROM (%s) AS ways%s", strings.Join(parts, " UNION ALL "), end), w.args}
}

// comparisons returns the operators that compare the keys of the wanted rows with start and until,
// and the direction of reading.
func (s *selection) comparisons(dir direction) (from, stop, sort string) {
	switch {
	case s.desc && dir == backward:
		return ">", "<", " ASC"
	case s.desc:
		return "<=", ">", " DESC"
	case dir == backward:
		return "<", ">", " DESC"
	}
	return ">=", "<", " ASC"
}

// sql returns the part of the query before ORDER BY.
func (s *selection) sql(w where) string {
	condition := ""
	if len(w.conditions) > 0 {
		condition = " WHERE " + w.String()
	}
	return "SELECT " + s.columns + " FROM " + s.from + condition
}

// params returns n parameters whose numbers follow used, such as "$3, $4".
func params(used, n int) string {
	var b []byte
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, '$'), int64(used+i+1), 10)
	}
	return string(b)
}

// gather reads all rows of a query. Its errors begin with doing.
func gather[T any](
	ctx context.Context, t tx, doing string, scan func(scanner) (T, error), sql string, args ...any,
) ([]T, error) {
	var found []T
	err := each(ctx, t, doing, func(row scanner) error {
		item, err := scan(row)
		if err != nil {
			return err
		}
		found = append(found, item)
		return nil
	}, sql, args)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// each calls read for each row of a query, and stops at the first error. Its errors begin with
// doing.
func each(
	ctx context.Context, t tx, doing string, read func(scanner) error, sql string, args []any,
) error {
	rows, err := t.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer rows.Close()

	for rows.Next() {
		if err := read(rows); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// startAt returns the key of the first row of a page, for a listing that is sorted only by id.
func startAt(id string) []any {
	if id == "" {
		return nil
	}
	return []any{id}
}

// where collects conditions and their arguments.
type where struct {
	conditions []string
	args       []any
}

// and adds a condition. %d in the condition is replaced by the number of the parameter for arg.
func (w *where) and(condition string, arg any) {
	w.args = append(w.args, arg)
	w.conditions = append(w.conditions, fmt.Sprintf(condition, len(w.args)))
}

// always adds a condition without an argument. A database uses a partial index only if the query
// contains the condition of the index.
func (w *where) always(condition string) { w.conditions = append(w.conditions, condition) }

// in adds the condition that column has one of the given values.
func (w *where) in(column string, values []string) {
	w.always(column + ` IN (` + params(len(w.args), len(values)) + `)`)
	for _, v := range values {
		w.args = append(w.args, v)
	}
}

// compare adds a condition that compares a key with the key of a row.
func (w *where) compare(key []string, operator string, with []any) {
	w.always(fmt.Sprintf("(%s) %s (%s)", strings.Join(key, ", "), operator, params(len(w.args), len(with))))
	w.args = append(w.args, with...)
}

// A check is a condition without an index, so the rows that it excludes are read, too. In its SQL, each
// $%d is replaced by the number of the parameter for the next argument, and $%[2]d by the number for the
// second argument.
type check struct {
	condition string
	args      []any
}

// containing returns checks that each word of text occurs in an SQL expression, in one of its spellings.
// If text has more than maxWords words, the text must occur as a whole.
func containing(expression, text string) (checks []check) {
	words := strings.Fields(text)
	if len(words) > maxWords {
		words = []string{strings.Join(words, " ")}
	}
	for _, word := range words {
		checks = append(checks, spelled(expression, word))
	}
	return checks
}

// spelled returns a check that one of the spellings of text occurs in an SQL expression; see
// spellingsOfName. Text with only one spelling has one condition. Other text always has maxSpellings
// conditions, so that only few different queries are prepared.
func spelled(expression, text string) (c check) {
	spellings := spellingsOfName(text)
	for len(spellings) > 1 && len(spellings) < maxSpellings {
		spellings = append(spellings, spellings[0])
	}
	one := `LOWER(` + expression + `) LIKE $%d ESCAPE '\'`
	c.condition = one + strings.Repeat(` OR `+one, len(spellings)-1)
	if len(spellings) > 1 {
		c.condition = `(` + c.condition + `)`
	}
	for _, spelling := range spellings {
		c.args = append(c.args, contains(spelling))
	}
	return c
}

// check adds a check as a condition.
func (w *where) check(c check) {
	var numbers []any
	for _, arg := range c.args {
		w.args = append(w.args, arg)
		numbers = append(numbers, len(w.args))
	}
	w.always(fmt.Sprintf(c.condition, numbers...))
}

// String returns the conditions as SQL.
func (w where) String() string { return strings.Join(w.conditions, " AND ") }
