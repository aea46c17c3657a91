package mail_test

import (
	"context"
	"crypto/x509"
	stdmail "net/mail"
	"os"
	"strings"
	"testing"

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

// transport returns a transport that connects to s. It is configured with a URL that consists of
// the scheme, the user, the host, the server's port and the text in behind.
func transport(t *testing.T, s *inbox.Server, scheme, host, behind string) mail.SMTP {
	t.Helper()
	to, err := mail.ParseURL(scheme + "://" + strings.ReplaceAll(inbox.User, "@", "%40") + "@" + host + ":" +
		s.Port() + behind)
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

// TestSend shows that emails reach a real server with a password, over TLS if it is available.
func TestSend(t *testing.T) {
	tests := []struct {
		name, scheme, behind string
		server               inbox.Config
		secure               bool
	}{
		{"STARTTLS", "smtp", "?tls=starttls", inbox.Config{TLS: true, Auth: true}, true},
		{"TLS", "smtps", "", inbox.Config{Full: true, Auth: true}, true},
		{"this machine", "smtp", "", inbox.Config{Auth: true}, false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := inbox.Start(t, tt.server)
			if err := transport(t, s, tt.scheme, "localhost", tt.behind).
				Send(t.Context(), message("ada@example.com")); err != nil {
				t.Fatal(err)
			}
			got := s.To("ada@example.com")
			if len(got) != 1 || got[0].Secure != tt.secure || got[0].User != inbox.User ||
				got[0].From != "no-reply@acme.example" {
				t.Fatalf("the server has %+v, want one email from %s", got, inbox.User)
			}

			m := got[0]
			if m.Subject != "Grüße" || m.Text != "text of it\n" || m.HTML != "<p>html of it</p>" {
				t.Errorf("the email contains %q, %q, %q, want the subject, text and HTML that were sent",
					m.Subject, m.Text, m.HTML)
			}

			for name, want := range map[string]string{
				"Auto-Submitted": "auto-generated",
				"Message-Id":     "<0190@acme.example>",
				"To":             "<ada@example.com>",
			} {
				if m.Header.Get(name) != want {
					t.Errorf("%s: %q, want %q", name, m.Header.Get(name), want)
				}
			}
		})
	}
}

// TestSendRequiresTLS shows that a password is sent only over TLS, and only to a server with a
// trusted certificate.
func TestSendRequiresTLS(t *testing.T) {
	t.Run("no STARTTLS", func(t *testing.T) {
		s := inbox.Start(t, inbox.Config{Auth: true})
		err := transport(t, s, "smtp", "localhost", "?tls=starttls").Send(t.Context(), message("ada@example.com"))
		if err == nil || len(s.Mails()) != 0 {
			t.Errorf("Send = %v, with %d emails, want a refusal", err, len(s.Mails()))
		}
	})

	t.Run("unknown certificate", func(t *testing.T) {
		s := inbox.Start(t, inbox.Config{TLS: true, Auth: true})
		to := transport(t, s, "smtp", "localhost", "?tls=starttls")
		to.Server.Roots = x509.NewCertPool()
		if err := to.Send(t.Context(), message("ada@example.com")); err == nil ||
			!strings.Contains(err.Error(), "certificate") {
			t.Errorf("Send = %v, want the certificate refused", err)
		}
	})

	t.Run("wrong password", func(t *testing.T) {
		s := inbox.Start(t, inbox.Config{Auth: true})
		to := transport(t, s, "smtp", "localhost", "")
		to.Server.Password = "wrong"
		err := to.Send(t.Context(), message("ada@example.com"))
		if err == nil || mail.Refused(err) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("Send = %v, want a temporary error without the password", err)
		}
	})
}

