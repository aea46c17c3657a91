package database

import (
	"context"
	"crypto/tls"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// A conn is one connection to PostgreSQL. It is used by one goroutine at a time.
type conn struct {
	*pgx.Conn
	socket *socket
	until  time.Time // when it is to be replaced
	bad    bool
}

// connector returns a func that makes connections.
func connector(config *pgx.ConnConfig) func(context.Context) (*conn, error) {
	return func(ctx context.Context) (*conn, error) {
		c, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, refusal(config, err)
		}
		c.TypeMap().RegisterType(&pgtype.Type{Name: "int8", OID: pgtype.Int8OID, Codec: int8Codec{}})
		under := c.PgConn().Conn()
		if t, ok := under.(*tls.Conn); ok {
			under = t.NetConn()
		}
		return &conn{Conn: c, socket: under.(*socket), until: time.Now().Add(lifetime + rand.N(lifetime/4))}, nil
	}
}

// quiet reports whether an idle connection can be used.
func (c *conn) quiet() bool { return c.socket.quiet() }

// usable reports whether a connection may be used by another.
func (c *conn) usable() bool {
	return !c.bad && !c.IsClosed() && c.PgConn().TxStatus() == 'I' && !c.PgConn().IsBusy() &&
		time.Now().Before(c.until)
}

func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// A lostError is the error of a connection, not of a query.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// check marks an error that is the connection's, and a connection whose server
// does not take writes any more.
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

// verify looks at a server before it is used: it must take writes, and have them on
// its disk before it says so.
func verify(c Config) pgconn.ValidateConnectFunc {
	// What a role's default has turned off is turned on; what is stricter stays.
	durable := `SELECT current_setting('synchronous_commit')`
	if c.Sync == Full {
		durable = `SELECT CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END`
	}
	return func(ctx context.Context, pg *pgconn.PgConn) error {
		result := pg.ExecParams(ctx, `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', (`+durable+`)`, nil, nil, nil, nil).Read()
		if result.Err != nil {
			return fmt.Errorf("asking the server what it is: %w", result.Err)
		}
		if string(result.Rows[0][0]) == "t" && !c.ReadOnly {
			return errStandby
		}
		return nil
	}
}

var errStandby = errors.New("the server takes no writes")

// int8Codec reads a BIGINT into a bool, too, as database/sql does.
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
