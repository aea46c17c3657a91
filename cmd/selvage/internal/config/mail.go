package config

import (
	"fmt"
	"net/mail"

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

// Boxed reports whether mails are kept instead of sent.
func (u mailURL) Boxed() bool {
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

// Parts returns the name and the address.
func (a mailAddress) Parts() (name, address string) {
	parsed, err := mail.ParseAddress(string(a))
	if err != nil {
		return "", "" // it was read before
	}
	return parsed.Name, parsed.Address
}
