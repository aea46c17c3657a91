package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/mail"
	"net/url"
	"os"
	"time"

	letters "github.com/selvage/selvage/internal/mail"
)

// A mailURL is log:, or an SMTP server.
type mailURL string

func (u *mailURL) UnmarshalText(text []byte) error {
	*u = mailURL(text)
	if _, err := letters.ParseURL(string(text)); err != nil && err != letters.ErrBox {
		return err
	}
	return nil
}

// boxed reports whether mails are kept instead of sent.
func (u mailURL) boxed() bool {
	_, err := letters.ParseURL(string(u))
	return err == letters.ErrBox
}

// A mailAddress is an address with a name, as in a From header.
type mailAddress string

func (a *mailAddress) UnmarshalText(text []byte) error {
	*a = mailAddress(text)
	if *a == "" {
		return nil
	}
	if _, err := mail.ParseAddress(string(text)); err != nil {
		return fmt.Errorf("needs an address such as Acme <no-reply@acme.example>")
	}
	return nil
}

// parts gives the name and the address.
func (a mailAddress) parts() (name, address string) {
	parsed, err := mail.ParseAddress(string(a))
	if err != nil {
		return "", "" // it was read before
	}
	return parsed.Name, parsed.Address
}

// sender says in whose name mails are.
func (a *app) sender() letters.Sender {
	name, address := a.config.Mail.From.parts()
	if address == "" {
		host := "localhost"
		if u, err := url.Parse(a.where.public); err == nil && u.Hostname() != "" {
			host = u.Hostname()
		}
		address = "no-reply@" + host
	}
	_, replyTo := a.config.Mail.ReplyTo.parts()
	return letters.Sender{Address: address, Name: name, ReplyTo: replyTo}
}

// openPost makes what sends mails. log is told of those that a box keeps.
func (a *app) openPost(log *slog.Logger, observe func(result string)) (err error) {
	server, _ := letters.ParseURL(string(a.config.Mail.URL)) // it was read before, or is the box
	server.Password = string(a.config.Mail.Password)
	if server.Roots, err = rootsIn(string(a.config.Mail.CA)); err != nil {
		return err
	}
	var transport letters.Transport = letters.SMTP{Server: server}
	if a.config.Mail.URL.boxed() {
		a.box = &letters.Box{Sessions: a.sessions, Seal: a.ring.SealSecret, Open: a.ring.OpenSecret, Now: time.Now, Log: log}
		transport = a.box
	}
	a.post = letters.New(letters.Config{
		Queue: a.store, Transport: transport, Sender: a.sender(), Write: a.idp.WriteLetter, Observe: observe, Log: log,
	})
	return nil
}

// rootsIn reads the certificates that mail.ca names; nil for none.
func rootsIn(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading mail.ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading mail.ca: there is no certificate in %s, which is to be PEM", file)
	}
	return roots, nil
}

// showsMailbox reports whether kept mails are shown: on a machine whose server nobody
// else reaches.
func (a *app) showsMailbox() bool {
	tls := a.config.tlsAddress()
	return a.config.Mail.URL.boxed() && a.config.Listen.loopback() && (tls == off || tls.loopback()) && a.where.local()
}
