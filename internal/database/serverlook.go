package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// A ServerReport says how a PostgreSQL server is set up, as far as it matters here.
type ServerReport struct {
	At      string // host and port
	Role    string
	Name    string // the database
	Version int    // 150018 is 15.18
	Release string // the same as it is shown

	Connections int // that roles without privileges may have together
	InUse       int // connections that there are

	SynchronousCommit string // as rows are written, whatever the role's default
	Fsync, FullPages  bool   // without them a power cut damages the database
	Checksums         bool   // damage of its disk is noticed
	Autovacuum        bool
	Standby           bool // it only reads
	Superuser         bool // the role is one
	Creates           bool // the role may make tables
	Refused           []string
	Encrypted, Local  bool // the connection: by TLS; on this machine
}

// lookServer looks at a server's database.
func lookServer(ctx context.Context, c Config) (r Report, err error) {
	c.ReadOnly, c.Sync = true, Full // the way in which rows are written
	config, err := c.server()
	if err != nil {
		return r, err
	}
	db := oneConnection(config)
	defer db.Close()
	if err = inspect(ctx, db, config, c, &r); err == nil {
		r.Server = &ServerReport{At: host(config), Role: config.User, Name: config.Database}
		err = r.Server.read(ctx, db, []string{"ring", Sessions, Versions})
	}
	var e *pgconn.PgError
	var connect *pgconn.ConnectError
	if errors.As(err, &e) || errors.As(err, &connect) {
		return r, refusal(config, err)
	}
	return r, err
}

func (r *ServerReport) read(ctx context.Context, db *sql.DB, ours []string) error {
	err := db.QueryRowContext(ctx, `SELECT
			CAST(current_setting('server_version_num') AS INTEGER), split_part(current_setting('server_version'), ' ', 1),
			CAST(current_setting('max_connections') AS INTEGER) - CAST(current_setting('superuser_reserved_connections') AS INTEGER),
			(SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
			current_setting('synchronous_commit'), current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
			current_setting('data_checksums') = 'on', current_setting('autovacuum') = 'on', pg_is_in_recovery(),
			(SELECT rolsuper FROM pg_roles WHERE rolname = current_user), has_schema_privilege(current_schema(), 'CREATE'),
			COALESCE((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE),
			COALESCE(inet_client_addr() = inet_server_addr(), TRUE)`).Scan(
		&r.Version, &r.Release, &r.Connections, &r.InUse, &r.SynchronousCommit, &r.Fsync, &r.FullPages,
		&r.Checksums, &r.Autovacuum, &r.Standby, &r.Superuser, &r.Creates, &r.Encrypted, &r.Local)
	if err != nil {
		return fmt.Errorf("looking at the server: %w", err)
	}
	return r.readRefused(ctx, db, ours)
}

// readRefused reads in which of our tables the role may not do what it must.
func (r *ServerReport) readRefused(ctx context.Context, db *sql.DB, ours []string) error {
	for _, name := range ours {
		var may sql.NullBool // none where there is no such table
		err := db.QueryRowContext(ctx, `
			SELECT BOOL_AND(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
				AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
			FROM pg_class c WHERE c.oid = to_regclass(quote_ident($1))`, name).Scan(&may)
		if err != nil {
			return fmt.Errorf("looking at privileges: %w", err)
		}
		if may.Valid && !may.Bool {
			r.Refused = append(r.Refused, name)
		}
	}
	return nil
}
