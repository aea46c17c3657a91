package database

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// A Dialect is a database's variant of SQL. Only code that creates a schema needs to know the dialect.
type Dialect string

// These are the possible dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// textType is the type of text columns.
var textType = regexp.MustCompile(`\bTEXT\b`)

// Schema translates a schema to the dialect. On PostgreSQL, text columns must explicitly be
// compared byte by byte, because the default order depends on the database's locale.
func (d Dialect) Schema(ddl string) string {
	if d == Postgres {
		return textType.ReplaceAllLiteralString(ddl, `TEXT COLLATE "C"`)
	}
	return ddl
}

// Schemas returns a directory whose files are translated to the dialect.
func (d Dialect) Schemas(dir fs.FS) fs.FS { return schemas{dir, d} }

type schemas struct {
	fs.FS
	dialect Dialect
}

func (s schemas) Open(name string) (fs.File, error) {
	file, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return file, err
	}

	ddl, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return schemaFile{file, strings.NewReader(s.dialect.Schema(string(ddl)))}, nil
}

type schemaFile struct {
	fs.File
	ddl *strings.Reader
}

func (f schemaFile) Read(b []byte) (int, error) { return f.ddl.Read(b) }

// HasTable reports whether a table exists. Unlike CREATE TABLE IF NOT EXISTS, HasTable does not need the
// right to create tables.
func (d Dialect) HasTable(ctx context.Context, db *sql.DB, name string) (bool, error) {
	query := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1`
	if d == Postgres {
		query = `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1`
	}
	var n int
	if err := db.QueryRowContext(ctx, query, name).Scan(&n); err != nil {
		return false, fmt.Errorf("looking for table %s: %w", name, err)
	}
	return n > 0, nil
}

// Tables returns the names of the tables that a [Snapshot] contains.
func (d Dialect) Tables(ctx context.Context, db *sql.DB) ([]string, error) {
	query := fileTables
	if d == Postgres {
		query = serverTables
	}
	var r Report
	if err := r.readTables(ctx, db, query); err != nil {
		return nil, fmt.Errorf("listing tables: %w", err)
	}
	return slices.DeleteFunc(r.Tables, func(name string) bool { return strings.HasPrefix(name, ownTables) }), nil
}

// checkText rejects the text that PostgreSQL would reject, so that both databases behave in the same way:
// text that is not UTF-8, or contains a NUL.
func checkText(args []any) error {
	for _, arg := range args {
		var text string
		switch v := arg.(type) {
		case string:
			text = v
		case sql.NullString:
			text = v.String
		case *string:
			if v != nil {
				text = *v
			}
		case nil, int, int64, []byte:
		default:
			if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
				text = v.String()
			}
		}

		if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
			return problem.New(problem.Malformed, "malformed_text", "text is not UTF-8, or has a NUL")
		}
	}
	return nil
}
