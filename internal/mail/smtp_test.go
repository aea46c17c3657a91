package mail_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	stdmail "net/mail"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/test/inbox"
)

func message(to string) mail.Message {
	return mail.Message{
		ID:      "0190",
		From:    stdmail.Address{Name: "Acmé", Address: "no-reply@acme.example"},
		To:      to,
		Subject: "Grüße",
		Text:    "text of it\n",
		HTML:    "<p>html of it</p>",
	}
}

// transport returns a transport that connects to s with the user and password of the inbox. The URL
// of the server ends with the given query.
func transport(t *testing.T, s *inbox.Server, scheme, query string) mail.SMTP {
	t.Helper()
	address := url.URL{
		Scheme:   scheme,
		User:     url.User(inbox.User),
		Host:     "localhost:" + s.Port(),
		RawQuery: query,
	}
	to, err := mail.ParseURL(address.String())
	if err != nil {
		t.Fatal(err)
	}

	to.Password = inbox.Password
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		to.Roots = x509.NewCertPool()
		to.Roots.AppendCertsFromPEM(pem)
	}
	return mail.SMTP{Server: to}
}

// anonymous returns a transport that connects to s without a user, and without TLS.
func anonymous(t *testing.T, s *inbox.Server) mail.SMTP {
	t.Helper()
	to := transport(t, s, "smtp", "")
	to.Server.User = ""
	return to
}

// TestSend shows that an email sent with a password reaches a real server: over TLS, or without TLS if the
// server is on this machine.
func TestSend(t *testing.T) {
	tests := []struct {
		name          string
		scheme, query string
		server        inbox.Config
		secure        bool
	}{
		{
			name:   "STARTTLS",
			scheme: "smtp",
			query:  "tls=starttls",
			server: inbox.Config{TLS: true, Auth: true},
			secure: true,
		},
		{
			name:   "TLS",
			scheme: "smtps",
			server: inbox.Config{Full: true, Auth: true},
			secure: true,
		},
		{
			name:   "this machine",
			scheme: "smtp",
			server: inbox.Config{Auth: true},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := inbox.Start(t, tt.server)
			sent := message("ada@example.com")
			if err := transport(t, s, tt.scheme, tt.query).Send(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
			received := s.To("ada@example.com")
			if len(received) != 1 {
				t.Fatalf("the server has %d emails to ada, want 1", len(received))
			}

			got := received[0]
			want := inbox.Mail{
				From:    "no-reply@acme.example",
				To:      "ada@example.com",
				User:    inbox.User,
				Secure:  tt.secure,
				Subject: sent.Subject,
				Text:    sent.Text,
				HTML:    sent.HTML,
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(inbox.Mail{}, "Raw", "Header")); diff != "" {
				t.Errorf("the server has a different email (-want +got):\n%s", diff)
			}

			for name, want := range map[string]string{
				"Auto-Submitted": "auto-generated",
				"Message-Id":     "<0190@acme.example>",
				"To":             "<ada@example.com>",
			} {
				if value := got.Header.Get(name); value != want {
					t.Errorf("the header %s is %q, want %q", name, value, want)
				}
			}
		})
	}
}

// TestSendRequiresTLS shows that nothing is sent without TLS, or to a server whose certificate is not
// trusted. It also shows that a wrong password is a temporary error.
func TestSendRequiresTLS(t *testing.T) {
	t.Run("no STARTTLS", func(t *testing.T) {
		s := inbox.Start(t, inbox.Config{Auth: true})
		to := transport(t, s, "smtp", "tls=starttls")
		if err := to.Send(t.Context(), message("ada@example.com")); err == nil {
			t.Error("Send without TLS succeeds")
		}
		if n := len(s.Mails()); n != 0 {
			t.Errorf("the server has %d emails, want 0", n)
		}
	})

	t.Run("unknown certificate", func(t *testing.T) {
		s := inbox.Start(t, inbox.Config{TLS: true, Auth: true})
		to := transport(t, s, "smtp", "tls=starttls")
		to.Server.Roots = x509.NewCertPool()
		err := to.Send(t.Context(), message("ada@example.com"))
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("Send = %v, want an error about the certificate", err)
		}
	})

	t.Run("wrong password", func(t *testing.T) {
		s := inbox.Start(t, inbox.Config{Auth: true})
		to := transport(t, s, "smtp", "")
		to.Server.Password = "wrong"
		err := to.Send(t.Context(), message("ada@example.com"))
		if err == nil {
			t.Fatal("Send with a wrong password succeeds")
		}
		if mail.Refused(err) {
			t.Errorf("Send = %v, want a temporary error", err)
		}
		if strings.Contains(err.Error(), "wrong") {
			t.Errorf("Send = %v, want an error without the password", err)
		}
	})
}

