// Package inbox is an SMTP server for tests, which keeps the emails that it receives. It supports
// STARTTLS, TLS and a password, and can refuse emails or be unavailable.
package inbox

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// These are the credentials that a server with Auth accepts.
const (
	User     = "selvage@example.com"
	Password = "smtp-fathom-lantern"
)

// Config configures a server. With the zero value, the server speaks plain SMTP, without a password
// and without SMTPUTF8.
type Config struct {
	TLS  bool // STARTTLS, required before any email
	Full bool // TLS from the first byte
	Auth bool // requires User and Password
	UTF8 bool // supports SMTPUTF8
}

// A Mail is an email that the server accepted.
type Mail struct {
	From, To string // addresses in the envelope
	Raw      string
	Header   mail.Header
	Subject  string // decoded subject
	Text     string
	HTML     string
	Secure   bool // the email was received over TLS
	User     string
}

var link = regexp.MustCompile(`https?://\S+\?token=\S+`)

// Link returns the link with a token in the text, or "" if there is none.
func (m Mail) Link() string { return link.FindString(m.Text) }

// A Server is an SMTP server that keeps emails.
type Server struct {
	Address string // host:port
	CAFile  string // PEM file of its certificate authority; "" without TLS

	t      testing.TB
	config Config
	tls    *tls.Config
	mu     sync.Mutex
	srv    *smtp.Server
	mails  []Mail
	refuse error
}

// Start starts a server on a free port of 127.0.0.1. The server is stopped at the end of the test.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	s := &Server{t: t, config: c, Address: "127.0.0.1:0"}
	if c.TLS || c.Full {
		s.certify()
	}
	s.Up()
	t.Cleanup(s.Down)
	return s
}

// Up starts the server again after Down, at the same address.
func (s *Server) Up() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Address = l.Addr().String()

	srv := smtp.NewServer(smtp.BackendFunc(s.begin))
	srv.Domain, srv.TLSConfig = "localhost", s.tls
	srv.AllowInsecureAuth, srv.EnableSMTPUTF8 = !s.config.TLS, s.config.UTF8
	srv.ErrorLog = log.New(io.Discard, "", 0)
	if s.config.Full {
		srv.TLSConfig = nil
		l = tls.NewListener(l, s.tls)
	}

	s.mu.Lock()
	s.srv = srv
	s.mu.Unlock()
	go func() { _ = srv.Serve(l) }() // returns after Down
}

// Down stops the server. Nothing then listens on its address.
func (s *Server) Down() {
	s.mu.Lock()
	srv := s.srv
	s.srv = nil
	s.mu.Unlock()
	if srv != nil {
		_ = srv.Close()
	}
}

// Refuse makes the server reject every recipient with an SMTP code. 0 accepts them again.
func (s *Server) Refuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = nil
	if code != 0 {
		s.refuse = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "no"}
	}
}

// Mails returns the emails accepted so far.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// To returns the emails accepted so far for an address.
func (s *Server) To(address string) (all []Mail) {
	for _, m := range s.Mails() {
		if m.To == address {
			all = append(all, m)
		}
	}
	return all
}

// Port returns the port of the server's address.
func (s *Server) Port() string { _, port, _ := net.SplitHostPort(s.Address); return port }

func (s *Server) begin(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: c}, nil
}

// A session is the state of one connection.
type session struct {
	server *Server
	conn   *smtp.Conn
	user   string
	mail   Mail
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != Password {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) secure() bool {
	_, ok := s.conn.TLSConnectionState()
	return ok || s.server.config.Full
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	switch {
	case s.server.config.TLS && !s.secure():
		return &smtp.SMTPError{
			Code:         530,
			EnhancedCode: smtp.EnhancedCode{5, 7, 0},
			Message:      "Must issue a STARTTLS command first",
		}
	case s.server.config.Auth && s.user == "":
		return smtp.ErrAuthRequired
	}
	s.mail = Mail{From: from, Secure: s.secure(), User: s.user}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refuse != nil {
		return s.server.refuse
	}
	s.mail.To = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}

	m := s.mail
	m.Raw = string(raw)
	if err := m.parse(); err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
	}

	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, m)
	return nil
}

func (s *session) Reset()        { s.mail = Mail{} }
func (s *session) Logout() error { return nil }

// parse reads the headers and the text and HTML parts of the email.
func (m *Mail) parse() error {
	msg, err := mail.ReadMessage(strings.NewReader(m.Raw))
	if err != nil {
		return err
	}
	m.Header = msg.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject")); err != nil {
		return err
	}

	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return errors.Join(err, errors.New("not multipart/alternative: "+kind))
	}

	parts := multipart.NewReader(msg.Body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}

		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			return err
		}
		body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			m.HTML = string(body)
		} else {
			m.Text = string(body)
		}
	}
}

// certify creates a self-signed certificate for localhost.
func (s *Server) certify() {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "inbox"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		DNSNames:              []string{"localhost"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}

	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion: tls.VersionTLS12}

	s.CAFile = filepath.Join(s.t.TempDir(), "inbox-ca.pem")
	if err := os.WriteFile(s.CAFile,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
