package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/test/servers"
)

// at returns a Config for the server at url, with a long Patience.
func at(url string) Config {
	return Config{URL: url, Sync: Full, Patience: time.Minute, Ours: hasT, Prepare: makeTable}
}

// openAt opens the database at url with a pool of the given size.
func openAt(t *testing.T, url string, pool int) *server {
	t.Helper()
	return openServerOf(t, at(url), pool)
}

func openServerOf(t *testing.T, c Config, pool int) *server {
	t.Helper()
	c.Pool = pool
	s, err := openServer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func run(query string) func(Tx) error {
	return func(tx Tx) error {
		rows, err := tx.Query(context.Background(), query)
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return rows.Close()
	}
}

func do(t *testing.T, d DB, query string) {
	t.Helper()
	if err := d.Once(t.Context(), run(query)); err != nil {
		t.Fatal(err)
	}
}

// TestServerAway shows that changes return problem.Unavailable if the server fails, and that the
// pool still works afterwards.
func TestServerAway(t *testing.T) {
	url := servers.Postgres(t)
	s := openAt(t, url, 1)
	other := openAt(t, url, 2)
	do(t, s, `INSERT INTO t (id) VALUES ('a')`)

	tests := []struct {
		name    string
		do      func(Tx) error
		retries int64
	}{
		{"a statement that takes too long", func(tx Tx) error {
			return errors.Join(run(`SELECT set_config('statement_timeout', '50ms', true)`)(tx),
				run(`SELECT pg_sleep(10)`)(tx))
		}, 0},
		{"a lock that is not granted", func(tx Tx) error {
			return errors.Join(run(`SELECT set_config('lock_timeout', '50ms', true)`)(tx),
				run(`UPDATE t SET id = id`)(tx))
		}, 1},
		{"a read-only server", func(tx Tx) error {
			return errors.Join(run(`SELECT set_config('transaction_read_only', 'on', true)`)(tx),
				run(`UPDATE t SET id = id`)(tx))
		}, 0},
		{"a connection that is terminated", func(tx Tx) error {
			return run(`SELECT pg_terminate_backend(pg_backend_pid())`)(tx)
		}, 0},
		{"a connection terminated before the commit", func(tx Tx) error {
			var pid int
			if err := tx.Row(context.Background(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
				return err
			}
			return errors.Join(other.Once(context.Background(),
				run(fmt.Sprintf(`SELECT pg_terminate_backend(%d, 60000)`, pid))),
				tx.Later(context.Background(), `INSERT INTO t (id) VALUES ('b')`))
		}, 0},
	}

	// Another connection holds the row's lock during all cases.
	held, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	go func() {
		_ = other.Change(context.Background(), func(tx Tx) error {
			err := run(`SELECT id FROM t FOR UPDATE`)(tx)
			close(held)
			<-release
			return err
		})
	}()
	<-held

	for _, tt := range tests {
		before := s.Stats().Retries
		if err := s.Change(t.Context(), tt.do); !errors.Is(err, problem.Unavailable) ||
			problem.First(err).RetryAfter != time.Second {
			t.Errorf("%s: Change = %v, want Unavailable with a retry after a second", tt.name, err)
		}
		if got := s.Stats().Retries - before; got != tt.retries {
			t.Errorf("%s: %d retries, want %d", tt.name, got, tt.retries)
		}
		if n := count(t, s); n != 1 {
			t.Errorf("%s: %d rows, want 1", tt.name, n)
		}
		if got := s.Stats(); got.InUse != 0 {
			t.Errorf("%s: %+v, want no connection in use", tt.name, got)
		}
	}
}

// TestServerEndsIdle shows that an idle connection that the server has closed is not used.
func TestServerEndsIdle(t *testing.T) {
	url := servers.Postgres(t)
	s, other := openAt(t, url, 2), openAt(t, url, 1)
	do(t, s, `INSERT INTO t (id) VALUES ('a')`)
	for range 3 {
		// Because of the timeout, pg_terminate_backend waits until the other backends have ended.
		do(t, other,
			`SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND datname = current_database()`)
		if n := count(t, s); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
		do(t, s, `UPDATE t SET id = id`)
	}
}

// TestServerPool shows that a caller waits if all connections are in use, but not forever.
func TestServerPool(t *testing.T) {
	c := at(servers.Postgres(t))
	c.Patience = 0 // the default
	s := openServerOf(t, c, 2)

	var held []Rows
	for range 2 {
		rows, err := s.Read().Query(t.Context(), `SELECT 1`)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, rows)
	}
	if got := s.Stats(); got.Open != 2 || got.InUse != 2 {
		t.Errorf("Stats = %+v, want 2 of 2 connections in use", got)
	}

	read := func(ctx context.Context) (err error) {
		var n int
		return s.Read().Row(ctx, `SELECT 1`).Scan(&n)
	}
	if err := read(t.Context()); !errors.Is(err, problem.Unavailable) ||
		!strings.Contains(err.Error(), "none of 2 connections") {
		t.Errorf("a read without a free connection = %v, want unavailable", err)
	}

	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping, which needs no free connection, returned %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a read with a canceled context = %v, want canceled", err)
	}

	waits := s.Stats().Waits
	done := make(chan error)
	go func() { done <- read(context.Background()) }()
	for !s.pool.hasWaiting() {
		time.Sleep(time.Millisecond)
	}

	if err := held[0].Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a read after a connection was freed = %v, want success", err)
	}
	if got := s.Stats(); got.Waits != waits+1 || got.Waited <= 0 {
		t.Errorf("Stats = %+v, want one more wait", got)
	}

	time.AfterFunc(time.Millisecond, func() { _ = held[1].Close() })
	if err := s.Close(); err != nil || s.Stats().Open != 0 {
		t.Errorf("Close = %v, after which Stats are %+v, want no error and no open connection", err, s.Stats())
	}
}

