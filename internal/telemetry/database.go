package telemetry

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/selvage/selvage/internal/database"
)

// Database returns a database that traces the changes and queries of db, except queries passed to
// Later or run in a Snapshot. system is sqlite or postgresql.
func (t *Tracer) Database(db database.DB, system string) database.DB {
	if t == nil {
		return db
	}
	return &tracedDB{DB: db, t: t, system: attribute.String("db.system.name", system)}
}

// A tracedDB traces changes and queries.
type tracedDB struct {
	database.DB
	t      *Tracer
	system attribute.KeyValue
}

func (d *tracedDB) Read() database.Tx  { return tracedTx{Tx: d.DB.Read(), db: d} }
func (d *tracedDB) Watch() database.Tx { return tracedTx{Tx: d.DB.Watch(), db: d} }

func (d *tracedDB) Change(ctx context.Context, do func(database.Tx) error) error {
	return d.change(ctx, "change", d.DB.Change, do)
}

func (d *tracedDB) Once(ctx context.Context, do func(database.Tx) error) error {
	return d.change(ctx, "change once", d.DB.Once, do)
}

// change runs a change in a span, which also contains the wait for other changes and the commit.
func (d *tracedDB) change(
	ctx context.Context, name string,
	run func(context.Context, func(database.Tx) error) error, do func(database.Tx) error,
) error {
	span, ok := d.t.start(ctx, name, d.system)
	if !ok {
		return run(ctx, do)
	}
	within := trace.ContextWithSpan(ctx, span)
	err := run(ctx, func(tx database.Tx) error { return do(tracedTx{Tx: tx, db: d, within: within}) })
	end(span, err)
	return err
}

// A tracedTx traces queries.
type tracedTx struct {
	database.Tx
	db     *tracedDB
	within context.Context // the context of the change; nil outside a change
}

// start begins the span of a query.
func (x tracedTx) start(ctx context.Context, query string) (trace.Span, bool) {
	if x.within != nil {
		ctx = x.within
	}
	return x.db.t.start(ctx, summary(query), x.db.system, attribute.String("db.query.text", query))
}

func (x tracedTx) Query(ctx context.Context, query string, args ...any) (database.Rows, error) {
	span, ok := x.start(ctx, query)
	rows, err := x.Tx.Query(ctx, query, args...)
	if !ok {
		return rows, err
	}
	if err != nil {
		end(span, err)
		return nil, err
	}
	return &tracedRows{rows, span}, nil
}

func (x tracedTx) Row(ctx context.Context, query string, args ...any) database.Scanner {
	span, ok := x.start(ctx, query)
	row := x.Tx.Row(ctx, query, args...)
	if !ok {
		return row
	}
	return tracedRow{row, span}
}

func (x tracedTx) Shared(ctx context.Context, query string, args ...any) database.Scanner {
	span, ok := x.start(ctx, query)
	row := x.Tx.Shared(ctx, query, args...)
	if !ok {
		return row
	}
	return tracedRow{row, span}
}

func (x tracedTx) Locked(ctx context.Context, query string, args ...any) database.Scanner {
	span, ok := x.start(ctx, query)
	row := x.Tx.Locked(ctx, query, args...)
	if !ok {
		return row
	}
	return tracedRow{row, span}
}

func (x tracedTx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	span, ok := x.start(ctx, query)
	result, err := x.Tx.Exec(ctx, query, args...)
	if ok {
		end(span, err)
	}
	return result, err
}

func (x tracedTx) Remember(v any, last func(database.Tx) error) error {
	return x.Tx.Remember(v, func(tx database.Tx) error {
		return last(tracedTx{Tx: tx, db: x.db, within: x.within})
	})
}

// tracedRows ends a span when the rows are closed.
type tracedRows struct {
	database.Rows
	span trace.Span
}

func (r *tracedRows) Close() error {
	err := r.Rows.Close()
	end(r.span, errors.Join(err, r.Err()))
	return err
}

// A tracedRow ends a span when the row has been scanned.
type tracedRow struct {
	database.Scanner
	span trace.Span
}

func (r tracedRow) Scan(dest ...any) error {
	err := r.Scanner.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		end(r.span, nil) // the absence of a row is not a failure
		return err
	}
	end(r.span, err)
	return err
}

// end ends a span. The text of err is not recorded, since it may contain values.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "failed")
	}
	span.End()
}

var (
	summaries sync.Map // by query; bounded, because queries are constants of the program
	verbTable = regexp.MustCompile(`(?is)^\s*(SELECT|DELETE)\b.*?\bFROM\s+(\w+)|` +
		`^\s*(INSERT)\s+INTO\s+(\w+)|^\s*(UPDATE)\s+(\w+)`)
)

// summary returns the verb and the table of a query, such as "UPDATE logins". It returns "SQL" for a
// query without them.
func summary(query string) string {
	if s, ok := summaries.Load(query); ok {
		return s.(string)
	}

	s := "SQL"
	if m := verbTable.FindStringSubmatch(query); m != nil {
		var words []string
		for _, w := range m[1:] {
			if w != "" {
				words = append(words, w)
			}
		}
		words[0] = strings.ToUpper(words[0])
		s = strings.Join(words, " ")
	}
	summaries.Store(query, s)
	return s
}
