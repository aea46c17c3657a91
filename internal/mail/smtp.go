package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/idna"
)

// sendFor is how long sending a message to an SMTP server may take.
const sendFor = 30 * time.Second

// An SMTP sends messages to a server, one per connection. It sends a password only over TLS, or to
// this machine.
type SMTP struct{ Server Server }

var _ Transport = SMTP{}

// Send sends a message to the server.
func (s SMTP) Send(ctx context.Context, m Message) error {
	msg, err := m.build()
	if err != nil {
		return err
	}

	var d dialer
	defer d.close()
	c, err := s.client(&d)
	if err != nil {
		return fmt.Errorf("preparing SMTP: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()

	err = s.transmit(ctx, c, msg)
	if isPermanent(err) {
		return &refused{fmt.Errorf("%s: %w", s.Server.Name(), err)}
	}
	if err != nil && !msg.IsDelivered() {
		return fmt.Errorf("%s: %w", s.Server.Name(), err)
	}
	return nil // accepted; a later error, such as on QUIT, does not matter
}

// isPermanent reports whether the server answered the recipient or the content with a 5xx code.
func isPermanent(err error) bool {
	var failed *gomail.SendError
	if !errors.As(err, &failed) || failed.ErrorCode() < 500 {
		return false
	}
	return failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPDataClose
}

// transmit sends a message over its own connection.
func (s SMTP) transmit(ctx context.Context, c *gomail.Client, msg *gomail.Msg) (err error) {
	conn, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.CloseWithSMTPClient(conn))
		_ = conn.Close() // still open if the server has not answered QUIT
	}()

	recipients, err := msg.GetRecipients()
	if err != nil {
		return err
	}

	to := recipients[0]
	if supported, _ := conn.Extension("SMTPUTF8"); !supported && !isASCII(to) {
		return &refused{fmt.Errorf(
			"the server accepts only ASCII addresses (it lacks SMTPUTF8, RFC 6531), but %q is not ASCII", to)}
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

// A dialer connects to a server, and closes the connection. go-mail leaves the connection open if
// anything fails before the first email, for example if the password is wrong.
type dialer struct {
	tls  *tls.Config // for TLS from the start; nil means none
	conn net.Conn
}

func (d *dialer) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	if d.tls != nil {
		conn, err = (&tls.Dialer{Config: d.tls}).DialContext(ctx, network, address)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
	}
	d.conn = conn
	return conn, err
}

// close closes the connection, if there is one. It may be closed already.
func (d *dialer) close() {
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

func (s SMTP) client(d *dialer) (*gomail.Client, error) {
	config := &tls.Config{
		ServerName: s.Server.Host,
		RootCAs:    s.Server.Roots,
		MinVersion: tls.VersionTLS12,
	}
	opts := []gomail.Option{
		gomail.WithPort(s.Server.Port),
		gomail.WithTimeout(sendFor),
		gomail.WithTLSConfig(config),
		gomail.WithDialContextFunc(d.dial),
	}

	switch {
	case s.Server.Implicit:
		d.tls = config
		opts = append(opts, gomail.WithSSL()) // never STARTTLS, which a server behind a proxy may offer
	case s.Server.Plain:
		opts = append(opts, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}

	if s.Server.User != "" {
		opts = append(opts,
			s.authentication(),
			gomail.WithUsername(s.Server.User),
			gomail.WithPassword(s.Server.Password))
	}
	return gomail.NewClient(s.Server.Host, opts...)
}

// authentication returns the option that selects the strongest authentication method available. It
// permits a plain password without TLS only on this machine.
func (s SMTP) authentication() gomail.Option {
	switch {
	case s.Server.Implicit:
		// SMTPAuthAutoDiscover would not consider a plain password, because go-mail has not dialed itself.
		return gomail.WithOpportunisticSMTPAuth(methods...)
	case s.Server.Plain && isLocal(s.Server.Host):
		return gomail.WithSMTPAuth(gomail.SMTPAuthPlain) // go-mail permits this only for this machine
	}
	return gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover)
}

// methods lists the methods that SMTPAuthAutoDiscover tries with TLS, the strongest first.
var methods = []gomail.SMTPAuthType{
	gomail.SMTPAuthSCRAMSHA256PLUS,
	gomail.SMTPAuthSCRAMSHA256,
	gomail.SMTPAuthSCRAMSHA1PLUS,
	gomail.SMTPAuthSCRAMSHA1,
	gomail.SMTPAuthNTLM,
	gomail.SMTPAuthCramMD5,
	gomail.SMTPAuthPlain,
	gomail.SMTPAuthLogin,
}

func isLocal(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// refused is an error that retrying would not fix.
type refused struct{ error }

func (r *refused) Unwrap() error { return r.error }

// Refused reports whether err means that a letter was refused permanently.
func Refused(err error) bool {
	var r *refused
	return errors.As(err, &r)
}

// build returns the MIME message, which contains both the text and the HTML (RFC 2046, section
// 5.1.4).
func (m Message) build() (*gomail.Msg, error) {
	to, err := asciiDomain(m.To)
	if err != nil {
		return nil, &refused{err}
	}

	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := msg.FromFormat(oneLine(m.From.Name), m.From.Address); err != nil {
		return nil, fmt.Errorf("mail.from is not an email address: %w", err)
	}

	if err := msg.To(to); err != nil {
		return nil, &refused{fmt.Errorf("%q is not a valid address: %w", m.To, err)}
	}

	if m.ReplyTo != "" {
		if err := msg.ReplyTo(m.ReplyTo); err != nil {
			return nil, fmt.Errorf("mail.reply_to is not an email address: %w", err)
		}
	}

	_, host, _ := strings.Cut(m.From.Address, "@")
	msg.SetMessageIDWithValue(m.ID + "@" + host)
	msg.SetDate()
	msg.Subject(oneLine(m.Subject))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // prevents automatic replies (RFC 3834, section 5)
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")

	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)

	if m.Logo != nil {
		err := msg.EmbedReader("logo.png", bytes.NewReader(m.Logo),
			gomail.WithFileContentID("<logo>"), gomail.WithFileContentType("image/png"))
		if err != nil {
			return nil, fmt.Errorf("adding logo: %w", err)
		}
	}
	return msg, nil
}

// asciiDomain converts the domain of an address to ASCII (RFC 5891). It leaves the local part
// unchanged. If the local part is not ASCII, only a server with SMTPUTF8 (RFC 6531) accepts it.
func asciiDomain(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 1 || !utf8.ValidString(address) || oneLine(address) != address {
		return "", fmt.Errorf("%q is not an email address", address)
	}
	host, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", fmt.Errorf("the domain of %q is invalid: %w", address, err)
	}
	return address[:at+1] + host, nil
}
