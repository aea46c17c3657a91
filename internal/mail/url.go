package mail

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// A Server is an SMTP server that accepts emails for sending.
type Server struct {
	Host     string
	Port     int
	Implicit bool // use TLS from the start (smtps, RFC 8314) instead of STARTTLS
	Plain    bool // use no TLS, because the server is on loopback or the URL says so
	User     string
	Password string
	Roots    *x509.CertPool // trusted roots; nil means the system's
}

// ErrBox is returned by ParseURL for a URL that selects the [Box] instead of a server.
var ErrBox = errors.New("emails are stored on this server")

// ParseURL parses the URL of a mail server:
//
//   - log: selects the Box, and the error is ErrBox.
//   - smtp://user@host:587 uses STARTTLS or, if the host is this machine, no TLS. The query
//     ?tls=starttls or ?tls=none selects one of them for any host.
//   - smtps://user@host:465 uses TLS from the start.
func ParseURL(raw string) (Server, error) {
	if raw == "log:" {
		return Server{}, ErrBox
	}

	u, err := url.Parse(raw)
	if err != nil || !isServer(u) {
		return Server{}, errors.New("needs log:, smtp://USER@HOST:587 or smtps://USER@HOST:465")
	}
	if _, set := u.User.Password(); set {
		return Server{}, errors.New("contains a password; set mail.password instead")
	}

	port, err := portOf(u)
	if err != nil {
		return Server{}, err
	}
	plain, err := isPlain(u)
	if err != nil {
		return Server{}, err
	}
	return Server{
		Host:     u.Hostname(),
		Port:     port,
		Implicit: u.Scheme == "smtps",
		Plain:    plain,
		User:     u.User.Username(),
	}, nil
}

// isServer reports whether a URL has the scheme and host of a mail server, and no path or fragment.
func isServer(u *url.URL) bool {
	switch {
	case u.Scheme != "smtp" && u.Scheme != "smtps":
		return false
	case u.Path != "" && u.Path != "/":
		return false
	default:
		return u.Hostname() != "" && u.Fragment == ""
	}
}

// portOf returns the port in a URL, or the default port of its scheme.
func portOf(u *url.URL) (int, error) {
	if u.Port() == "" {
		if u.Scheme == "smtps" {
			return 465, nil
		}
		return 587, nil
	}

	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return 0, errors.New("needs a port from 1 to 65535")
	}
	return port, nil
}

// isPlain reports whether a URL selects a connection without TLS.
func isPlain(u *url.URL) (bool, error) {
	implicit := u.Scheme == "smtps"
	plain := !implicit && isLoopback(u.Hostname())
	for name, values := range u.Query() {
		if name != "tls" || len(values) != 1 || implicit {
			return false, fmt.Errorf("has the unknown parameter %q; "+
				"known are tls=none and tls=starttls, for smtp", name)
		}
		switch values[0] {
		case "none":
			plain = true
		case "starttls":
			plain = false
		default:
			return false, errors.New("has an invalid tls parameter: needs tls=none or tls=starttls")
		}
	}
	return plain, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Name returns the server's host and port, without secrets.
func (s Server) Name() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
