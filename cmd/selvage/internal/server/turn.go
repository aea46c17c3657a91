package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/turn"
	"github.com/selvage/selvage/cmd/selvage/internal/ca"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
)

// openTURN starts the TURN server. It uses TLS if this server has a certificate. Otherwise it uses
// plain TCP, and a proxy in front provides TLS.
func (s *server) openTURN() error {
	a := s.app
	if a.engine == nil {
		return errors.New("--listen-turn needs calls, which --listen-media or --services turns off")
	}

	advertised, local := a.engine.UDP()
	c := turn.Config{
		Listener: s.ports.turn,
		URL:      turnURL(a.Config, a.Where.Public, s.ports),
		Own:      advertised,
		Local:    local,
		Longest:  calls.LongestCall,
		Secret:   a.Ring.Derive("TURN credentials"),
		Log:      s.log,
	}

	if a.mediaNodes != nil {
		c.Others = a.mediaNodes.addresses
	}
	if s.certs != nil {
		conf := s.certs.TLS()
		conf.CipherSuites = suites
		conf.NextProtos = nil
		c.Listener = tls.NewListener(c.Listener, conf)
	}

	if authority, ok := s.certs.(*ca.Authority); ok {
		c.Roots = systemRoots()
		c.Roots.AddCert(authority.Certificate())
	}
	var err error
	s.turn, err = turn.New(c)
	if err != nil {
		return err
	}

	a.opened = append(a.opened, s.turn)
	a.relay.OfferICE(func(t fabric.Token) []relay.ICEServer {
		var offered []relay.ICEServer
		for _, server := range s.turn.ICEServers(t.Caller(), t.ExpiresAt) {
			offered = append(offered, relay.ICEServer(server))
		}
		return offered
	})
	return nil
}

// systemRoots returns the system's authorities, or none if they cannot be read.
func systemRoots() *x509.CertPool {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return x509.NewCertPool()
	}
	return roots
}

// turnURL returns the URL at which clients reach the TURN server.
func turnURL(c config.Config, public string, p ports) string {
	if c.TURNURL != "" {
		return string(c.TURNURL)
	}
	scheme := "turn"
	if p.tls != nil || p.mtls != nil { // the server then has a certificate
		scheme = "turns"
	}
	host := "localhost"
	if u, err := url.Parse(public); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return fmt.Sprintf("%s:%s?transport=tcp", scheme, net.JoinHostPort(host, portIn(p.turn)))
}
