package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A table maps values of T to rows of a database table.
type table[T any] struct {
	name    string // the name of the table in SQL
	thing   string // the name of a row in errors
	columns string // in the same order as fields; the id comes first
	fields  func(*T) []any
}

// A field is the Go type of a column. A column needs a field unless its values are strings, numbers
// or bools, or have a type that scanTarget and storedValue convert.
type field interface {
	sql.Scanner
	value() (any, error)
}

// scan reads a row. If the row is missing, the error is problem.NotFound.
func (tb *table[T]) scan(row scanner) (T, error) { return tb.scanWith(row) }

// scanWith is like scan, for a query that selects additional columns after those of the table.
func (tb *table[T]) scanWith(row scanner, more ...any) (v T, err error) {
	err = scanFields(row, tb.thing, tb.fields(&v), more)
	return v, err
}

// find reads the first row that meets a condition. If there is none, the error is problem.NotFound.
func (tb *table[T]) find(ctx context.Context, t tx, condition string, args ...any) (T, error) {
	return tb.scan(t.Row(ctx, `SELECT `+tb.columns+` FROM `+tb.name+` WHERE `+condition, args...))
}

// gather reads all rows of a query. end is the part of the query after the name of the table, such
// as a WHERE clause.
func (tb *table[T]) gather(ctx context.Context, t tx, end string, args ...any) ([]T, error) {
	return gather(ctx, t, "listing "+tb.name, tb.scan, `SELECT `+tb.columns+` FROM `+tb.name+` `+end, args...)
}

// listing returns the listing of all rows by id. It begins with the row whose id is from.
func (tb *table[T]) listing(from string) listing[T] {
	rows := selection{
		thing:   tb.name,
		columns: tb.columns,
		from:    tb.name,
		key:     []string{"id"},
		start:   startAt(from),
	}
	id := func(v T) string { return *tb.fields(&v)[0].(*string) }
	return listing[T]{selection: rows, scan: tb.scan, id: id}
}

// insertion returns the statement that inserts a row, and its arguments.
func (tb *table[T]) insertion(v *T) (query string, args []any, err error) {
	return tb.rowOf(v).insertion()
}

// insert inserts a row. If the object to which the row belongs is missing, the error is
// problem.NotFound. parent is the name of this object in the error.
func (tb *table[T]) insert(ctx context.Context, t tx, v *T, parent string) error {
	return tb.rowOf(v).insert(ctx, t, parent)
}

// insertNew is like insert, but returns conflict if another row already has one of the row's unique
// values.
func (tb *table[T]) insertNew(ctx context.Context, t tx, v *T, parent string, conflict error) error {
	return tb.rowOf(v).insertNew(ctx, t, parent, conflict)
}

// insertLater queues the insertion of a row. It is sent together with the next statement or the
// commit, which fails if the insertion fails.
func (tb *table[T]) insertLater(ctx context.Context, t tx, v *T) error {
	return tb.rowOf(v).insertLater(ctx, t)
}

func (tb *table[T]) rowOf(v *T) newRow {
	return newRow{
		table:   tb.name,
		thing:   tb.thing,
		columns: tb.columns,
		fields:  tb.fields(v),
	}
}

// A newRow is a row to insert into a table. It has no type parameter, so that its methods are
// compiled only once.
type newRow struct {
	table, thing, columns string
	fields                []any
}

func (r newRow) insertion() (query string, args []any, err error) {
	args = r.fields
	for i, f := range args {
		if args[i], err = storedValue(f); err != nil {
			return "", nil, fmt.Errorf("writing %s: %w", r.thing, err)
		}
	}
	return `INSERT INTO ` + r.table + ` (` + r.columns + `) VALUES (` + params(0, len(args)) + `)`, args, nil
}

func (r newRow) insert(ctx context.Context, t tx, parent string) error {
	query, args, err := r.insertion()
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, query, args...)
	if isForeignKey(err) {
		return problem.NoSuch(parent)
	}
	if err != nil {
		return fmt.Errorf("inserting %s: %w", r.thing, err)
	}
	return nil
}

func (r newRow) insertNew(ctx context.Context, t tx, parent string, conflict error) error {
	query, args, err := r.insertion()
	if err != nil {
		return err
	}
	res, err := t.Exec(ctx, query+` ON CONFLICT DO NOTHING`, args...)
	if isForeignKey(err) {
		return problem.NoSuch(parent)
	}
	return requireInserted(res, err, r.thing, conflict)
}

