package database

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// A slowConn is a connection. If slow is set, the next Write returns only after two reads have
// begun.
type slowConn struct {
	net.Conn
	slow    bool
	begun   chan struct{} // receives a value when a read begins; nil before the slow write
	reading atomic.Int32  // the reads in progress
}

func (c *slowConn) Read(b []byte) (int, error) {
	c.reading.Add(1)
	defer c.reading.Add(-1)
	select {
	case c.begun <- struct{}{}:
	default:
	}
	return c.Conn.Read(b)
}

func (c *slowConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.slow {
		c.slow = false
		<-c.begun
		<-c.begun
	}
	return n, err
}

// TestEndReads shows that no read is in progress when a connection returns to the pool, even if pgx
// began a read during a slow write. The deadline of such a read would expire while the connection is
// idle.
func TestEndReads(t *testing.T) {
	config, err := serverConfig(servers.Postgres(t)).server()
	if err != nil {
		t.Fatal(err)
	}
	var slow *slowConn
	dialed := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		under, err := dialed(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s := under.(*socket)
		slow = &slowConn{Conn: s.Conn}
		s.Conn = slow
		return s, nil
	}
	c, err := connector(config)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()

	slow.slow, slow.begun = true, make(chan struct{}, 10)
	if _, err := c.PgConn().Exec(t.Context(), `SELECT 1`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if n := slow.reading.Load(); n != 1 {
		t.Fatalf("%d reads are in progress after a slow write, want 1", n)
	}
	if !c.usable() {
		t.Error("the connection is not usable after a slow write")
	}
	if n := slow.reading.Load(); n != 0 {
		t.Errorf("%d reads are in progress when the connection returns to the pool, want 0", n)
	}
}
