package turn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/pion/turn/v5"
)

// checkTimeout is the maximum duration of a check.
const checkTimeout = 10 * time.Second

// Check connects to the server's URL as a client and allocates an address. Then, it asks for
// permission to send from this address to the media port. It returns the error of the first step
// that fails.
func (s *Server) Check(ctx context.Context) error {
	if len(s.config.Own) == 0 {
		return errors.New("this node has no media address for UDP")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()

	username, password := s.credentials("check", time.Now().Add(checkTimeout))
	family := turn.RequestedAddressFamilyIPv4
	if s.config.Own[0].Addr().Is6() {
		family = turn.RequestedAddressFamilyIPv6
	}

	client, end, err := connect(ctx, s.config.URL, s.config.Roots, turn.ClientConfig{
		Username:               username,
		Password:               password,
		Realm:                  realm,
		RequestedAddressFamily: family,
	})
	if err != nil {
		return err
	}
	defer end()

	relayed, err := client.Allocate()
	if err != nil {
		return fmt.Errorf("asking the TURN server for an address: %w", err)
	}
	defer relayed.Close()
	if err := client.CreatePermission(net.UDPAddrFromAddrPort(s.config.Own[0])); err != nil {
		return fmt.Errorf("asking the TURN server for the media port: %w", err)
	}
	return nil
}

// Reach sends a request to the server at a TURN URL. It returns an error if the server does not
// answer. If roots is nil, it uses the system's certificate authorities.
func Reach(ctx context.Context, url string, roots *x509.CertPool) error {
	client, end, err := connect(ctx, url, roots, turn.ClientConfig{})
	if err != nil {
		return err
	}
	defer end()
	if _, err := client.SendBindingRequest(); err != nil {
		return fmt.Errorf("asking the TURN server: %w", err)
	}
	return nil
}

// connect connects a client to a TURN URL until end is called or ctx is done.
func connect(
	ctx context.Context, url string, roots *x509.CertPool, c turn.ClientConfig,
) (client *turn.Client, end func(), err error) {
	conn, err := dial(ctx, url, roots)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the TURN server: %w", err)
	}
	closeConn := func() { _ = conn.Close() } // no data is left to send
	stop := context.AfterFunc(ctx, closeConn)

	c.Conn = turn.NewSTUNConn(conn)
	c.LoggerFactory = quiet{}
	c.STUNServerAddr = conn.RemoteAddr().String()
	c.TURNServerAddr = c.STUNServerAddr

	client, err = newClient(&c)
	if err != nil {
		stop()
		closeConn()
		return nil, nil, fmt.Errorf("asking the TURN server: %w", err)
	}
	return client, func() {
		stop()
		client.Close()
		closeConn()
	}, nil
}

// newClient returns a client that is reading from its connection.
func newClient(c *turn.ClientConfig) (*turn.Client, error) {
	client, err := turn.NewClient(c)
	if err != nil {
		return nil, err
	}
	return client, client.Listen()
}

// dial connects to a TURN URL.
func dial(ctx context.Context, url string, roots *x509.CertPool) (net.Conn, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	address, _, _ := strings.Cut(rest, "?")
	if scheme == "turns" {
		return (&tls.Dialer{Config: &tls.Config{RootCAs: roots}}).DialContext(ctx, "tcp", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}
