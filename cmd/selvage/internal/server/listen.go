package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// The limits of a connection. A client that neither sends nor takes anything
// for patience is gone; slower than a KiB a second in the long run is as good as
// gone.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	patience      = 30 * time.Second
	minRate       = 1 << 10 // bytes a second, of an upload
	writeChunk    = 256 << 10
	maxHeader     = 32 << 10
)

// newServer returns a server with the limits that hold on every listener.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,
			SendPingTimeout:      patience,
			PingTimeout:          headerTimeout,
			WriteByteTimeout:     patience,
		},
	}
}

// listen opens the address of a flag.
func listen(ctx context.Context, address config.HostPort, flag string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(address))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listening on %s: another program does so already; stop it, or choose another address with %s (port 0 is any that is free)", address, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listening on %s: not permitted; choose a port from 1024 on with %s, or give the binary CAP_NET_BIND_SERVICE", address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listening on %s: this machine does not have that address; choose one that it has with %s", address, flag)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return patientListener{l.(*net.TCPListener), patience}, nil
}

// A patientListener accepts connections whose writes give up on a reader that
// takes nothing.
type patientListener struct {
	*net.TCPListener
	patience time.Duration
}

func (l patientListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return &patientConn{TCPConn: c, patience: l.patience}, nil
}

// loaded is when the program began.
var loaded = time.Now()

type patientConn struct {
	*net.TCPConn
	patience time.Duration
	renewed  atomic.Int64 // when writes were given all of patience, as a [time.Duration] after loaded; 0 where they got another deadline since
}

// SetDeadline is of net.Conn.
func (c *patientConn) SetDeadline(t time.Time) error {
	c.renewed.Store(0)
	return c.TCPConn.SetDeadline(t)
}

// SetWriteDeadline is of net.Conn.
func (c *patientConn) SetWriteDeadline(t time.Time) error {
	c.renewed.Store(0)
	return c.TCPConn.SetWriteDeadline(t)
}

// renew returns the next write its time: all of patience, or up to a thirtieth less, so
// that a deadline is not set for each of many small answers.
func (c *patientConn) renew() error {
	now := time.Since(loaded) // of the monotonic clock, as deadlines are
	if at := time.Duration(c.renewed.Load()); at > 0 && now-at < c.patience/30 {
		return nil
	}
	err := c.TCPConn.SetWriteDeadline(time.Now().Add(c.patience))
	c.renewed.Store(int64(now))
	return err
}

func (c *patientConn) Write(p []byte) (int, error) {
	if err := c.renew(); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(p)
}

// ReadFrom sends a file through the kernel (sendfile), in chunks that each have
// their time.
func (c *patientConn) ReadFrom(src io.Reader) (sent int64, err error) {
	limited, ok := src.(*io.LimitedReader)
	if !ok {
		limited = &io.LimitedReader{R: src, N: 1<<63 - 1}
	}
	for limited.N > 0 {
		if err := c.renew(); err != nil {
			return sent, err
		}
		n, err := c.TCPConn.ReadFrom(&io.LimitedReader{R: limited.R, N: min(writeChunk, limited.N)})
		sent += n
		limited.N -= n
		if err != nil || n == 0 {
			return sent, err
		}
	}
	return sent, nil
}

// patientBodies returns up on bodies that do not arrive. It changes the request, so
// that must be a copy: what net/http does with the rest of a body depends on the
// type of its own (a client that waits for 100 Continue would wait for ever).
func patientBodies(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			b := &patientBody{ReadCloser: r.Body, conn: http.NewResponseController(w), patience: patience,
				began: time.Now()}
			b.extend(b.began) // what the handler leaves unread must arrive in time, too
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

// A patientBody extends the deadline of its connection by what has arrived.
type patientBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	patience time.Duration
	began    time.Time
	extended time.Time // when the deadline was set: once a second is enough
	read     int64
}

func (b *patientBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.extended) > time.Second {
		b.extend(now)
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF {
		_ = b.conn.SetReadDeadline(time.Time{}) // or it would end the answer
	}
	return n, err
}

func (b *patientBody) extend(now time.Time) {
	earned := time.Duration(b.read/minRate) * time.Second
	_ = b.conn.SetReadDeadline(b.began.Add(b.patience + min(now.Sub(b.began), earned))) // a writer of a test has none
	b.extended = now
}