// TestSendCloses shows that the connection is closed if a server does not support STARTTLS or refuses
// the password.
func TestSendCloses(t *testing.T) {
	t.Run("no STARTTLS", func(t *testing.T) {
		l, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		to, err := mail.ParseURL("smtp://" + l.Addr().String() + "?tls=starttls")
		if err != nil {
			t.Fatal(err)
		}
		commands, err := sendTo(t, l, to, "220 mail.example ESMTP\r\n250 mail.example\r\n")
		if err == nil || !strings.Contains(err.Error(), "STARTTLS") {
			t.Errorf("Send = %v after the commands %q, want an error about STARTTLS", err, commands)
		}
	})

	t.Run("wrong password", func(t *testing.T) {
		web := httptest.NewTLSServer(nil) // for its certificate
		defer web.Close()
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
		if err != nil {
			t.Fatal(err)
		}
		to, err := mail.ParseURL("smtps://ada@" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		to.Password = "secret"
		to.Roots = x509.NewCertPool()
		to.Roots.AddCert(web.Certificate())

		commands, err := sendTo(t, l, to, "220 mail.example ESMTP\r\n"+
			"250-mail.example\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n"+
			"535 5.7.8 refused\r\n501 aborted\r\n421 too many errors\r\n") // 421 answers QUIT
		if err == nil || !strings.Contains(err.Error(), "535") {
			t.Errorf("Send = %v, want an error with the code 535", err)
		}
		if strings.Contains(commands, "STARTTLS") || !strings.Contains(commands, "AUTH PLAIN") {
			t.Errorf("the server receives the commands %q, want AUTH PLAIN, but not STARTTLS within TLS", commands)
		}
	})
}

// sendTo sends an email to a server that sends the given answers without waiting for commands. It returns
// the commands and the error from Send, once the client has closed the connection.
func sendTo(t *testing.T, l net.Listener, to mail.Server, answers string) (commands string, err error) {
	t.Helper()
	defer l.Close()
	type result struct {
		commands []byte
		err      error
	}
	served := make(chan result, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			served <- result{err: err}
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, answers); err != nil {
			served <- result{err: err}
			return
		}
		read, err := io.ReadAll(conn) // ends when the client closes the connection
		served <- result{read, err}
	}()

	err = mail.SMTP{Server: to}.Send(t.Context(), message("ada@example.com"))
	r := <-served
	if r.err != nil {
		t.Errorf("the server reads the connection until %v, want its end", r.err)
	}
	return string(r.commands), err
}

// TestSendInjects shows that text from users cannot add header lines or recipients.
func TestSendInjects(t *testing.T) {
	s := inbox.Start(t, inbox.Config{})
	to := anonymous(t, s)
	m := message("ada@example.com")
	m.Subject = "Hello\r\nBcc: eve@example.com\r\n\r\nother body"
	m.From.Name = "Acme\r\nBcc: eve@example.com\u2028\u202e"
	if err := to.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}

	received := s.Mails()
	if len(received) != 1 {
		t.Fatalf("the server has %d emails, want 1", len(received))
	}
	got := received[0]
	if bcc := got.Header.Get("Bcc"); bcc != "" {
		t.Errorf("the email has the Bcc header %q, want none", bcc)
	}
	if got.To != "ada@example.com" {
		t.Errorf("the recipient is %q, want ada@example.com", got.To)
	}
	if got.Text != m.Text {
		t.Errorf("the text is %q, want %q", got.Text, m.Text)
	}

	for _, address := range []string{
		"ada@example.com\r\nRCPT TO:<eve@example.com>",
		"ada@example.com, eve@example.com",
		"<ada@example.com> <eve@example.com>",
		"ada",
		"@example.com",
		"",
	} {
		if err := to.Send(t.Context(), message(address)); !mail.Refused(err) {
			t.Errorf("Send to %q = %v, want a permanent error", address, err)
		}
	}
	if n := len(s.Mails()); n != 1 {
		t.Errorf("after addresses that are invalid, the server has %d emails, want 1", n)
	}
}

