package database

import (
	"context"
	"crypto/tls"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// A conn is one connection to PostgreSQL. It is used by one goroutine at a time.
type conn struct {
	*pgx.Conn
	socket *socket
	until  time.Time // when the pool replaces this connection
	bad    bool
}

// connector returns a function that opens connections.
func connector(config *pgx.ConnConfig) func(context.Context) (*conn, error) {
	return func(ctx context.Context) (*conn, error) {
		c, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, refusal(config, err)
		}
		c.TypeMap().RegisterType(&pgtype.Type{Name: "int8", OID: pgtype.Int8OID, Codec: int8Codec{}})

		// With TLS, the socket is below the TLS connection.
		under := c.PgConn().Conn()
		if t, ok := under.(*tls.Conn); ok {
			under = t.NetConn()
		}
		return &conn{Conn: c, socket: under.(*socket), until: time.Now().Add(lifetime + rand.N(lifetime/4))}, nil
	}
}

// quiet reports whether an idle connection can be used.
func (c *conn) quiet() bool { return c.socket.quiet() }

// usable reports whether the connection may be put back in the pool.
func (c *conn) usable() bool {
	isIdle := !c.IsClosed() && c.PgConn().TxStatus() == 'I' && !c.PgConn().IsBusy()
	return isIdle && !c.bad && time.Now().Before(c.until) && c.endReads() == nil
}

// endReads ends a read that pgx began in the background during a slow write. This takes a round
// trip. Otherwise the read would exceed its deadline while the connection is idle, and the next
// query would get the error. Most connections have no such read. For them, endReads only takes a
// lock.
func (c *conn) endReads() error { return c.PgConn().SyncConn(context.Background()) }

func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// A lostError is an error after which the connection is closed.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// check wraps err in a lostError if the connection was lost. If the server no longer accepts
// writes, check marks the connection as bad.
func (c *conn) check(err error) error {
	var e *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows):
	case errors.As(err, &e):
		c.bad = c.bad || e.Code == readOnly
	case c.IsClosed():
		return lostError{err}
	}
	return err
}

// verify returns a function that checks a server before it is used. Unless c.ReadOnly is set, the
// server must accept writes. If c.Sync is Full, the function makes the server write changes to disk
// before it acknowledges them.
func verify(c Config) pgconn.ValidateConnectFunc {
	// Turn on synchronous commit if the role's default has turned it off, but keep stricter
	// settings.
	durable := `SELECT current_setting('synchronous_commit')`
	if c.Sync == Full {
		durable = `SELECT CASE WHEN current_setting('synchronous_commit') = 'off'
			THEN set_config('synchronous_commit', 'on', false) END`
	}

	return func(ctx context.Context, pg *pgconn.PgConn) error {
		result := pg.ExecParams(ctx,
			`SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', (`+durable+`)`,
			nil, nil, nil, nil).Read()
		if result.Err != nil {
			return fmt.Errorf("identifying the server: %w", result.Err)
		}
		if string(result.Rows[0][0]) == "t" && !c.ReadOnly {
			return errStandby
		}
		return nil
	}
}

var errStandby = errors.New("the server is read-only")

// int8Codec can also read a BIGINT into a bool, as database/sql does.
type int8Codec struct{ pgtype.Int8Codec }

func (c int8Codec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*bool); ok && format == pgtype.BinaryFormatCode {
		return scanFlag{}
	}
	return c.Int8Codec.PlanScan(m, oid, format, target)
}

type scanFlag struct{}

func (scanFlag) Scan(src []byte, target any) error {
	if len(src) != 8 {
		return fmt.Errorf("a flag has %d bytes, want 8", len(src))
	}
	*target.(*bool) = binary.BigEndian.Uint64(src) != 0
	return nil
}

// dial returns a function that opens connections. A connection fails if nothing arrives for the
// duration patience; 0 means no limit. The kernel sends keep-alive probes, so that it notices if
// the server is gone.
func dial(patience time.Duration) func(context.Context, string, string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable:   true,
		Idle:     3 * time.Second,
		Interval: time.Second,
		Count:    3,
	}}

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		raw, err := conn.(syscall.Conn).SyscallConn()
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return &socket{Conn: conn, raw: raw, patience: patience}, nil
	}
}

// A socket sets its own deadlines. Passing a context to pgx instead would cost a goroutine per
// query.
type socket struct {
	net.Conn
	raw           syscall.RawConn
	patience      time.Duration
	reads, writes deadline
}

// started is when the process started. Deadlines are relative to it, because the clock may be set
// back. A deadline that then seemed to be far away would not be renewed.
var started = time.Now()

// A deadline is the current deadline of reads or writes, in nanoseconds since started.
type deadline struct{ atomic.Int64 }

// extend ensures that the deadline is at least patience away. It adds a second, so that set is
// called at most once a second.
func (d *deadline) extend(patience time.Duration, set func(time.Time) error) error {
	now := time.Now()
	if patience == 0 || d.Load() >= int64(now.Add(patience).Sub(started)) {
		return nil
	}
	until := now.Add(patience + time.Second)
	d.Store(int64(until.Sub(started)))
	return set(until)
}

func (s *socket) Read(b []byte) (int, error) {
	if err := s.reads.extend(s.patience, s.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(b)
	return n, s.silent(err)
}

func (s *socket) Write(b []byte) (int, error) {
	if err := s.writes.extend(s.patience, s.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(b)
	return n, s.silent(err)
}

// silent replaces a timeout error with a permanent one. After a timeout error, pgx would continue
// to use the connection.
func (s *socket) silent(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s does not answer", s.RemoteAddr())
	}
	return err
}

// SetDeadline is called by pgx while it connects.
func (s *socket) SetDeadline(t time.Time) error {
	s.reads.Store(0)
	s.writes.Store(0)
	return s.Conn.SetDeadline(t)
}

// quiet reports whether the server has neither closed the idle connection nor sent anything, such
// as the notice that it will close the connection.
func (s *socket) quiet() (quiet bool) {
	err := s.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EINTR
	})
	return quiet && err == nil
}
