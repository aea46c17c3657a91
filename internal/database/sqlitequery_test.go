package database

import (
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// TestPlannedOnce shows that SQLite keeps its plan for a query from plannedOnce when the value of the
// LIMIT parameter changes, and that it plans the original query again.
func TestPlannedOnce(t *testing.T) {
	const query = `SELECT name FROM sqlite_schema WHERE name > $1 ORDER BY name LIMIT $2`
	if n := plans(t, plannedOnce(query)); n != 0 {
		t.Errorf("SQLite planned the query again %d times, want never", n)
	}
	if n := plans(t, query); n == 0 {
		t.Error("SQLite keeps the plan of a query with a LIMIT parameter, so plannedOnce is not needed")
	}
}

// plans runs the query with three values of its second parameter, and returns how often SQLite
// prepared it again. plans calls SQLite directly, because the driver does not provide this number.
func plans(t *testing.T, query string) int32 {
	t.Helper()
	tls := libc.NewTLS()
	defer tls.Close()
	name, text := cstring(t, ":memory:"), cstring(t, query)
	defer libc.Xfree(tls, name)
	defer libc.Xfree(tls, text)

	must := func(what string, code, want int32) {
		t.Helper()
		if code != want {
			t.Fatalf("%s = %d, want %d", what, code, want)
		}
	}
	out := libc.Xcalloc(tls, 1, 8) // where SQLite stores pointers
	defer libc.Xfree(tls, out)
	must("open", sqlite3.Xsqlite3_open(tls, name, out), sqlite3.SQLITE_OK)
	db := libc.AtomicLoadPUintptr(out)
	defer sqlite3.Xsqlite3_close_v2(tls, db)

	must("prepare", sqlite3.Xsqlite3_prepare_v2(tls, db, text, -1, out, 0), sqlite3.SQLITE_OK)
	stmt := libc.AtomicLoadPUintptr(out)
	defer sqlite3.Xsqlite3_finalize(tls, stmt)

	for _, limit := range []int64{5, 6, 7} {
		must("bind", sqlite3.Xsqlite3_bind_int64(tls, stmt, 2, limit), sqlite3.SQLITE_OK)
		must("step", sqlite3.Xsqlite3_step(tls, stmt), sqlite3.SQLITE_DONE)
		must("reset", sqlite3.Xsqlite3_reset(tls, stmt), sqlite3.SQLITE_OK)
	}
	return sqlite3.Xsqlite3_stmt_status(tls, stmt, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0)
}

// cstring returns s as a C string, which the caller must free.
func cstring(t *testing.T, s string) uintptr {
	t.Helper()
	c, err := libc.CString(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUnnamed checks which parameters become question marks.
func TestUnnamed(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT 1`:                                         `SELECT 1`,
		`SELECT a FROM t WHERE a = $1`:                     `SELECT a FROM t WHERE a = ?`,
		`INSERT INTO t (a, b) VALUES ($1, $2)`:             `INSERT INTO t (a, b) VALUES (?, ?)`,
		`VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`: `VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		`UPDATE t SET a = $2 WHERE b = $1`:                 `UPDATE t SET a = $2 WHERE b = $1`, // another order
		`SELECT $1, $2, $1`:                                `SELECT $1, $2, $1`,                // one is used twice
		`SELECT $11`:                                       `SELECT $11`,
		`SELECT $1, $3`:                                    `SELECT $1, $3`,
		`SELECT '$' || $1`:                                 `SELECT '$' || $1`,
	} {
		if got := unnamed(query); got != want {
			t.Errorf("unnamed(%q) = %q, want %q", query, got, want)
		}
	}
}