// hasWaiting reports whether a caller is waiting for a connection.
func (p *pool) hasWaiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}

// TestDeadlock shows that if two changes deadlock, both succeed in the end.
func TestDeadlock(t *testing.T) {
	s := openAt(t, servers.Postgres(t), 2)
	do(t, s, `INSERT INTO t (id) VALUES ('a'), ('b')`)
	var both, ended sync.WaitGroup
	both.Add(2)

	for _, order := range []string{"ab", "ba"} {
		first := true
		ended.Go(func() {
			err := s.Change(context.Background(), func(tx Tx) error {
				err := run(fmt.Sprintf(`UPDATE t SET id = id WHERE id = '%c'`, order[0]))(tx)
				if first {
					first = false
					both.Done()
					both.Wait()
				}
				if err != nil {
					return err
				}
				return run(fmt.Sprintf(`UPDATE t SET id = id WHERE id = '%c'`, order[1]))(tx)
			})
			if err != nil {
				t.Errorf("a change in the order %s = %v, want success", order, err)
			}
		})
	}

	ended.Wait()
	if got := s.Stats(); got.Retries == 0 {
		t.Errorf("Stats = %+v, want a retry", got)
	}
}

// TestServerSettings shows that an acknowledged change is on disk whatever the role's defaults
// are, and that changes run in READ COMMITTED, as they require.
func TestServerSettings(t *testing.T) {
	settings := func(s *server) (text string) {
		err := s.Read().Row(t.Context(),
			`SELECT current_setting('synchronous_commit') || ', ' || current_setting('transaction_isolation')`,
		).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}

	url := servers.Postgres(t)
	for _, tt := range []struct {
		role string
		sync Sync
		want string
	}{
		{"on", Full, "on"}, {"off", Full, "on"}, {"local", Full, "local"},
		{"remote_apply", Full, "remote_apply"}, {"on", Normal, "off"},
	} {
		servers.SQL(t, url, fmt.Sprintf(
			"ALTER ROLE CURRENT_USER SET synchronous_commit = %s;\n"+
				"ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable';",
			tt.role))

		c := at(url)
		c.Sync = tt.sync
		s, err := openServer(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}

		if got, want := settings(s), tt.want+", read committed"; got != want {
			t.Errorf("a role with synchronous_commit %s, %s: the setting is %s, want %s", tt.role, tt.sync, got, want)
		}
		_ = s.Close()
	}
}

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
	const hush = "hush%2Fhush"
	user := func(u *url.URL) string { return u.User.Username() }
	tests := []struct {
		name, url, want string
	}{
		{"no URL", "postgres://a:" + hush + "@[", "the PostgreSQL URL is invalid; write it as postgres://"},
		{"a password that looks like a port", "postgres://a:hush/hush@h/db", "the PostgreSQL URL is invalid"},
		{"an invalid parameter", with(t, good, func(u *url.URL) { u.RawQuery = "sslmode=perhaps" }),
			"sslmode is invalid"},
		{"a missing file", with(t, good, func(u *url.URL) {
			u.RawQuery = "sslmode=verify-full&sslrootcert=/nowhere"
		}), "/nowhere"},
		{"the wrong password", with(t, good, func(u *url.URL) {
			u.User = url.UserPassword(user(u), "hush/hush")
		}), "rejects the password of role test_"},
		{"an unknown role", with(t, good, func(u *url.URL) {
			u.User = url.UserPassword("nobody", "hush/hush")
		}), "rejects the password of role nobody"},
		{"an unknown database", with(t, good, func(u *url.URL) { u.Path = "/nothing" }),
			"has no database nothing; create it: CREATE DATABASE nothing OWNER test_"},
		{"no server", with(t, good, func(u *url.URL) { u.Host = "127.0.0.1:1" }),
			"PostgreSQL at 127.0.0.1:1 cannot be reached: connection refused; start it"},
		{"no host", with(t, good, func(u *url.URL) { u.Host = "nowhere.invalid" }),
			"PostgreSQL at nowhere.invalid:5432 cannot be reached: "},
		{"no TLS", with(t, good, func(u *url.URL) { u.RawQuery = "sslmode=require" }),
			"cannot be reached: server refused TLS connection"},
		{"an unknown setting", with(t, good, func(u *url.URL) { u.RawQuery = "wrong=1" }),
			`unrecognized configuration parameter "wrong"`},
	}

	for _, tt := range tests {
		refused(t, tt.name, at(tt.url), tt.want)
	}

	for _, tt := range []struct{ name, prepare, want string }{
		{"another program's",
			`CREATE TABLE users (id INT);
			CREATE TABLE goose_db_version (id INT, version_id BIGINT, is_applied BOOLEAN)`,
			"the database belongs to another program: it has tables goose_db_version, users"},
		{"another program's with a table named like one of ours",
			`CREATE TABLE ring (id INT); CREATE TABLE goose_db_version (id INT)`,
			"the database belongs to another program: it has tables goose_db_version, ring"},
		{"one that only reads",
			`DO $$ BEGIN
				EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
			END $$`,
			"is a standby, or this role is read-only"},
		{"no schema", `ALTER ROLE CURRENT_USER SET search_path = nowhere`, "can use no schema in its search_path"},
	} {
		url := servers.Postgres(t)
		servers.SQL(t, url, tt.prepare)
		refused(t, tt.name, at(url), tt.want)
	}
}