func (r newRow) insertLater(ctx context.Context, t tx) error {
	query, args, err := r.insertion()
	if err != nil {
		return err
	}
	if err := t.Later(ctx, query, args...); err != nil {
		return fmt.Errorf("inserting %s: %w", r.thing, err)
	}
	return nil
}

// scanFields reads a row into the fields of a table, followed by more.
func scanFields(row scanner, thing string, fields, more []any) error {
	for i, f := range fields {
		fields[i] = scanTarget(f)
	}
	return checkRow(row.Scan(append(fields, more...)...), thing)
}

// qualified prefixes columns with alias, the name of their table in a query.
func qualified(alias, columns string) string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		names[i] = alias + "." + strings.TrimSpace(name)
	}
	return strings.Join(names, ", ")
}

// scanTarget returns the value to pass to Scan for a field.
func scanTarget(f any) any {
	switch f := f.(type) {
	case *time.Time:
		return (*instant)(f)
	case *[]string:
		return (*words)(f)
	}
	return f
}

// storedValue returns the value to store for a field.
func storedValue(f any) (any, error) {
	switch f := f.(type) {
	case *string:
		return *f, nil
	case *int64:
		return *f, nil
	case *time.Time:
		return micros(*f), nil
	case *bool:
		return flag(*f), nil
	case *[]string:
		return strings.Join(*f, " "), nil
	case *[]byte:
		return string(*f), nil
	case field:
		return f.value()
	}
	return reflect.ValueOf(f).Elem().Interface(), nil
}

// An instant is a time that is stored in microseconds since 1970, or as 0 for the zero time.
type instant time.Time

func (i *instant) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a time is %T, want int64", src)
	}
	*i = instant(moment(us))
	return nil
}

// words is a slice of strings that is stored separated by spaces. A slice that was read is never
// nil.
type words []string

func (w *words) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	*w = strings.Fields(text)
	return nil
}

// A list is like words, for types based on string. An empty list is read as nil.
type list[E ~string] []E

func listOf[E ~string](s *[]E) *list[E] { return (*list[E])(s) }

func (l *list[E]) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	*l = nil
	for _, word := range strings.Fields(text) {
		*l = append(*l, E(word))
	}
	return nil
}

func (l *list[E]) value() (any, error) { return join(*l), nil }

// join joins strings with spaces.
func join[E ~string](values []E) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, " ")
}

// nullable is a string that is stored as NULL if it is "".
type nullable[S ~string] struct{ text *S }

func nullableOf[S ~string](s *S) nullable[S] { return nullable[S]{s} }

func (n nullable[S]) Scan(src any) error {
	if src == nil {
		*n.text = ""
		return nil
	}
	text, err := textOf(src)
	if err != nil {
		return err
	}
	*n.text = S(text)
	return nil
}

func (n nullable[S]) value() (any, error) { return null(string(*n.text)), nil }

// asJSON is a value that is stored as JSON.
type asJSON struct {
	v    any
	zero string // if this text is stored, Scan leaves v unchanged; "" means never
}

func (j asJSON) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	if j.zero != "" && text == j.zero {
		return nil
	}
	return json.Unmarshal([]byte(text), j.v)
}

func (j asJSON) value() (any, error) { return jsonText(j.v) }

// jsonText returns v as JSON.
func jsonText(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	return string(raw), nil
}

// textOf returns a text that a driver has read. The drivers return a string or bytes.
func textOf(src any) (string, error) {
	switch src := src.(type) {
	case string:
		return src, nil
	case []byte:
		return string(src), nil
	}
	return "", fmt.Errorf("a text is %T", src)
}

// micros returns the stored form of a time: microseconds since 1970, or 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// moment is the inverse of micros.
func moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// flag returns the stored form of a bool.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// flagOf returns the stored form of a bool that may be nil.
func flagOf(b *bool) *int64 {
	if b == nil {
		return nil
	}
	n := flag(*b)
	return &n
}

// null returns NULL for "". A unique index may contain several NULLs, and a partial index can leave
// them out.
func null(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

func scanID(row scanner) (id string, err error) {
	err = row.Scan(&id)
	return id, err
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
