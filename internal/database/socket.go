package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// dial makes connections that are given up when nothing comes for so long; 0 means
// never. The kernel asks after those that are silent, so that it finds out that the
// other side is gone.
func dial(patience time.Duration) func(context.Context, string, string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second,
		Interval: time.Second, Count: 3}}
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

// A socket gives up by itself on what takes too long: pgx would spend a goroutine
// on each query, to watch its context.
type socket struct {
	net.Conn
	raw           syscall.RawConn
	patience      time.Duration
	reads, writes deadline
}

// A deadline is one that is set, in nanoseconds since 1970.
type deadline struct{ atomic.Int64 }

// ahead sees to it that the deadline is far enough away. It is set a little too far,
// and so once a second at most.
func (d *deadline) ahead(patience time.Duration, set func(time.Time) error) error {
	now := time.Now()
	if patience == 0 || d.Load() >= now.Add(patience).UnixNano() {
		return nil
	}
	until := now.Add(patience + time.Second)
	d.Store(until.UnixNano())
	return set(until)
}

func (s *socket) Read(b []byte) (int, error) {
	if err := s.reads.ahead(s.patience, s.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(b)
	return n, s.silent(err)
}

func (s *socket) Write(b []byte) (int, error) {
	if err := s.writes.ahead(s.patience, s.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(b)
	return n, s.silent(err)
}

// silent makes another error of a timeout: pgx goes on with a connection after one.
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

// quiet reports whether the other side has neither closed an idle connection nor
// said anything, such as that it is about to.
func (s *socket) quiet() (quiet bool) {
	err := s.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EINTR
	})
	return quiet && err == nil
}