func refused(t *testing.T, name string, c Config, want string) {
	t.Helper()
	_, err := Open(t.Context(), c)
	var unfit *Unfit
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: Open = %v, want %s", name, err, want)
	}

	u, parsed := url.Parse(c.URL)
	for _, secret := range []string{"hush/hush", "hush%2Fhush", c.URL} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: Open = %v, which contains the password", name, err)
		}
	}
	if parsed == nil {
		if secret, ok := u.User.Password(); ok && err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: Open = %v, which contains the password", name, err)
		}
	}
}

// TestServerURLs shows that if a URL names several hosts, hosts that do not answer are skipped.
// Tables are created in the schema that the URL's search_path names.
func TestServerURLs(t *testing.T) {
	url1, url2 := servers.Postgres(t), servers.Postgres(t)
	servers.SQL(t, url2, `CREATE SCHEMA apart; CREATE TABLE users (id INT)`)
	tables := func(s *server) (n int) {
		if err := s.Read().Row(t.Context(),
			`SELECT count(*) FROM pg_tables WHERE tablename = 't' AND schemaname = 'apart'`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	openAt(t, with(t, url1, func(u *url.URL) { u.Host = "127.0.0.1:1," + u.Host }), 1)
	if n := tables(openAt(t, with(t, url2, func(u *url.URL) { u.RawQuery = "search_path=apart" }), 1)); n != 1 {
		t.Errorf("%d tables in the schema of the search path, want 1", n)
	}
}

// TestServerWithoutRights shows that a role without the right to create tables gets a clear error,
// but does not need the right once the tables exist.
func TestServerWithoutRights(t *testing.T) {
	own := servers.OwnPostgres(t)
	owner := own.Database(t)
	own.SQL(t, `CREATE ROLE guest LOGIN PASSWORD 'hush-hush'`)
	guest := with(t, owner, func(u *url.URL) { u.User = url.UserPassword("guest", "hush-hush") })

	plain := at(guest)
	plain.Prepare = func(ctx context.Context, db *sql.DB, d Dialect) error {
		if there, err := d.HasTable(ctx, db, "t"); there || err != nil {
			return err
		}
		return makeTable(ctx, db, d)
	}
	refused(t, "no right to make tables", plain, "does not let role guest create tables in database test_")

	openAt(t, owner, 1)
	servers.SQL(t, owner, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest`)

	d, err := Open(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	do(t, d, `INSERT INTO t (id) VALUES ('a')`)
	if err := d.Close(); err != nil {
		t.Error(err)
	}

	own.SQL(t, `CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'`)
	refused(t, "a different encoding", at(with(t, own.URL, func(u *url.URL) { u.Path = "/latin" })),
		"the database's encoding is LATIN1, not UTF8; create one with: CREATE DATABASE latin")
}

// TestOpenServerTogether shows that if several processes start together, the server's schema is
// created once.
func TestOpenServerTogether(t *testing.T) {
	c := at(servers.Postgres(t))
	c.Prepare = func(ctx context.Context, db *sql.DB, d Dialect) error {
		if there, err := d.HasTable(ctx, db, "t"); there || err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, `CREATE TABLE t (id TEXT PRIMARY KEY)`)
		return err
	}

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

// TestServerComesBack shows that a server is used again after an outage.
func TestServerComesBack(t *testing.T) {
	own := servers.OwnPostgres(t)
	s := openAt(t, own.Database(t), 4)
	do(t, s, `INSERT INTO t (id) VALUES ('a')`)

	own.Stop(t)
	for range 3 {
		if err := s.Once(t.Context(), insert("b")); !errors.Is(err, problem.Unavailable) ||
			errors.Is(err, ErrClosed) {
			t.Errorf("Once while the server is away = %v, want unavailable", err)
		}
	}

	own.Start(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := s.Once(t.Context(), insert("b"))
		if err == nil {
			break
		}
		if !errors.Is(err, problem.Unavailable) || time.Now().After(deadline) {
			t.Fatalf("Once when the server is back = %v, want success within the deadline", err)
		}
	}

	if n := count(t, s); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// TestSocket shows that reading from a socket returns a permanent error if the server does not
// answer.
func TestSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	c, err := dial(20*time.Millisecond)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}

	s := c.(*socket)
	if !s.quiet() {
		t.Error("an unused connection is not quiet")
	}

	_, err = s.Read(make([]byte, 1))
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("Read = %v, want an error that is not a timeout, since pgx would retry after one", err)
	}

	_ = other.Close()
	for deadline := time.Now().Add(time.Minute); s.quiet(); {
		if time.Now().After(deadline) {
			t.Fatal("a closed connection still counts as quiet")
		}
	}
}
