package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// schemaLock is the number of the advisory lock that a process holds while it changes selvage's
// schema.
const schemaLock = 0x73656c76616765 // "selvage"

// prepareServer inspects a database. Unless c.ReadOnly is set, it also creates or updates the
// schema.
func prepareServer(ctx context.Context, config *pgx.ConnConfig, c Config) error {
	db := oneConnection(config)
	defer db.Close()

	err := inspect(ctx, db, config, c, nil)
	if err == nil && !c.ReadOnly {
		if err = lockSchema(ctx, db); err == nil {
			err = c.Prepare(ctx, db, Postgres)
		}
	}

	var e *pgconn.PgError
	var connect *pgconn.ConnectError
	if errors.As(err, &e) || errors.As(err, &connect) {
		return refusal(config, err)
	}
	return err
}

// oneConnection returns a pool with a single connection. If the connection is lost, it is not replaced,
// because the lock that it held is lost, too. Statements have no timeout, since a migration may take a
// long time.
func oneConnection(config *pgx.ConnConfig) *sql.DB {
	config = withoutTimeLimits(config)
	config.RuntimeParams["lock_timeout"] = millis(patience)
	db := sql.OpenDB(&once{Connector: stdlib.GetConnector(*config)})
	db.SetMaxOpenConns(1)
	return db
}

// withoutTimeLimits returns a copy of a configuration for connections whose statements and transactions
// have no time limit.
func withoutTimeLimits(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	config.DialFunc = dial(0)
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	return config
}

// once is a connector that connects only once.
type once struct {
	driver.Connector
	done atomic.Bool
}

func (o *once) Connect(ctx context.Context) (driver.Conn, error) {
	if o.done.Swap(true) {
		return nil, errors.New("the connection to PostgreSQL was lost while the schema was created")
	}
	return o.Connector.Connect(ctx)
}

// lockSchema takes the schema lock. The lock is released when the connection is closed.
func lockSchema(ctx context.Context, db *sql.DB) error {
	deadline := time.Now().Add(patience)
	for {
		var ours bool
		if err := db.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, schemaLock).Scan(&ours); err != nil {
			return fmt.Errorf("locking schema: %w", err)
		}
		if ours {
			return nil
		}

		if time.Now().After(deadline) {
			return fmt.Errorf("locking schema: another selvage process has been changing it for %s", patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// inspect returns an error if selvage cannot or must not use the database. If report is not nil, inspect
// also fills it in.
func inspect(ctx context.Context, db *sql.DB, config *pgx.ConnConfig, c Config, report *Report) error {
	var schema sql.NullString
	var encoding string
	err := db.QueryRowContext(ctx,
		`SELECT current_schema(), current_setting('server_encoding')`).Scan(&schema, &encoding)
	if err != nil {
		return fmt.Errorf("inspecting the database: %w", err)
	}

	switch {
	case encoding != "UTF8":
		return &Unfit{
			Found: fmt.Sprintf("the database's encoding is %s, not UTF8", encoding),
			Remedy: fmt.Sprintf("create one with: CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'",
				config.Database),
		}
	case !schema.Valid:
		return &Unfit{
			Found:  fmt.Sprintf("role %s can use no schema in its search_path", config.User),
			Remedy: fmt.Sprintf("GRANT CREATE, USAGE ON SCHEMA public TO %s", config.User),
		}
	}

	r := Report{}
	if err := r.readTables(ctx, db, serverTables); err != nil {
		return fmt.Errorf("inspecting the database: %w", err)
	}
	if len(r.Tables) > 0 && !c.Ours(r.Tables) {
		return foreign(r.Tables, "use another database, or an empty one")
	}

	if report == nil {
		return nil // the rest is needed only for a report, and takes longer in large databases
	}
	if err := r.readServer(ctx, db); err != nil {
		return fmt.Errorf("inspecting the database: %w", err)
	}
	*report = r
	return nil
}

// readServer reads the applied migrations and the size of a database whose tables are known.
func (r *Report) readServer(ctx context.Context, db *sql.DB) error {
	if err := r.readSchema(ctx, db); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, `SELECT pg_database_size(current_database())`).Scan(&r.Size)
}
