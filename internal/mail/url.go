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
	Implicit bool // TLS from the start (smtps, RFC 8314) instead of STARTTLS
	Plain    bool // no TLS: on loopback, or if configured
	User     string
	Password string
	Roots    *x509.CertPool // trusted roots; nil means the system's
}

// ErrBox is returned by ParseURL for a URL that selects the [Box] instead of a server.
var ErrBox = errors.New("emails are stored on this server")

// ParseURL parses the URL of a mail server:
//
//   - log: selects the Box, and the error is ErrBox.
//   - smtp://user@host:587 uses STARTTLS. It uses no TLS if the host is this machine, unless the
//     URL ends in ?tls=starttls. ?tls=none disables TLS.
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

	s := Server{Host: u.Hostname(), User: u.User.Username(), Implicit: u.Scheme == "smtps", Port: 587}
	if s.Implicit {
		s.Port = 465
	}
	if port := u.Port(); port != "" {
		s.Port, err = strconv.Atoi(port)
		if err != nil || s.Port < 1 || s.Port > 65535 {
			return s, errors.New("needs a port from 1 to 65535")
		}
	}

	ip := net.ParseIP(s.Host)
	loopback := s.Host == "localhost" || ip != nil && ip.IsLoopback()
	s.Plain = loopback && !s.Implicit

	for name, values := range u.Query() {
		switch {
		case name != "tls" || len(values) != 1 || s.Implicit:
			return s, fmt.Errorf("has the unknown parameter %q; known are tls=none and tls=starttls, for smtp", name)
		case values[0] == "none":
			s.Plain = true
		case values[0] == "starttls":
			s.Plain = false
		default:
			return s, errors.New("has an invalid tls parameter: needs tls=none or tls=starttls")
		}
	}
	return s, nil
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

// Name returns the server's host and port, without secrets.
func (s Server) Name() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
