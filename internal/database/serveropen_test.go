package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// TestServerSettings shows that with Full, an acknowledged change is on disk, and that changes run in READ
// COMMITTED, which they require, whatever the defaults of the role are.
func TestServerSettings(t *testing.T) {
	address := servers.Postgres(t)
	for _, tt := range []struct {
		role string // the role's default for synchronous_commit
		sync Sync
		want string
	}{
		{role: "on", sync: Full, want: "on"},
		{role: "off", sync: Full, want: "on"},
		{role: "local", sync: Full, want: "local"},
		{role: "remote_apply", sync: Full, want: "remote_apply"},
		{role: "on", sync: Normal, want: "off"},
	} {
		t.Run(fmt.Sprintf("%s, %s", tt.role, tt.sync), func(t *testing.T) {
			servers.SQL(t, address, fmt.Sprintf(
				"ALTER ROLE CURRENT_USER SET synchronous_commit = %s;\n"+
					"ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable';",
				tt.role))

			c := serverConfig(address)
			c.Sync = tt.sync
			s, err := openServer(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()

			var commit, isolation string
			const query = `SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')`
			if err := s.Read().Row(t.Context(), query).Scan(&commit, &isolation); err != nil {
				t.Fatal(err)
			}
			if commit != tt.want {
				t.Errorf("synchronous_commit is %s, want %s", commit, tt.want)
			}
			if isolation != "read committed" {
				t.Errorf("transaction_isolation is %s, want read committed", isolation)
			}
		})
	}
}

// with returns a URL after a change.
func with(t *testing.T, raw string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// TestServerRefused shows that the error for an unusable database states the cause and a remedy,
// but never the password.
func TestServerRefused(t *testing.T) {
	good := servers.Postgres(t)
	query := func(text string) func(*url.URL) { return func(u *url.URL) { u.RawQuery = text } }
	host := func(text string) func(*url.URL) { return func(u *url.URL) { u.Host = text } }

	tests := []struct {
		name   string
		change func(*url.URL) // of a URL that works
		want   string
	}{
		{
			name:   "an invalid parameter",
			change: query("sslmode=perhaps"),
			want:   "sslmode is invalid",
		},
		{
			name:   "a missing file",
			change: query("sslmode=verify-full&sslrootcert=/nowhere"),
			want:   "/nowhere",
		},
		{
			name:   "no TLS",
			change: query("sslmode=require"),
			want:   "cannot be reached: server refused TLS connection",
		},
		{
			name:   "an unknown setting",
			change: query("wrong=1"),
			want:   `unrecognized configuration parameter "wrong"`,
		},
		{
			name:   "the wrong password",
			change: func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hush/hush") },
			want:   "rejects the password of role test_",
		},
		{
			name:   "an unknown role",
			change: func(u *url.URL) { u.User = url.UserPassword("nobody", "hush/hush") },
			want:   "rejects the password of role nobody",
		},
		{
			name:   "an unknown database",
			change: func(u *url.URL) { u.Path = "/nothing" },
			want:   "has no database nothing; create it: CREATE DATABASE nothing OWNER test_",
		},
		{
			name:   "no server",
			change: host("127.0.0.1:1"),
			want:   "PostgreSQL at 127.0.0.1:1 cannot be reached: connection refused; start it",
		},
		{
			name:   "no host",
			change: host("nowhere.invalid"),
			want:   "PostgreSQL at nowhere.invalid:5432 cannot be reached: ",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantRefused(t, serverConfig(with(t, good, tt.change)), tt.want)
		})
	}

	t.Run("no URL", func(t *testing.T) {
		c := serverConfig("postgres://a:hush%2Fhush@[")
		wantRefused(t, c, "the PostgreSQL URL is invalid; write it as postgres://")
	})
	t.Run("a password that looks like a port", func(t *testing.T) {
		wantRefused(t, serverConfig("postgres://a:hush/hush@h/db"), "the PostgreSQL URL is invalid")
	})
}

// TestDatabaseRefused shows that a database that belongs to another program, or that does not permit
// what the server needs, is refused with an error that states the cause.
func TestDatabaseRefused(t *testing.T) {
	tests := []struct{ name, prepare, want string }{
		{
			name: "another program's",
			prepare: `CREATE TABLE users (id INT);
				CREATE TABLE goose_db_version (id INT, version_id BIGINT, is_applied BOOLEAN)`,
			want: "the database belongs to another program: it has tables goose_db_version, users, " +
				"but none of selvage's; use another database, or an empty one",
		},
		{
			name:    "another program's with a table named like one of ours",
			prepare: `CREATE TABLE ring (id INT); CREATE TABLE goose_db_version (id INT)`,
			want:    "the database belongs to another program: it has tables goose_db_version, ring",
		},
		{
			name: "a read-only database",
			prepare: `DO $$ BEGIN
				EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
			END $$`,
			want: "is a standby, or this role is read-only",
		},
		{
			name:    "no schema",
			prepare: `ALTER ROLE CURRENT_USER SET search_path = nowhere`,
			want:    "can use no schema in its search_path",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := servers.Postgres(t)
			servers.SQL(t, address, tt.prepare)
			wantRefused(t, serverConfig(address), tt.want)
		})
	}
}

