// Package truststore installs the certificate of an authority in the certificate stores of this
// machine. These are Debian's store, which curl and most other programs use, Chromium's store, and
// the stores in each Firefox profile.
//
// The package finds the stores of browsers below the user's home directory, and changes all stores only
// with their own tools (update-ca-certificates, certutil). An authority is identified by its common
// name: a new authority replaces an older one with the same name.
package truststore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// A Kind identifies the programs that read a store.
type Kind string

// These are the kinds of stores.
const (
	System   Kind = "system"
	Chromium Kind = "chromium"
	Firefox  Kind = "firefox"
)

// Kinds lists all kinds in display order.
var Kinds = []Kind{System, Chromium, Firefox}

// A State is how a store treats a certificate.
type State string

// These are the possible states.
const (
	Trusted   State = "trusted"     // present and trusted for servers
	Untrusted State = "not trusted" // present, but not trusted for servers
	Another   State = "another"     // a different certificate with the same name is present
	Absent    State = "absent"
	Unknown   State = "unknown" // the store could not be read
)

// ErrNotRoot means that only root can change the system's store.
var ErrNotRoot = errors.New("only root can change it")

// A Place is a store and its state.
type Place struct {
	Kind  Kind
	Path  string // the file or directory
	State State
	Err   error // why the store could not be read or changed
}

// Config selects the stores and the certificate.
type Config struct {
	Name   string                   // the common name of the authority's subject
	Cert   *x509.Certificate        // the authority's certificate; may be nil for Remove
	Kinds  []Kind                   // kinds of stores; empty means all kinds that exist on this machine
	Getenv func(name string) string // for HOME, XDG_DATA_HOME and the variables of sudo
}

// Stores holds the trust stores of one user of this machine.
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

	dirs := who.chromium()
	if s.wants(Chromium, len(dirs) > 0 || hasChromium()) {
		if len(dirs) == 0 {
			dirs = []string{who.firstChromium()}
		}
		s.addDatabases(who, Chromium, dirs)
	}
	if s.wants(Firefox, true) {
		s.addDatabases(who, Firefox, who.firefox())
	}
	return s, nil
}

// wants reports whether to use stores of a kind. A kind is used if it was requested, or if no kind
// was requested and the kind exists on this machine.
func (s *Stores) wants(k Kind, exists bool) bool {
	if len(s.c.Kinds) == 0 {
		return exists
	}
	return slices.Contains(s.c.Kinds, k)
}

// addDatabases adds the stores of browsers in some directories.
func (s *Stores) addDatabases(who account, k Kind, dirs []string) {
	for _, dir := range dirs {
		s.all = append(s.all, database{c: s.c, who: who, kind: k, dir: dir})
	}
}

// Status returns the state of each store.
func (s *Stores) Status(ctx context.Context) []Place {
	return s.each(ctx, "", func(store) error { return nil })
}

// Install makes each store trust the certificate. It replaces other certificates with the same
// name, and leaves a store unchanged that already trusts the certificate.
func (s *Stores) Install(ctx context.Context) []Place {
	places := s.each(ctx, Trusted, func(st store) error {
		state, err := st.state(ctx)
		if err != nil {
			return err
		}
		if state == Trusted {
			return nil
		}
		return st.add(ctx)
	})

	hasFirefox := slices.ContainsFunc(places, func(p Place) bool { return p.Kind == Firefox })
	if slices.Contains(s.c.Kinds, Firefox) && !hasFirefox {
		places = append(places, Place{
			Kind:  Firefox,
			State: Absent,
			Err:   errors.New("this account has no Firefox profile: start Firefox once, and try again"),
		})
	}
	if len(places) == 0 {
		places = append(places, Place{
			State: Absent,
			Err:   errors.New("no certificate store found, neither a Debian-style system store nor a browser's"),
		})
	}
	return places
}

// Remove removes all authorities with the configured name from the stores.
func (s *Stores) Remove(ctx context.Context) []Place {
	return s.each(ctx, Absent, func(st store) error {
		state, err := st.state(ctx)
		if err != nil {
			return err
		}
		if state == Absent {
			return nil
		}
		return st.remove(ctx)
	})
}

// each calls do for every store and then returns the states of the stores. If wanted is not "", a
// store in a different state counts as failed.
func (s *Stores) each(ctx context.Context, wanted State, do func(store) error) []Place {
	places := make([]Place, 0, len(s.all))
	for _, st := range s.all {
		doErr := do(st)
		p := st.place() // called after do, which may have changed the file
		state, stateErr := st.state(ctx)
		p.State = state // Unknown after an error
		switch {
		case doErr != nil:
			p.Err = doErr
		case stateErr != nil:
			p.Err = stateErr
		case wanted != "" && state != wanted:
			p.Err = fmt.Errorf("the certificate is still %q", state)
		}
		places = append(places, p)
	}
	return places
}

// same reports whether cert is an authority with the configured name.
func (c Config) same(cert *x509.Certificate) bool {
	return cert.IsCA && cert.Subject.CommonName == c.Name
}

// stateOf returns the state of a store that holds these certificates. trusted reports whether the store
// trusts one of them for servers.
func (c Config) stateOf(held []*x509.Certificate, trusted func(*x509.Certificate) bool) State {
	state := Absent
	for _, cert := range held {
		switch {
		case !c.same(cert):
		case c.Cert == nil || !cert.Equal(c.Cert):
			return Another // even if the right certificate is present too, this one must be removed
		case trusted(cert):
			state = Trusted
		default:
			state = Untrusted
		}
	}
	return state
}

// missing returns the error for a missing program, which names the package that provides it.
func missing(program, pkg string) error {
	return fmt.Errorf("%s is missing: install the package %s and try again", program, pkg)
}
