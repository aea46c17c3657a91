// Package idp is the identity provider: OAuth clients, authorization requests, logins,
// codes, grants, and the tokens minted from them.
//
// It holds the rules of OpenID Connect and OAuth 2 and knows neither HTTP nor SQL:
// package oidc below it speaks the protocol, package store keeps the rows. A row decides
// what must happen once, such as redeeming a code or rotating a refresh token. The
// session store only remembers what lives for minutes.
//
// A [Provider] wires the aggregates together. Each has its rules in the file of its
// name, with the small interface of the rows that it needs next to it:
//
//   - [Clients] are the registered apps, [Assertions] how they authenticate with a key.
//   - [Requests] are authorization requests, from their parameters to their answer.
//   - [Codes], [Devices] and [Grants] turn an answered request into tokens, [Tokens]
//     mints and reads these, [Subjects] names people in them.
//   - [Logins] are the logins of people, [Attempts] the passwords tried, [DeviceMarks]
//     the devices an account knows.
//   - [Accounts] is what people do with their own account, [Letters] are the mails for
//     it, [Consents] the apps that people let in.
package idp

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/keys"
)

// Stores keep the rows of the identity provider; one value may serve as all of them.
// A missing row is problem.NotFound. A method that changes rows writes its audit event
// in the same transaction.
type Stores struct {
	Clients  ClientStore
	Logins   LoginStore
	Grants   GrantStore
	Consents ConsentStore
	Letters  LetterStore
}

// Subscribers finds the people who log in.
type Subscribers interface {
	FindSubscriber(ctx context.Context, projectID, id string) (fabric.Subscriber, error)
	FindSubscriberByEmail(ctx context.Context, projectID, email string) (fabric.Subscriber, error)
}

// Config is what a Provider works with.
type Config struct {
	Store       Stores
	Subscribers Subscribers
	Sessions    session.Store
	Fabric      *fabric.Fabric
	Passwords   *password.Hasher
	Factors     *factor.Factors // nil means that nobody has a second factor
	Ring        *keys.Ring
	Revocations *revocation.List
	Issuer      string // {auth_url}/ with the slash; also the audience of JWT access tokens

	// CheckURL returns an error about the parameter if nothing may be sent to the URL.
	// nil accepts every URL.
	CheckURL func(param, url string) error
	// Fetch returns a document of at most limit bytes from a URL in a client's
	// registration. The client is shown its errors. nil fetches nothing.
	Fetch func(ctx context.Context, url string, limit int64) ([]byte, error)
	// DeviceGuesses is how many user codes of devices may be typed in one network within
	// ten minutes; 0 means no limit.
	DeviceGuesses int
	// Limits limits logins, authorization requests and mails; nil limits nothing.
	Limits *limit.Limiter

	Lifetimes Lifetimes          // initial ones, see [Provider.SetLifetimes]
	Observe   func(event string) // called with "login", "login_refused", "code", "token_<grant>" and others; may be nil
	Now       func() time.Time   // nil means time.Now
}

// fill sets the defaults of what may be left out.
func (c *Config) fill() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(string) {}
	}
	if c.CheckURL == nil {
		c.CheckURL = func(string, string) error { return nil }
	}
	if c.Fetch == nil {
		c.Fetch = func(context.Context, string, int64) ([]byte, error) {
			return nil, errors.New("fetching is not configured")
		}
	}
}

// A Provider is the identity provider. The methods of its parts may be called
// concurrently.
type Provider struct {
	*core
	Clients     *Clients
	Assertions  *Assertions
	Requests    *Requests
	Codes       *Codes
	Devices     *Devices
	Grants      *Grants
	Tokens      *Tokens
	Subjects    *Subjects
	Logins      *Logins
	Attempts    *Attempts
	DeviceMarks *DeviceMarks
	Accounts    *Accounts
	Letters     *Letters
	Consents    *Consents
}

// New returns a Provider.
func New(c Config) *Provider {
	c.fill()
	shared := &core{Config: c, projects: cache.New[fabric.Project](c.Now), open: cache.New[bool](c.Now)}
	shared.SetLifetimes(c.Lifetimes)
	p := &Provider{core: shared}

	p.Clients = &Clients{core: shared, store: c.Store.Clients, recent: cache.New[Client](c.Now)}
	p.Assertions = &Assertions{core: shared, store: c.Store.Clients, clients: p.Clients}
	p.Subjects = &Subjects{core: shared}
	p.Tokens = &Tokens{core: shared, clients: p.Clients, subjects: p.Subjects}
	p.Requests = &Requests{core: shared, clients: p.Clients, subjects: p.Subjects, tokens: p.Tokens,
		signers: p.Assertions}

	p.DeviceMarks = &DeviceMarks{core: shared}
	p.Attempts = &Attempts{core: shared, store: c.Store.Logins, marks: p.DeviceMarks}
	p.Logins = &Logins{core: shared, store: c.Store.Logins, attempts: p.Attempts, marks: p.DeviceMarks,
		recent: cache.New[Login](c.Now)}

	p.Grants = &Grants{core: shared, store: c.Store.Grants, logins: p.Logins, tokens: p.Tokens}
	p.Codes = &Codes{core: shared, store: c.Store.Grants, grants: p.Grants, tokens: p.Tokens,
		sealer: c.Ring.Sealer("authorization code", "code", "")}
	p.Devices = &Devices{core: shared, clients: p.Clients, codes: p.Codes}

	p.Letters = &Letters{core: shared, store: c.Store.Letters}
	p.Accounts = &Accounts{core: shared, letters: p.Letters, logins: p.Logins, requests: p.Requests}
	p.Consents = &Consents{core: shared, store: c.Store.Consents}
	return p
}

// Sweep deletes rows that no token depends on any longer.
func (p *Provider) Sweep(ctx context.Context) error {
	l, expired := p.Lifetimes(), p.Now().Add(-remembered)
	return p.Store.Logins.SweepLogins(ctx, expired.Add(-l.BrowserAbsolute-l.RefreshAbsolute), expired)
}
