package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// ports holds the open listeners; all but http may be nil.
type ports struct {
	http net.Listener
	tls  net.Listener
	mtls net.Listener // HTTPS with client certificates
	ops  net.Listener
	turn net.Listener
}

// suites are the cipher suites that BCP 195 recommends for TLS 1.2 (RFC 9325, section 4.2). They
// have forward secrecy and authenticated encryption. TLS 1.3 has its own suites.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
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
		handler := ops{
			config:   s.app.Config,
			metrics:  s.metrics,
			needs:    &dependencies{log: s.log, all: s.app.needs()},
			stopping: &s.stopping,
			version:  s.config.Version,
		}.Handler()
		s.ops = newServer(handler, s.log)
		s.servers = append(s.servers, s.ops)
		go func() { s.failed <- s.ops.Serve(s.ports.ops) }()
	}
}

// startTLS serves HTTPS on a listener. auth sets whether the listener asks clients for a
// certificate.
func (s *server) startTLS(h http.Handler, l net.Listener, auth tls.ClientAuthType) {
	secure := newServer(h, s.log)
	secure.TLSConfig = s.certs.TLS()
	secure.TLSConfig.CipherSuites = suites
	secure.TLSConfig.ClientAuth = auth
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
	errs = append(errs, probeSIPS(ctx, conf.ListenSIPS), p.close())
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

// probeSIPS returns an error if an address for phones with TLS cannot be listened on.
func probeSIPS(ctx context.Context, address config.HostPort) error {
	if address == config.Off {
		return nil
	}
	l, err := listenSIPS(ctx, address)
	if err != nil {
		return err
	}
	return l.Close()
}

// close closes all listeners.
func (p ports) close() error {
	var errs []error
	for _, l := range []net.Listener{p.http, p.tls, p.mtls, p.ops, p.turn} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// portIn returns the port of a listener. If l is nil, it returns the default port of HTTPS.
func portIn(l net.Listener) string {
	if l == nil {
		return "8443"
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