// wantRefused checks that Open returns an error that contains want, but not the password.
func wantRefused(t *testing.T, c Config, want string) {
	t.Helper()
	_, err := Open(t.Context(), c)
	var unfit *Unfit
	if !errors.As(err, &unfit) {
		t.Fatalf("Open = %v, want an Unfit", err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("Open = %v, want an error that contains %q", err, want)
	}

	secrets := []string{"hush/hush", "hush%2Fhush", c.URL}
	if u, err := url.Parse(c.URL); err == nil {
		if password, ok := u.User.Password(); ok {
			secrets = append(secrets, password)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("Open = %v, want an error without the password", err)
		}
	}
}

// TestServerURLs shows that if a URL names several hosts, hosts that do not answer are skipped, and that
// tables are created in the schema that the URL's search_path names. Without an sslmode, a server
// that has no certificate is used without TLS.
func TestServerURLs(t *testing.T) {
	skipping := func(u *url.URL) { u.Host = "127.0.0.1:1," + u.Host }
	openAt(t, with(t, servers.Postgres(t), skipping), 1)

	address := servers.Postgres(t)
	servers.SQL(t, address, `CREATE SCHEMA apart; CREATE TABLE users (id INT)`)
	s := openAt(t, with(t, address, func(u *url.URL) { u.RawQuery = "search_path=apart" }), 1)
	var tables int
	const query = `SELECT count(*) FROM pg_tables WHERE tablename = 't' AND schemaname = 'apart'`
	if err := s.Read().Row(t.Context(), query).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables != 1 {
		t.Errorf("%d tables are in the schema of the search path, want 1", tables)
	}
}

// TestServerWithoutRights shows that if the role may not create tables, the error says so, and that the
// role does not need this right once the tables exist.
func TestServerWithoutRights(t *testing.T) {
	own := servers.OwnPostgres(t)
	owner := own.Database(t)
	own.SQL(t, `CREATE ROLE guest LOGIN PASSWORD 'hush-hush'`)
	guest := with(t, owner, func(u *url.URL) { u.User = url.UserPassword("guest", "hush-hush") })

	c := serverConfig(guest)
	c.Prepare = makeMissingTable
	wantRefused(t, c, "does not let role guest create tables in database test_")

	openAt(t, owner, 1)
	servers.SQL(t, owner, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest`)

	d, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	do(t, d, `INSERT INTO t (id) VALUES ('a')`)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// makeMissingTable creates a table unless the table exists. If it exists, the right to create tables is not
// needed.
func makeMissingTable(ctx context.Context, db *sql.DB, d Dialect) error {
	exists, err := d.HasTable(ctx, db, "t")
	if err != nil || exists {
		return err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE t (id TEXT PRIMARY KEY)`)
	return err
}

// TestServerEncoding shows that a database whose encoding is not UTF-8 is refused.
func TestServerEncoding(t *testing.T) {
	own := servers.OwnPostgres(t)
	own.SQL(t, `CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'`)
	latin := with(t, own.URL, func(u *url.URL) { u.Path = "/latin" })
	wantRefused(t, serverConfig(latin),
		"the database's encoding is LATIN1, not UTF8; create one with: CREATE DATABASE latin")
}

// TestOpenServerTogether shows that if a database on a server is opened several times at once, its
// schema is created once.
func TestOpenServerTogether(t *testing.T) {
	c := serverConfig(servers.Postgres(t))
	c.Prepare = makeMissingTable
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d, err := Open(context.Background(), c)
			if err != nil {
				t.Error(err)
				return
			}
			_ = d.Close()
		})
	}
	wg.Wait()
}