// TestSendInjects shows that text from users cannot add a header line.
func TestSendInjects(t *testing.T) {
	s := inbox.Start(t, inbox.Config{})
	to := transport(t, s, "smtp", "localhost", "")
	to.Server.User = ""
	m := message("ada@example.com")
	m.Subject = "Hello\r\nBcc: eve@example.com\r\n\r\nother body"
	m.From.Name = "Acme\r\nBcc: eve@example.com\u2028\u202e"
	if err := to.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}

	got := s.Mails()
	if len(got) != 1 || got[0].Header.Get("Bcc") != "" || got[0].To != "ada@example.com" || got[0].Text != m.Text {
		t.Errorf("the server has %+v, want one email, to ada only", got)
	}

	for _, address := range []string{"ada@example.com\r\nRCPT TO:<eve@example.com>",
		"ada@example.com, eve@example.com", "<ada@example.com> <eve@example.com>", "ada", "@example.com", ""} {
		m := message(address)
		if err := to.Send(t.Context(), m); err == nil || !mail.Refused(err) {
			t.Errorf("Send to %q = %v, want a permanent error", address, err)
		}
	}
	if n := len(s.Mails()); n != 1 {
		t.Errorf("the server has %d emails, want 1", n)
	}
}

// TestSendInternational shows that domains are converted to ASCII, and that only a server with
// SMTPUTF8 accepts a local part that is not ASCII.
func TestSendInternational(t *testing.T) {
	old, modern := inbox.Start(t, inbox.Config{}), inbox.Start(t, inbox.Config{UTF8: true})
	send := func(s *inbox.Server, to string) error {
		by := transport(t, s, "smtp", "localhost", "")
		by.Server.User = ""
		return by.Send(context.Background(), message(to))
	}
	if err := send(old, "ada@bücher.example"); err != nil || len(old.To("ada@xn--bcher-kva.example")) != 1 {
		t.Errorf("Send to a domain that is not ASCII = %v, %v, want one email", err, old.Mails())
	}

	if err := send(modern, "älice@example.com"); err != nil || len(modern.To("älice@example.com")) != 1 {
		t.Errorf("Send to an SMTPUTF8 server = %v, %v, want one email", err, modern.Mails())
	}
	if err := send(old, "älice@example.com"); err == nil || !mail.Refused(err) ||
		!strings.Contains(err.Error(), "SMTPUTF8") {
		t.Errorf("Send to a server without SMTPUTF8 = %v, want a permanent error", err)
	}
}

// TestSendRefused shows which failures of Send are permanent, so that the letter is not retried.
func TestSendRefused(t *testing.T) {
	s := inbox.Start(t, inbox.Config{})
	to := transport(t, s, "smtp", "localhost", "")
	to.Server.User = ""
	for code, want := range map[int]bool{550: true, 450: false} {
		s.Refuse(code)
		if err := to.Send(t.Context(), message("ada@example.com")); err == nil || mail.Refused(err) != want {
			t.Errorf("Send, answered with %d = %v, permanent: %t, want %t", code, err, mail.Refused(err), want)
		}
	}
	s.Down()
	if err := to.Send(t.Context(), message("ada@example.com")); err == nil || mail.Refused(err) {
		t.Errorf("Send to a server that is down = %v, want a temporary error", err)
	}
}

func TestParseURL(t *testing.T) {
	tests := []struct {
		raw  string
		want mail.Server
		ok   bool
	}{
		{"smtp://acme@mail.example", mail.Server{Host: "mail.example", Port: 587, User: "acme"}, true},
		{"smtps://mail.example", mail.Server{Host: "mail.example", Port: 465, Implicit: true}, true},
		{"smtp://127.0.0.1:25", mail.Server{Host: "127.0.0.1", Port: 25, Plain: true}, true},
		{"smtp://10.0.0.3:25?tls=none", mail.Server{Host: "10.0.0.3", Port: 25, Plain: true}, true},
		{"smtp://localhost?tls=starttls", mail.Server{Host: "localhost", Port: 587}, true},
		{"smtp://acme:secret@mail.example", mail.Server{}, false},
		{"smtp://mail.example?tls=maybe", mail.Server{}, false},
		{"smtps://mail.example?tls=none", mail.Server{}, false},
		{"smtp://mail.example/inbox", mail.Server{}, false},
		{"http://mail.example", mail.Server{}, false},
		{"mail.example:25", mail.Server{}, false},
		{"", mail.Server{}, false},
	}

	for _, tt := range tests {
		got, err := mail.ParseURL(tt.raw)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("ParseURL(%q) = %+v, %v, want %+v, %t", tt.raw, got, err, tt.want, tt.ok)
		}
	}
	if _, err := mail.ParseURL("log:"); err != mail.ErrBox {
		t.Errorf("ParseURL(log:) = %v, want ErrBox", err)
	}
}
