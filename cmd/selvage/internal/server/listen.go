package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// These are the limits of a connection. During a request, the server closes the connection if the
// client neither sends nor receives anything for patience. It also closes the connection if the
// average rate of an upload falls below minRate.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	patience      = 30 * time.Second
	minRate       = 1 << 10   // minimum rate of an upload, in bytes per second
	writeChunk    = 256 << 10 // bytes of a file that are sent with one deadline
	maxHeader     = 32 << 10
)

// An errorLog receives what net/http logs. Failed connections, such as broken TLS handshakes, are
// logged at level debug. If no connection can be accepted, for example because there are no free
// file descriptors, a warning is logged.
type errorLog struct{ *slog.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.HasPrefix(line, []byte("http: Accept error")) {
		level = slog.LevelWarn
	}
	l.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}

// newServer returns an HTTP server with the limits that all listeners share.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          stdlog.New(errorLog{log}, "", 0),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100,
			SendPingTimeout:      patience,
			PingTimeout:          headerTimeout,
			WriteByteTimeout:     patience,
		},
	}
}

// A wanted is an address to listen on.
type wanted struct {
	address config.HostPort
	flag    string // flag that sets the address; errors name it
	yields  bool   // use any free port instead if another program uses the address
}

// listen listens on an address. It returns nil if the address is off.
func listen(ctx context.Context, want wanted, log *slog.Logger) (net.Listener, error) {
	if want.address == config.Off {
		return nil, nil
	}
	var listener net.ListenConfig
	l, err := listener.Listen(ctx, "tcp", string(want.address))
	usesFree := errors.Is(err, syscall.EADDRINUSE) && want.yields
	if usesFree {
		host, _, _ := net.SplitHostPort(string(want.address))
		l, err = listener.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, listenError(err, want.address, want.flag)
	}
	if usesFree {
		log.Warn("another program uses the port; using a free one",
			"wanted", string(want.address), "address", l.Addr().String(), "flag", want.flag)
	}
	return patientListener{l.(*net.TCPListener), patience}, nil
}

// listenError explains why an address cannot be listened on, and names the flag that sets it.
func listenError(err error, address config.HostPort, flag string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listening on %s: another program uses the address; "+
			"stop it, or choose another address with %s (port 0 for any free port)", address, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listening on %s: not permitted; "+
			"choose a port of at least 1024 with %s, or give the binary CAP_NET_BIND_SERVICE", address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listening on %s: this machine does not have the address; choose another with %s",
			address, flag)
	}
	return fmt.Errorf("listening on %s: %w", address, err)
}

// A patientListener accepts connections whose writes fail if the client receives nothing for
// patience.
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

// started is the time at which the program started.
var started = time.Now()

// A patientConn is a connection whose writes fail if the client receives nothing for patience.
type patientConn struct {
	*net.TCPConn
	patience time.Duration

	// renewed is when renew last set the write deadline, as a time.Duration since started. It is 0 if
	// another method has changed the deadline in the meantime.
	renewed atomic.Int64
}

// SetDeadline implements net.Conn.
func (c *patientConn) SetDeadline(t time.Time) error {
	c.renewed.Store(0)
	return c.TCPConn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn. net/http calls it with the zero time after each request.
// SetWriteDeadline then keeps the deadline, because each write sets its own anyway.
func (c *patientConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.renewed.Store(0)
	return c.TCPConn.SetWriteDeadline(t)
}

// renew sets the write deadline to patience from now. It does nothing if the deadline was renewed
// within the last patience/30, so that many small writes share one deadline.
func (c *patientConn) renew() error {
	now := time.Since(started) // monotonic clock, which deadlines also use
	renewed := time.Duration(c.renewed.Load())
	if renewed > 0 && now-renewed < c.patience/30 {
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

// ReadFrom sends a file through the kernel (sendfile), in chunks that each have a deadline.
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

// patientBodies aborts reading a request body that stops arriving. It replaces the body of the
// request, so the request must be a copy of net/http's. net/http checks the type of its original
// body to decide how to treat the unread rest. Without the copy, a client waiting for 100 Continue
// would wait forever.
func patientBodies(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			b := &patientBody{
				ReadCloser: r.Body,
				conn:       http.NewResponseController(w),
				patience:   patience,
				began:      time.Now(),
			}
			b.extend(b.began) // also sets a deadline for the part that the handler does not read
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

// A patientBody extends the deadline of its connection as bytes arrive.
type patientBody struct {
	io.ReadCloser
	conn     *http.ResponseController
	patience time.Duration
	began    time.Time
	extended time.Time // when the deadline was last extended, which happens at most once a second
	read     int64
}

func (b *patientBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.extended) > time.Second {
		b.extend(now)
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF {
		_ = b.conn.SetReadDeadline(time.Time{}) // otherwise the deadline would end the response
	}
	return n, err
}

// extend sets the read deadline according to what has arrived.
func (b *patientBody) extend(now time.Time) {
	earned := time.Duration(b.read/minRate) * time.Second
	// SetReadDeadline fails only for the response recorders in tests, which have no deadlines.
	_ = b.conn.SetReadDeadline(b.began.Add(b.patience + min(now.Sub(b.began), earned)))
	b.extended = now
}
