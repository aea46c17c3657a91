package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A ServerReport holds the settings of a PostgreSQL server that matter to selvage.
type ServerReport struct {
	At      string // host and port
	Role    string
	Name    string // the name of the database
	Version int    // for example, 150018 for 15.18
	Release string // Version as text

	Connections int // the maximum number of connections for all roles together, except superusers
	InUse       int // the number of connections in use

	SynchronousCommit string // setting on connections of package store; may be stricter than the role's default
	Fsync, FullPages  bool   // if either is off, a power cut can damage the database
	Checksums         bool   // whether damaged pages are detected
	Autovacuum        bool
	Standby           bool     // whether the server accepts no writes
	Superuser         bool     // whether the role is a superuser
	Creates           bool     // whether the role may create tables
	Refused           []string // tables that the role cannot read or cannot write
	Encrypted, Local  bool     // whether the connection uses TLS, and whether the server is on this machine
}

// lookServer implements Look for PostgreSQL.
func lookServer(ctx context.Context, c Config) (r Report, err error) {
	c.ReadOnly, c.Sync = true, Full // package store also uses Full
	config, err := c.server()
	if err != nil {
		return r, err
	}

	db := oneConnection(config)
	defer db.Close()
	err = r.inspectServer(ctx, db, config, c)
	var e *pgconn.PgError
	var connect *pgconn.ConnectError
	if errors.As(err, &e) || errors.As(err, &connect) {
		return r, refusal(config, err)
	}
	return r, err
}

// inspectServer reads everything that a Report contains about a server.
func (r *Report) inspectServer(ctx context.Context, db *sql.DB, config *pgx.ConnConfig, c Config) error {
	if err := inspect(ctx, db, config, c, r); err != nil {
		return err
	}
	r.Server = &ServerReport{At: host(config), Role: config.User, Name: config.Database}
	return r.Server.read(ctx, db, []string{"ring", Sessions, Versions})
}

func (r *ServerReport) read(ctx context.Context, db *sql.DB, ours []string) error {
	const query = `SELECT
		CAST(current_setting('server_version_num') AS INTEGER),
		split_part(current_setting('server_version'), ' ', 1),
		CAST(current_setting('max_connections') AS INTEGER) -
			CAST(current_setting('superuser_reserved_connections') AS INTEGER),
		(SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
		current_setting('synchronous_commit'),
		current_setting('fsync') = 'on',
		current_setting('full_page_writes') = 'on',
		current_setting('data_checksums') = 'on',
		current_setting('autovacuum') = 'on',
		pg_is_in_recovery(),
		(SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
		has_schema_privilege(current_schema(), 'CREATE'),
		COALESCE((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE),
		COALESCE(inet_client_addr() = inet_server_addr(), TRUE)`

	err := db.QueryRowContext(ctx, query).Scan(
		&r.Version,
		&r.Release,
		&r.Connections,
		&r.InUse,
		&r.SynchronousCommit,
		&r.Fsync,
		&r.FullPages,
		&r.Checksums,
		&r.Autovacuum,
		&r.Standby,
		&r.Superuser,
		&r.Creates,
		&r.Encrypted,
		&r.Local)
	if err != nil {
		return fmt.Errorf("inspecting the server: %w", err)
	}
	return r.readRefused(ctx, db, ours)
}

// readRefused lists the selvage tables that the role cannot read or cannot write.
func (r *ServerReport) readRefused(ctx context.Context, db *sql.DB, ours []string) error {
	for _, name := range ours {
		var may sql.NullBool // NULL if the table does not exist
		err := db.QueryRowContext(ctx, `
			SELECT BOOL_AND(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
				AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
			FROM pg_class c WHERE c.oid = to_regclass(quote_ident($1))`, name).Scan(&may)
		if err != nil {
			return fmt.Errorf("inspecting privileges: %w", err)
		}
		if may.Valid && !may.Bool {
			r.Refused = append(r.Refused, name)
		}
	}
	return nil
}
