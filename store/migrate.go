package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/selvage/selvage/internal/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, and refuses one newer than this binary. It gives
// the version that it found.
func migrate(ctx context.Context, db *sql.DB, dialect database.Dialect) (from int64, err error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, fmt.Errorf("reading migrations: %w", err)
	}
	if err := rename(ctx, db, dialect); err != nil {
		return 0, err
	}
	provider, err := goose.NewProvider(gooseDialects[dialect], db, dialect.Schemas(dir),
		goose.WithTableName(database.Versions))
	if err != nil {
		return 0, fmt.Errorf("reading migrations: %w", err)
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading schema version: %w", err)
	}
	if current > target {
		return current, newer(current, target)
	}
	if current == target {
		return current, nil
	}
	if err := keepBefore(ctx, db, dialect, current); err != nil {
		return current, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return 0, fmt.Errorf("updating schema: %w", err)
	}
	return current, nil
}

// rename returns the table of versions the name that is ours alone, where it has the one
// that it had at first. That of another program stays as it is.
func rename(ctx context.Context, db *sql.DB, dialect database.Dialect) error {
	var tables []string
	for _, name := range []string{database.EarlierVersions, "ring", "sequences", "revocations", database.Versions} {
		there, err := dialect.HasTable(ctx, db, name)
		if err != nil {
			return err
		}
		if there {
			tables = append(tables, name)
		}
	}
	if !database.HasEarlier(tables) {
		return nil
	}
	return dialect.Rename(ctx, db, database.EarlierVersions, database.Versions)
}

var gooseDialects = map[database.Dialect]goose.Dialect{database.SQLite: goose.DialectSQLite3,
	database.Postgres: goose.DialectPostgres}

// newer refuses a schema that a later version has made.
func newer(current, known int64) *database.Unfit {
	return &database.Unfit{
		Found:  fmt.Sprintf("the database has schema %d and this selvage knows %d: it was used by a newer version", current, known),
		Remedy: "run that one",
	}
}

// SchemaVersion returns the version of the schema, and the one that this binary
// makes.
func (s *Store) SchemaVersion(ctx context.Context) (current, known int64, err error) {
	if err := s.read().Row(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+database.Versions).Scan(&current); err != nil {
		return 0, 0, fmt.Errorf("reading schema version: %w", err)
	}
	known, err = knownSchema()
	return current, known, err
}

func knownSchema() (known int64, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	for _, file := range files {
		version, versionErr := goose.NumericComponent(file)
		err = errors.Join(err, versionErr)
		known = max(known, version)
	}
	if err != nil {
		return 0, fmt.Errorf("reading migrations: %w", err)
	}
	return known, nil
}
