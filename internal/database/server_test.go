package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/test/servers"
)

// serverConfig returns a Config for the server at url, with a long Patience.
func serverConfig(url string) Config {
	return Config{URL: url, Sync: Full, Patience: time.Minute, Ours: hasT, Prepare: makeTable}
}

// openAt opens the database at url with a pool of the given size.
func openAt(t *testing.T, url string, pool int) *server {
	t.Helper()
	return openServerOf(t, serverConfig(url), pool)
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

// run returns a change that runs a query and ignores its rows.
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

	both := func(first, second string) func(Tx) error {
		return func(tx Tx) error { return errors.Join(run(first)(tx), run(second)(tx)) }
	}
	terminateBeforeCommit := func(tx Tx) error {
		var pid int
		if err := tx.Row(context.Background(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		terminate := fmt.Sprintf(`SELECT pg_terminate_backend(%d, 60000)`, pid)
		return errors.Join(
			other.Once(context.Background(), run(terminate)),
			tx.Later(context.Background(), `INSERT INTO t (id) VALUES ('b')`))
	}

	tests := []struct {
		name    string
		change  func(Tx) error
		retries int64
	}{
		{
			name:   "a statement that takes too long",
			change: both(`SELECT set_config('statement_timeout', '50ms', true)`, `SELECT pg_sleep(10)`),
		},
		{
			name:    "a lock that is not granted",
			change:  both(`SELECT set_config('lock_timeout', '50ms', true)`, `UPDATE t SET id = id`),
			retries: 1,
		},
		{
			name:   "a read-only server",
			change: both(`SELECT set_config('transaction_read_only', 'on', true)`, `UPDATE t SET id = id`),
		},
		{
			name:   "a connection that is terminated",
			change: run(`SELECT pg_terminate_backend(pg_backend_pid())`),
		},
		{
			name:   "a connection terminated before the commit",
			change: terminateBeforeCommit,
		},
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
		t.Run(tt.name, func(t *testing.T) {
			before := s.Stats().Retries
			err := s.Change(t.Context(), tt.change)
			if !errors.Is(err, problem.Unavailable) {
				t.Fatalf("Change = %v, want problem.Unavailable", err)
			}
			if wait := problem.First(err).RetryAfter; wait != time.Second {
				t.Errorf("the client may retry after %v, want a second", wait)
			}
			if retries := s.Stats().Retries - before; retries != tt.retries {
				t.Errorf("Change retried %d times, want %d", retries, tt.retries)
			}
			if n := count(t, s); n != 1 {
				t.Errorf("the table has %d rows, want 1", n)
			}
			if n := s.Stats().InUse; n != 0 {
				t.Errorf("%d connections are in use, want 0", n)
			}
		})
	}
}

// TestServerEndsIdle shows that idle connections are not used once the server has closed them.
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
	c := serverConfig(servers.Postgres(t))
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
		t.Errorf("%d connections are open and %d in use, want 2 and 2", got.Open, got.InUse)
	}

	read := func(ctx context.Context) error {
		var n int
		return s.Read().Row(ctx, `SELECT 1`).Scan(&n)
	}
	err := read(t.Context())
	if !errors.Is(err, problem.Unavailable) {
		t.Fatalf("a read without a free connection = %v, want problem.Unavailable", err)
	}
	if want := "none of 2 connections"; !strings.Contains(err.Error(), want) {
		t.Errorf("a read without a free connection = %v, want an error that contains %q", err, want)
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
	eventually(t, "a read to wait for a connection", func() bool { return s.pool.hasWaiting() })

	if err := held[0].Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a read after a connection was freed = %v, want success", err)
	}
	got := s.Stats()
	if got.Waits != waits+1 {
		t.Errorf("%d callers have waited for a connection, want %d", got.Waits, waits+1)
	}
	if got.Waited <= 0 {
		t.Errorf("callers have waited for %v, want more than 0", got.Waited)
	}

	time.AfterFunc(time.Millisecond, func() { _ = held[1].Close() })
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if n := s.Stats().Open; n != 0 {
		t.Errorf("after Close, %d connections are open, want 0", n)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
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
	lock := func(tx Tx, id string) error {
		return run(fmt.Sprintf(`UPDATE t SET id = id WHERE id = '%s'`, id))(tx)
	}

	var bothLocked, changes sync.WaitGroup
	bothLocked.Add(2)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		waited := false
		change := func(tx Tx) error {
			err := lock(tx, order[0])
			if !waited {
				waited = true
				bothLocked.Done()
				bothLocked.Wait()
			}
			if err != nil {
				return err
			}
			return lock(tx, order[1])
		}
		changes.Go(func() {
			if err := s.Change(context.Background(), change); err != nil {
				t.Errorf("a change in the order %s = %v, want success", order, err)
			}
		})
	}

	changes.Wait()
	if n := s.Stats().Retries; n == 0 {
		t.Error("no change was retried, want at least one")
	}
}

// TestServerComesBack shows that a server is used again after an outage.
func TestServerComesBack(t *testing.T) {
	own := servers.OwnPostgres(t)
	s := openAt(t, own.Database(t), 4)
	do(t, s, `INSERT INTO t (id) VALUES ('a')`)

	own.Stop(t)
	for range 3 {
		err := s.Once(t.Context(), insert("b"))
		if !errors.Is(err, problem.Unavailable) {
			t.Errorf("Once while the server is away = %v, want problem.Unavailable", err)
		}
		if errors.Is(err, ErrClosed) {
			t.Errorf("Once while the server is away = %v, want an error other than ErrClosed", err)
		}
	}

	own.Start(t)
	eventually(t, "the server to be used again", func() bool {
		err := s.Once(t.Context(), insert("b"))
		if err != nil && !errors.Is(err, problem.Unavailable) {
			t.Fatalf("Once when the server is back = %v, want success or problem.Unavailable", err)
		}
		return err == nil
	})
	if n := count(t, s); n != 2 {
		t.Errorf("the table has %d rows, want 2", n)
	}
}

// TestSocket shows that reading from a socket returns a permanent error if the server does not
// answer, and that a socket is quiet until the server closes it.
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
	eventually(t, "a closed connection to stop being quiet", func() bool { return !s.quiet() })
}
