package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/idna"
)

// sendFor is how long an SMTP server may take for a message.
const sendFor = 30 * time.Second

// An SMTP gives messages to a server, one a connection. A password is sent over TLS
// alone, or to this machine.
type SMTP struct{ Server Server }

var _ Transport = SMTP{}

// Send returns a message to the server.
func (s SMTP) Send(ctx context.Context, m Message) error {
	msg, err := m.build()
	if err != nil {
		return err
	}
	c, err := s.client()
	if err != nil {
		return fmt.Errorf("preparing SMTP: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	err = s.give(ctx, c, msg)
	var failed *gomail.SendError
	if errors.As(err, &failed) && failed.ErrorCode() >= 500 &&
		(failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPDataClose) {
		return &refused{fmt.Errorf("%s: %w", s.Server.Name(), err)}
	}
	if err != nil && !msg.IsDelivered() {
		return fmt.Errorf("%s: %w", s.Server.Name(), err)
	}
	return nil // it was taken; whether the server says goodbye does not matter
}

// give sends by a connection of its own.
func (s SMTP) give(ctx context.Context, c *gomail.Client, msg *gomail.Msg) (err error) {
	conn, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.CloseWithSMTPClient(conn)) }()
	to, err := msg.GetRecipients()
	if err != nil {
		return err
	}
	if known, _ := conn.Extension("SMTPUTF8"); !known && !isASCII(to[0]) {
		return &refused{fmt.Errorf("the server knows ASCII addresses alone (it has no SMTPUTF8, RFC 6531), and %q is none", to[0])}
	}
	return c.SendWithSMTPClient(conn, msg)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (s SMTP) client() (*gomail.Client, error) {
	opts := []gomail.Option{
		gomail.WithPort(s.Server.Port), gomail.WithTimeout(sendFor),
		gomail.WithTLSConfig(&tls.Config{ServerName: s.Server.Host, RootCAs: s.Server.Roots,
			MinVersion: tls.VersionTLS12}),
	}
	switch {
	case s.Server.Implicit:
		opts = append(opts, gomail.WithSSL())
	case s.Server.Plain:
		opts = append(opts, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.Server.User != "" {
		auth := gomail.SMTPAuthAutoDiscover // the strongest that there is, and nothing readable without TLS
		if s.Server.Plain && isLocal(s.Server.Host) {
			auth = gomail.SMTPAuthPlain // go-mail lets it go to this machine alone
		}
		opts = append(opts, gomail.WithSMTPAuth(auth), gomail.WithUsername(s.Server.User),
			gomail.WithPassword(s.Server.Password))
	}
	return gomail.NewClient(s.Server.Host, opts...)
}

func isLocal(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// refused is an error that another attempt would not change.
type refused struct{ error }

func (r *refused) Unwrap() error { return r.error }

// Refused reports whether a letter was refused for good.
func Refused(err error) bool {
	var r *refused
	return errors.As(err, &r)
}

// build makes the MIME message: text and HTML of the same (RFC 2046, section 5.1.4).
func (m Message) build() (*gomail.Msg, error) {
	to, err := asciiDomain(m.To)
	if err != nil {
		return nil, &refused{err}
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := msg.FromFormat(oneLine(m.From.Name), m.From.Address); err != nil {
		return nil, fmt.Errorf("mail.from is no address: %w", err)
	}
	if err := msg.To(to); err != nil {
		return nil, &refused{fmt.Errorf("%q cannot be written to: %w", m.To, err)}
	}
	if m.ReplyTo != "" {
		if err := msg.ReplyTo(m.ReplyTo); err != nil {
			return nil, fmt.Errorf("mail.reply_to is no address: %w", err)
		}
	}
	_, host, _ := strings.Cut(m.From.Address, "@")
	msg.SetMessageIDWithValue(m.ID + "@" + host)
	msg.SetDate()
	msg.Subject(oneLine(m.Subject))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834, section 5: nothing answers it by itself
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	if m.Logo != nil {
		if err := msg.EmbedReader("logo.png", bytes.NewReader(m.Logo), gomail.WithFileContentID("<logo>"), gomail.WithFileContentType("image/png")); err != nil {
			return nil, fmt.Errorf("adding logo: %w", err)
		}
	}
	return msg, nil
}

// asciiDomain writes the domain of an address as DNS has it (RFC 5891). The part before
// it stays as it is: where that is not ASCII the server must know SMTPUTF8 (RFC 6531), or refuses it.
func asciiDomain(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 1 || !utf8.ValidString(address) || oneLine(address) != address {
		return "", fmt.Errorf("%q is no address", address)
	}
	host, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", fmt.Errorf("the domain of %q cannot be written to: %w", address, err)
	}
	return address[:at+1] + host, nil
}
