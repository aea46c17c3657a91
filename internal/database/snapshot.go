package database

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// A Snapshot is a read-only transaction. All its queries see the database as it was when the
// snapshot was taken. Queries have no time limit, and run one at a time: the rows of a query must
// be closed before the next query.
type Snapshot struct {
	Tx
	catalog catalog
}

// Tables returns all tables of the schema, each after the tables that it references.
func (s *Snapshot) Tables(ctx context.Context) ([]Table, error) {
	tables, err := s.catalog.read(ctx, s.Tx)
	if err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	return tables, nil
}

// Has reports whether a table exists, even if it does not belong to the schema.
func (s *Snapshot) Has(ctx context.Context, table string) (bool, error) {
	exists := false
	err := each(ctx, s.Tx, s.catalog.columns, 3, func(row []string) error {
		exists = exists || row[0] == table
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("looking for table %s: %w", table, err)
	}
	return exists, nil
}

// A Table describes a table in a form that is the same for SQLite and PostgreSQL.
type Table struct {
	Name    string
	Columns []Column
	Key     []string // the columns of the primary key; empty if there is none
	parents []string // the tables that this table references
}

// A Column is a column of type TEXT or BIGINT.
type Column struct {
	Name    string
	Integer bool
}

// Names returns the names of the columns.
func (t Table) Names() (names []string) {
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// ownTables is the prefix of tables that do not belong to the schema, such as the table of applied
// migrations. A snapshot omits them.
const ownTables = "selvage_"

// A catalog holds the queries that describe the tables of a dialect.
type catalog struct {
	columns string // table, column, type; in the order of the columns
	keys    string // table, column; in the order of the key
	parents string // table, referenced table
}

var fileCatalog = catalog{
	columns: `SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`,
	keys: `SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.pk > 0 ORDER BY m.name, c.pk`,
	parents: `SELECT m.name, f."table" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name`,
}

var serverCatalog = catalog{
	columns: `SELECT c.relname::text, a.attname::text, t.typname::text
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
		WHERE ` + inSchema + ` AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum`,
	keys: `SELECT c.relname::text, a.attname::text
		FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
			CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
		WHERE ` + inSchema + ` ORDER BY c.relname, k.place`,
	parents: `SELECT c.relname::text, p.relname::text
		FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'f'
			JOIN pg_class p ON p.oid = k.confrelid
		WHERE ` + inSchema + ` ORDER BY c.relname`,
}

// inSchema is the condition for tables of the current schema that do not belong to an extension.
const inSchema = `c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p')
	AND NOT EXISTS (SELECT 1 FROM pg_depend d
		WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')`

// read returns all tables, each after the tables that it references.
func (c catalog) read(ctx context.Context, t Tx) (tables []Table, err error) {
	types := map[string]bool{"TEXT": false, "TEXT COLLATE \"C\"": false, "BIGINT": true, "INT8": true}
	err = each(ctx, t, c.columns, 3, func(row []string) error {
		if strings.HasPrefix(row[0], ownTables) {
			return nil
		}
		if n := len(tables); n == 0 || tables[n-1].Name != row[0] {
			tables = append(tables, Table{Name: row[0]})
		}
		integer, known := types[strings.ToUpper(row[2])]
		if !known {
			return fmt.Errorf("column %s of table %s has the type %s, not TEXT or BIGINT", row[1], row[0], row[2])
		}
		last := &tables[len(tables)-1]
		last.Columns = append(last.Columns, Column{Name: row[1], Integer: integer})
		return nil
	})
	if err != nil {
		return nil, err
	}

	find := func(name string) *Table {
		i := slices.IndexFunc(tables, func(t Table) bool { return t.Name == name })
		if i < 0 {
			return new(Table) // a table that the snapshot omits
		}
		return &tables[i]
	}

	err = each(ctx, t, c.keys, 2, func(row []string) error {
		found := find(row[0])
		found.Key = append(found.Key, row[1])
		return nil
	})
	if err != nil {
		return nil, err
	}

	err = each(ctx, t, c.parents, 2, func(row []string) error {
		found := find(row[0])
		found.parents = append(found.parents, row[1])
		return nil
	})
	return parentsFirst(tables), err
}

// each calls do for each row of a query with the given number of text columns.
func each(ctx context.Context, t Tx, query string, columns int, do func(row []string) error) error {
	rows, err := t.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()

	row := make([]string, columns)
	dest := make([]any, columns)
	for i := range row {
		dest[i] = &row[i]
	}

	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// parentsFirst sorts tables so that each comes after the tables that it references. It panics if
// tables reference each other in a cycle.
func parentsFirst(tables []Table) (sorted []Table) {
	placed := make(map[string]bool)
	for len(sorted) < len(tables) {
		before := len(sorted)
		for _, t := range tables {
			waits := slices.ContainsFunc(t.parents, func(p string) bool { return p != t.Name && !placed[p] })
			if !placed[t.Name] && !waits {
				sorted = append(sorted, t)
				placed[t.Name] = true
			}
		}
		if len(sorted) == before {
			panic("database: tables reference each other in a circle")
		}
	}
	return sorted
}

// Snapshot runs do on a snapshot. While do is running, SQLite keeps all new changes in the log.
func (d *file) Snapshot(ctx context.Context, do func(*Snapshot) error) error {
	tx, err := d.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return d.explain(err)
	}
	defer func() { _ = tx.Rollback() }() // ends the transaction, which has changed nothing

	// SQLite takes the snapshot with the first query.
	s := &Snapshot{fileSnapshot{tx: tx, explain: d.explain}, fileCatalog}
	var first int
	if err := s.Row(ctx, `SELECT COUNT(*) FROM sqlite_master`).Scan(&first); err != nil {
		return err
	}
	return do(s)
}

// A fileSnapshot runs queries in a transaction of SQLite. Its queries may take long, so they stop
// when their context is done.
type fileSnapshot struct {
	tx      *sql.Tx
	explain func(error) error
}

func (f fileSnapshot) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	rows, err := f.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, f.explain(err)
	}
	return rows, nil
}

func (f fileSnapshot) Row(ctx context.Context, query string, args ...any) Scanner {
	return explained{f.tx.QueryRowContext(ctx, query, args...), f.explain}
}

// Shared locks nothing, because a snapshot never changes.
func (f fileSnapshot) Shared(ctx context.Context, query string, args ...any) Scanner {
	return f.Row(ctx, query, args...)
}

// Locked locks nothing either.
func (f fileSnapshot) Locked(ctx context.Context, query string, args ...any) Scanner {
	return f.Row(ctx, query, args...)
}

func (f fileSnapshot) Exec(context.Context, string, ...any) (sql.Result, error) {
	return nil, ErrReadOnly
}
func (f fileSnapshot) Later(context.Context, string, ...any) error { return ErrReadOnly }
func (f fileSnapshot) Recall() any                                 { return nil }
func (f fileSnapshot) Remember(_ any, last func(Tx) error) error   { return last(f) }

// Snapshot runs do on a snapshot, with a new connection.
func (s *server) Snapshot(ctx context.Context, do func(*Snapshot) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := s.connectUntimed(ctx)
	if err != nil {
		return unavailable(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.socket.Close() }) // a long query stops when ctx is done
	defer c.close()
	defer stop()

	t := &serverTx{conn: c}
	if _, err := t.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return explain(err)
	}
	// PostgreSQL takes the snapshot with the first query.
	snapshot := &Snapshot{t, serverCatalog}
	var first int
	if err := snapshot.Row(ctx, `SELECT 1`).Scan(&first); err != nil {
		return explain(err)
	}
	return do(snapshot)
}
