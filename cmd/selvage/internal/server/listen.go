package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
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
	minRate       = 1 << 10 // minimum rate of an upload, in bytes per second
	writeChunk    = 256 << 10
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
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(want.address))
	if errors.Is(err, syscall.EADDRINUSE) && want.yields {
		host, _, _ := net.SplitHostPort(string(want.address))
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0")); err == nil {
			log.Warn("another program uses the port; using a free one", "wanted", string(want.address),
				"address", l.Addr().String(), "flag", want.flag)
		}
	}
	if err != nil {
		return nil, listenError(err, want.address, want.flag)
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

// loaded is the time at which the program started.
var loaded = time.Now()

type patientConn struct {
	*net.TCPConn
	patience time.Duration

	// renewed is when renew last set the write deadline, as a time.Duration since loaded. It is 0
	// if another method has changed the deadline since.
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
	now := time.Since(loaded) // monotonic clock, which deadlines also use
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

func (b *patientBody) extend(now time.Time) {
	earned := time.Duration(b.read/minRate) * time.Second
	// SetReadDeadline fails only for the response recorders in tests, which have no deadlines.
	_ = b.conn.SetReadDeadline(b.began.Add(b.patience + min(now.Sub(b.began), earned)))
	b.extended = now
}

// ports holds the open listeners; all but http may be nil.
type ports struct {
	http, tls, mtls, ops, turn net.Listener
}

// suites are the cipher suites that BCP 195 recommends for TLS 1.2 (RFC 9325, section 4.2). They
// have forward secrecy and authenticated encryption. TLS 1.3 has its own suites.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
}

// start serves on all listeners.
func (s *server) start(h http.Handler) {
	public := newServer(h, s.log)
	s.servers = append(s.servers, public)
	go func() { s.failed <- public.Serve(s.ports.http) }()
	if s.ports.tls != nil {
		s.startTLS(h, s.ports.tls, tls.NoClientCert)
	}
	if s.ports.mtls != nil {
		// Accept any certificate. The settings of the OAuth client decide whether it is valid.
		s.startTLS(h, s.ports.mtls, tls.RequestClientCert)
	}

	if s.ports.ops != nil {
		s.ops = newServer(ops{
			config:   s.app.Config,
			metrics:  s.metrics,
			needs:    &dependencies{log: s.log, all: s.app.needs()},
			stopping: &s.stopping,
			version:  s.config.Version,
		}.Handler(), s.log)
		s.servers = append(s.servers, s.ops)
		go func() { s.failed <- s.ops.Serve(s.ports.ops) }()
	}
}

// startTLS serves HTTPS on a listener. auth sets whether the listener asks clients for a
// certificate.
func (s *server) startTLS(h http.Handler, l net.Listener, auth tls.ClientAuthType) {
	secure := newServer(h, s.log)
	secure.TLSConfig = s.certs.TLS()
	secure.TLSConfig.CipherSuites, secure.TLSConfig.ClientAuth = suites, auth
	s.servers = append(s.servers, secure)
	go func() { s.failed <- secure.ServeTLS(l, "", "") }()
}

// openPorts opens all listeners. If some cannot be opened, it closes the others. The error names
// all that cannot be opened, including those for media and SIP.
//
// If another program uses the default port of listen_tls or listen_ops, openPorts uses a free port
// instead, unless the configuration sets the port or, for HTTPS, a certificate.
func openPorts(ctx context.Context, c Config, log *slog.Logger) (p ports, err error) {
	conf := c.Config
	var errs []error
	open := func(address config.HostPort, flag string, yields bool) net.Listener {
		l, err := listen(ctx, wanted{address: address, flag: flag, yields: yields}, log)
		errs = append(errs, err)
		return l
	}

	p.http = open(conf.Listen, "--listen", false)
	p.tls = open(conf.TLSAddress(), "--listen-tls", conf.ListenTLS == config.Auto && conf.LocalCertificate())
	p.mtls = open(conf.ListenMTLS, "--listen-mtls", false)
	p.ops = open(conf.ListenOps, "--listen-ops", !c.IsSet("listen_ops"))
	p.turn = open(conf.ListenTURN, "--listen-turn", false)
	if errors.Join(errs...) == nil {
		return p, nil
	}

	if conf.ListenMedia != config.Auto {
		errs = append(errs, probe(ctx, conf.ListenMedia, "--listen-media"))
	}
	errs = append(errs, probe(ctx, conf.ListenSIP, "--listen-sip"))
	if conf.ListenSIPS != config.Off {
		l, err := listenSIPS(ctx, conf.ListenSIPS)
		if err == nil {
			err = l.Close()
		}
		errs = append(errs, err)
	}
	errs = append(errs, p.close())
	return p, errors.Join(errs...)
}

// probe returns an error if an address for UDP and TCP cannot be listened on.
func probe(ctx context.Context, address config.HostPort, flag string) error {
	if address == config.Off {
		return nil
	}
	udp, tcp, err := listenBoth(ctx, address)
	if err != nil {
		return listenError(err, address, flag)
	}
	return errors.Join(udp.Close(), tcp.Close())
}

func (p ports) close() (err error) {
	for _, l := range []net.Listener{p.http, p.tls, p.mtls, p.ops, p.turn} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

func portIn(l net.Listener) string {
	if l == nil {
		return "8443"
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