// TestSendInternational shows that domains are converted to ASCII, and that only a server with
// SMTPUTF8 accepts a local part that is not ASCII.
func TestSendInternational(t *testing.T) {
	ascii := inbox.Start(t, inbox.Config{})
	unicode := inbox.Start(t, inbox.Config{UTF8: true})
	if err := anonymous(t, ascii).Send(t.Context(), message("ada@bücher.example")); err != nil {
		t.Errorf("Send to a domain that is not ASCII: %v, want success", err)
	}
	if n := len(ascii.To("ada@xn--bcher-kva.example")); n != 1 {
		t.Errorf("the server has %d emails to the ASCII form of the domain, want 1", n)
	}

	if err := anonymous(t, unicode).Send(t.Context(), message("älice@example.com")); err != nil {
		t.Errorf("Send to a server with SMTPUTF8: %v, want success", err)
	}
	if n := len(unicode.To("älice@example.com")); n != 1 {
		t.Errorf("the server with SMTPUTF8 has %d emails to älice, want 1", n)
	}

	err := anonymous(t, ascii).Send(t.Context(), message("älice@example.com"))
	if !mail.Refused(err) {
		t.Fatalf("Send to a server without SMTPUTF8 = %v, want a permanent error", err)
	}
	if !strings.Contains(err.Error(), "SMTPUTF8") {
		t.Errorf("Send to a server without SMTPUTF8 = %v, want an error that names SMTPUTF8", err)
	}
}

// TestSendRefused shows which failures of Send are permanent, so that the letter is not retried.
func TestSendRefused(t *testing.T) {
	s := inbox.Start(t, inbox.Config{})
	to := anonymous(t, s)

	s.Refuse(550)
	if err := to.Send(t.Context(), message("ada@example.com")); !mail.Refused(err) {
		t.Errorf("Send, answered with 550 = %v, want a permanent error", err)
	}

	s.Refuse(450)
	if err := to.Send(t.Context(), message("ada@example.com")); err == nil || mail.Refused(err) {
		t.Errorf("Send, answered with 450 = %v, want a temporary error", err)
	}

	s.Down()
	if err := to.Send(t.Context(), message("ada@example.com")); err == nil || mail.Refused(err) {
		t.Errorf("Send to a server that is down = %v, want a temporary error", err)
	}
}

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]mail.Server{
		"smtp://acme@mail.example":      {Host: "mail.example", Port: 587, User: "acme"},
		"smtps://mail.example":          {Host: "mail.example", Port: 465, Implicit: true},
		"smtp://127.0.0.1:25":           {Host: "127.0.0.1", Port: 25, Plain: true},
		"smtp://10.0.0.3:25?tls=none":   {Host: "10.0.0.3", Port: 25, Plain: true},
		"smtp://localhost?tls=starttls": {Host: "localhost", Port: 587},
	} {
		got, err := mail.ParseURL(raw)
		if err != nil || got != want {
			t.Errorf("ParseURL(%q) = %+v, %v, want %+v", raw, got, err, want)
		}
	}

	for _, raw := range []string{
		"smtp://acme:secret@mail.example",
		"smtp://mail.example?tls=maybe",
		"smtps://mail.example?tls=none",
		"smtp://mail.example/inbox",
		"http://mail.example",
		"mail.example:25",
		"",
	} {
		if got, err := mail.ParseURL(raw); err == nil {
			t.Errorf("ParseURL(%q) = %+v, want an error", raw, got)
		}
	}

	if _, err := mail.ParseURL("log:"); err != mail.ErrBox {
		t.Errorf("ParseURL(log:) = %v, want ErrBox", err)
	}
}
