package server

import (
	"context"
	"errors"
	"net"
	"strconv"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sip"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/fabric/relay"
)

// openSIP opens the ports for phones, unless they are off, and connects phones with calls.
func (a *App) openSIP(ctx context.Context, c *calls.Config) (err error) {
	plain, secure := a.Config.ListenSIP, a.Config.ListenSIPS
	if plain == config.Off && secure == config.Off {
		return nil
	}

	var udp *net.UDPConn
	var tcp, encrypted net.Listener
	if plain != config.Off {
		udp, tcp, err = listenBoth(ctx, plain)
		if err != nil {
			return listenError(err, plain, "--listen-sip")
		}
	}
	if secure != config.Off {
		encrypted, err = listenSIPS(ctx, secure)
		if err != nil && udp != nil {
			return errors.Join(err, udp.Close(), tcp.Close())
		}
		if err != nil {
			return err
		}
	}

	a.sip = sip.New(sip.Config{
		UDP:        udp,
		TCP:        tcp,
		TLS:        encrypted,
		Fabric:     a.Fabric,
		Sessions:   a.sessions,
		Limits:     a.limits,
		Node:       a.node,
		Alone:      c.Nodes == nil,
		Digests:    a.Config.PhoneDigests,
		AddressFor: a.engine.AddressFor,
		Log:        c.Log,
		MayReach:   a.egress.MayReach,
	})
	a.opened = append(a.opened, a.sip)
	c.Phones = a.sip.Phones
	c.Trunk = a.sip.Trunk
	c.Clients = clients{browsers: a.relay, phones: a.sip}
	return nil
}

// listenSIPS opens the port for phones that use TLS.
func listenSIPS(ctx context.Context, address config.HostPort) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(address))
	if err != nil {
		return nil, listenError(err, address, "--listen-sips")
	}
	return l, nil
}

// secureSIP lets phones connect with TLS: the port for them presents the same certificate as HTTPS.
func (s *server) secureSIP() error {
	if s.app.Config.ListenSIPS == config.Off {
		return nil
	}
	if s.certs == nil {
		return errors.New("--listen-sips needs the certificate of HTTPS; set --listen-tls")
	}
	conf := s.certs.TLS()
	conf.CipherSuites = suites
	conf.NextProtos = nil
	s.app.sip.Secure(conf)
	return nil
}

// clients sends events to browsers and phones.
type clients struct {
	browsers *relay.Relay
	phones   *sip.Server
}

// Tell implements [calls.Clients].
func (c clients) Tell(to calls.Socket, e calls.Event) {
	if to.Phone.IsValid() {
		c.phones.Tell(to, e)
		return
	}
	c.browsers.Tell(to, e)
}

// triesForBoth limits how many times listenBoth looks for a port that is free for both UDP and TCP.
const triesForBoth = 20

// listenBoth listens on the same port number for UDP and TCP.
func listenBoth(ctx context.Context, address config.HostPort) (udp *net.UDPConn, tcp net.Listener, err error) {
	host, port, _ := net.SplitHostPort(string(address)) // the configuration was validated
	var tcpErr error
	var listener net.ListenConfig
	for range triesForBoth {
		conn, err := listener.ListenPacket(ctx, "udp", string(address))
		if err != nil {
			return nil, nil, err
		}
		udp = conn.(*net.UDPConn)
		udpPort := udp.LocalAddr().(*net.UDPAddr).Port
		tcp, err = listener.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(udpPort)))
		if err == nil {
			return udp, tcp, nil
		}
		_ = udp.Close()
		tcpErr = err
		if port != "0" {
			break
		}
	}
	return nil, nil, tcpErr
}
