package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/selvage/selvage/internal/config"
	letters "github.com/selvage/selvage/internal/mail"
)

// sender says in whose name mails are.
func (a *app) sender() letters.Sender {
	name, address := a.config.Mail.From.Parts()
	if address == "" {
		host := "localhost"
		if u, err := url.Parse(a.where.Public); err == nil && u.Hostname() != "" {
			host = u.Hostname()
		}
		address = "no-reply@" + host
	}
	_, replyTo := a.config.Mail.ReplyTo.Parts()
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
	if a.config.Mail.URL.Boxed() {
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
	tls := a.config.TLSAddress()
	return a.config.Mail.URL.Boxed() && a.config.Listen.Loopback() && (tls == config.Off || tls.Loopback()) && a.where.Local()
}
