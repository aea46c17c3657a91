package database

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
)

// A Dialect is what a database speaks. Only who makes its schema has to know.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// text is the type of columns of text.
var text = regexp.MustCompile(`\bTEXT\b`)

// Schema writes a schema in the dialect: PostgreSQL, too, shall compare text by its
// bytes, whatever language a database was made for.
func (d Dialect) Schema(ddl string) string {
	if d == Postgres {
		return text.ReplaceAllLiteralString(ddl, `TEXT COLLATE "C"`)
	}
	return ddl
}

// Schemas returns a directory whose files are written in the dialect.
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

// HasTable tells whether there is a table, without the right to make it.
func (d Dialect) HasTable(ctx context.Context, db *sql.DB, name string) (there bool, err error) {
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

// Rename returns a table another name.
func (d Dialect) Rename(ctx context.Context, db *sql.DB, from, to string) error {
	if _, err := db.ExecContext(ctx, `ALTER TABLE `+from+` RENAME TO `+to); err != nil {
		return fmt.Errorf("renaming table %s: %w", from, err)
	}
	return nil
}
