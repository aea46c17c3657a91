package server

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	letters "github.com/selvage/selvage/internal/mail"
)

// sender returns the sender of emails.
func (a *App) sender() letters.Sender {
	name, address := a.Config.Mail.From.Parts()
	if address == "" {
		host := "localhost"
		if u, err := url.Parse(a.Where.Public); err == nil && u.Hostname() != "" {
			host = u.Hostname()
		}
		address = "no-reply@" + host
	}
	_, replyTo := a.Config.Mail.ReplyTo.Parts()
	return letters.Sender{Address: address, Name: name, ReplyTo: replyTo}
}

// openPost prepares the sending of emails. If emails are kept in the local mailbox instead of being
// sent, the mailbox writes a line about each to log.
func (a *App) openPost(log *slog.Logger, observe func(result string)) (err error) {
	server, _ := letters.ParseURL(string(a.Config.Mail.URL)) // the URL was validated, or is log:
	server.Password = string(a.Config.Mail.Password)
	server.Roots, err = rootsIn(string(a.Config.Mail.CA))
	if err != nil {
		return err
	}

	var transport letters.Transport = letters.SMTP{Server: server}
	if a.Config.Mail.URL.Boxed() {
		a.Box = &letters.Box{
			Sessions: a.sessions,
			Seal:     a.Ring.SealSecret,
			Open:     a.Ring.OpenSecret,
			Now:      time.Now,
			Log:      log,
		}
		transport = a.Box
	}

	a.Post = letters.New(letters.Config{
		Queue:     a.Store,
		Transport: transport,
		Sender:    a.sender(),
		Write:     a.IDP.Letters.Write,
		Observe:   observe,
		Log:       log,
	})
	return nil
}

// rootsIn reads the CA certificates in a file. It returns nil if file is empty.
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
		return nil, fmt.Errorf("reading mail.ca: %s has no PEM certificate", file)
	}
	return roots, nil
}

// showsMailbox reports whether /dev/mail is served. It is served if emails are kept and only this
// machine can reach the server.
func (a *App) showsMailbox() bool { return a.Config.Mail.URL.Boxed() && a.Local() }
