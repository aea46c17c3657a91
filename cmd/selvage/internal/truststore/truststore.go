// Package truststore puts the certificate of an authority where the programs of
// this machine look for those they trust: Debian's store, which curl and most
// others read, Chromium's, and that of each Firefox profile.
//
// It finds the stores by the account's home, changes them with the programs that
// they come with (update-ca-certificates, certutil), and touches nothing else. An
// authority is known by its subject: an older one of the same name is replaced.
package truststore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// A Kind is what reads a store.
type Kind string

// The kinds of stores.
const (
	System   Kind = "system"
	Chromium Kind = "chromium"
	Firefox  Kind = "firefox"
)

// Kinds are all kinds, in the order in which they are shown.
var Kinds = []Kind{System, Chromium, Firefox}

// A State is what a store makes of a certificate.
type State string

// The states.
const (
	Trusted   State = "trusted"     // it is there and trusted for servers
	Untrusted State = "not trusted" // it is there, but servers are not trusted by it
	Another   State = "another"     // one of its name is there, which is not it
	Absent    State = "absent"
	Unknown   State = "unknown" // the store could not be read
)

// ErrNotRoot is why the system's store was not changed.
var ErrNotRoot = errors.New("only root may change it")

// A Place is a store, and what it makes of the certificate.
type Place struct {
	Kind  Kind
	Path  string // the file or directory
	State State
	Err   error // why it could not be read or changed
}

// Config says whose stores are meant, and which.
type Config struct {
	Name   string                   // the common name of the authority's subject
	Cert   *x509.Certificate        // its certificate; nil where that is not at hand, to remove it
	Kinds  []Kind                   // empty means those that are there
	Getenv func(name string) string // HOME, XDG_DATA_HOME, and those of sudo
}

// Stores are the stores of one account.
type Stores struct {
	c   Config
	all []store
}

// A store is one place where certificates are trusted.
type store interface {
	place() Place
	state(ctx context.Context) (State, error)
	add(ctx context.Context) error
	remove(ctx context.Context) error
}

// Open finds the stores.
func Open(c Config) (*Stores, error) {
	who, err := whoIs(c.Getenv)
	if err != nil {
		return nil, err
	}
	s := &Stores{c: c}
	if s.wants(System, hasSystem()) {
		s.all = append(s.all, system{c})
	}
	if dirs := who.chromium(); s.wants(Chromium, len(dirs) > 0 || hasChromium()) {
		if len(dirs) == 0 {
			dirs = []string{who.firstChromium()}
		}
		s.addDatabases(who, Chromium, dirs)
	}
	s.addDatabases(who, Firefox, who.firefox())
	return s, nil
}

// wants reports whether a kind is asked for, or is there and none is.
func (s *Stores) wants(k Kind, there bool) bool {
	return slices.Contains(s.c.Kinds, k) || len(s.c.Kinds) == 0 && there
}

func (s *Stores) addDatabases(who account, k Kind, dirs []string) {
	for _, dir := range dirs {
		if s.wants(k, true) {
			s.all = append(s.all, database{s.c, who, k, dir})
		}
	}
}

// Status shows what each store makes of the certificate.
func (s *Stores) Status(ctx context.Context) []Place {
	return s.each(ctx, "", func(store) error { return nil })
}

// Install has each store trust the certificate, instead of any other of its
// name. A store that does so already is left alone.
func (s *Stores) Install(ctx context.Context) []Place {
	places := s.each(ctx, Trusted, func(st store) error {
		if now, err := st.state(ctx); err != nil || now == Trusted {
			return err
		}
		return st.add(ctx)
	})
	if slices.Contains(s.c.Kinds, Firefox) &&
		!slices.ContainsFunc(places, func(p Place) bool { return p.Kind == Firefox }) {
		places = append(places, Place{Firefox, "", Absent,
			errors.New("this account has no profile of Firefox: start Firefox once, and try again")})
	}
	if len(places) == 0 {
		places = append(places, Place{"", "", Absent,
			errors.New("there is no store here: neither the system's, as Debian has it, nor a browser's")})
	}
	return places
}

// Remove takes every authority of the name out of the stores.
func (s *Stores) Remove(ctx context.Context) []Place {
	return s.each(ctx, Absent, func(st store) error {
		if now, err := st.state(ctx); err != nil || now == Absent {
			return err
		}
		return st.remove(ctx)
	})
}

// each does something with every store and tells how that is afterwards. What
// has another state than the wanted one, if there is one, has not worked.
func (s *Stores) each(ctx context.Context, wanted State, do func(store) error) []Place {
	places := make([]Place, 0, len(s.all))
	for _, st := range s.all {
		doing := do(st)
		p := st.place() // afterwards: it may be another file than before
		p.Err = doing
		var err error
		p.State, err = st.state(ctx)
		switch {
		case p.Err != nil:
		case err != nil:
			p.Err = err
		case wanted != "" && p.State != wanted:
			p.Err = fmt.Errorf("the state of the certificate is %q all the same", p.State)
		}
		places = append(places, p)
	}
	return places
}

// same reports whether a certificate is one of the authority's name.
func (c Config) same(cert *x509.Certificate) bool {
	return cert.IsCA && cert.Subject.CommonName == c.Name
}

// stateOf tells which of the certificates of a store matter.
func (c Config) stateOf(held []*x509.Certificate, trusted func(*x509.Certificate) bool) State {
	state := Absent
	for _, cert := range held {
		switch {
		case !c.same(cert):
		case c.Cert == nil || !cert.Equal(c.Cert):
			return Another // even beside the right one: it is to go
		case trusted(cert):
			state = Trusted
		default:
			state = Untrusted
		}
	}
	return state
}

// missing says which package brings a program that is not there.
func missing(program, pkg string) error {
	return fmt.Errorf("the program %s is missing: install the package %s, and try again", program, pkg)
}
