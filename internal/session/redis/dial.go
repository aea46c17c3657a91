package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

func tlsConfig(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("reading the ca of the Redis URL: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the ca of the Redis URL: %s has no PEM certificate", ca)
		}
	}

	if (cert == "") != (key == "") {
		return nil, errors.New("the Redis URL needs both cert and key, or neither")
	}

	if cert != "" {
		ours, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading cert and key of the Redis URL: %w", err)
		}
		c.Certificates = []tls.Certificate{ours}
	}
	return c, nil
}

// dial connects to a server of the location, with TLS if the URL says so.
func (l location) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 30 * time.Second} // the deadline comes from ctx
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is not TCP", address), raw.Close())
	}

	c := &conn{Conn: tcp, tcp: tcp}
	if l.tls == nil {
		return c, nil
	}

	config := l.tls.Clone()
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	secure := tls.Client(tcp, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("agreeing on TLS with %s: %w", address, err), c.Close())
	}
	c.Conn = secure
	return c, nil
}

// A conn is a connection that discards unsent data when it is closed. This keeps an abandoned command
// from reaching the server later, when the network has recovered and the entry has been written
// elsewhere.
type conn struct {
	net.Conn
	tcp *net.TCPConn
}

// Close closes the connection immediately.
func (c *conn) Close() error {
	_ = c.tcp.SetLinger(0) // fails if it is already closed
	return c.Conn.Close()
}

// SyscallConn allows the pool to notice that the server has closed the connection, even with TLS.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return c.tcp.SyscallConn() }
