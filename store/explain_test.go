package store

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/database"
)

// A spy is a database that records the queries that read rows.
type spy struct {
	database.DB
	asked []query
}

func (s *spy) Read() database.Tx { return spyTx{s.DB.Read(), s} }

type spyTx struct {
	database.Tx
	spy *spy
}

func (t spyTx) Query(ctx context.Context, sql string, args ...any) (database.Rows, error) {
	t.spy.asked = append(t.spy.asked, query{sql, args})
	return t.Tx.Query(ctx, sql, args...)
}

func (t spyTx) Row(ctx context.Context, sql string, args ...any) database.Scanner {
	t.spy.asked = append(t.spy.asked, query{sql, args})
	return t.Tx.Row(ctx, sql, args...)
}

// explain returns the database's plan for a query.
func explain(t *testing.T, s *Store, q query, isPostgres bool) string {
	t.Helper()
	prefix := "EXPLAIN QUERY PLAN "
	scan := func(row scanner) (step string, err error) {
		var id, parent, unused int
		err = row.Scan(&id, &parent, &unused, &step)
		return step, err
	}
	if isPostgres {
		prefix = "EXPLAIN "
		scan = scanID
	}
	lines, err := gather(t.Context(), s.read(), "asking for a plan", scan, prefix+q.sql, q.args...)
	if err != nil {
		t.Fatalf("%v for %s", err, q.sql)
	}
	if len(lines) == 0 {
		t.Fatalf("there is no plan for %s", q.sql)
	}
	return strings.Join(lines, "\n")
}

// costly matches steps in a plan whose cost grows with the number of rows: reading a whole table or
// index, sorting, and collecting all rows before the first one is returned.
var costly = regexp.MustCompile(
	`SCAN \w+( USING .*)?(\n|$)|USE TEMP B-TREE|Seq Scan|(^|-> +)(Incremental )?Sort|Bitmap|Hash`)
