// Package idp is the identity provider: OAuth clients, authorization requests, logins, codes,
// grants and tokens.
//
// It implements the rules of OpenID Connect and OAuth 2, and does not use HTTP or SQL. Package
// idp/oidc speaks the protocol, and package store stores the rows. Anything that must happen only
// once, such as redeeming a code or rotating a refresh token, depends on a row in the database. The
// session store holds only short-lived data, and copies of rows.
//
// A [Provider] consists of these parts, which declare small interfaces for the rows that they store:
//
//   - [Clients] manages the registered apps, [Registrations] lets apps register themselves, and
//     [Assertions] verifies clients that authenticate with a key or a certificate.
//   - [Requests] handles authorization requests, from their parameters to their answer.
//   - [Codes], [Devices] and [Grants] turn an answered request into tokens. [Tokens] mints and
//     reads the tokens, and [Subjects] names people in them.
//   - [Upstreams] manages other providers with which people sign in.
//   - [Logins] manages the logins of people, [Attempts] counts login attempts, and [DeviceMarks]
//     recognizes the devices that an account has used.
//   - [Accounts] lets people manage their own account, [Letters] writes the emails about it, and
//     [Consents] records the apps to which people have given access.
package idp

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/spent"
	"github.com/selvage/selvage/keys"
)

// Stores holds the storage of the identity provider. A single value may implement all of the
// interfaces. Methods return problem.NotFound for a missing row. A method that changes rows writes
// its audit event in the same transaction.
type Stores struct {
	Clients  ClientStore
	Logins   LoginStore
	Grants   GrantStore
	Consents ConsentStore
	Letters  LetterStore
	Uses     UseStore
	Used     *spent.Log // stores uses that are not part of another change; nil unless this is the only node

	Registrations RegistrationStore
	Upstreams     UpstreamStore
}

// Subscribers finds the people who log in.
type Subscribers interface {
	FindSubscriber(ctx context.Context, projectID, id string) (fabric.Subscriber, error)
	FindSubscriberByEmail(ctx context.Context, projectID, email string) (fabric.Subscriber, error)
}

// Config holds the dependencies and settings of a Provider.
type Config struct {
	Store       Stores
	Subscribers Subscribers
	Sessions    session.Store
	Fabric      *fabric.Fabric
	Passwords   *password.Hasher
	Factors     *factor.Factors // nil means that no subscriber has a second factor
	Ring        *keys.Ring
	Revocations *revocation.List
	Issuer      string // {auth_url}/ with the slash; also the audience of JWT access tokens
	// ClientCAs are the authorities whose certificates clients with AuthTLS may use. nil means none.
	ClientCAs *x509.CertPool

	// CheckURL returns an error that names param if selvage may not send requests to url. If CheckURL
	// is nil, every URL is allowed.
	CheckURL func(param, url string) error
	// Fetch returns a document of at most limit bytes from a URL in a client's registration. Its
	// errors are shown to the client. If Fetch is nil, nothing is fetched.
	Fetch func(ctx context.Context, url string, limit int64) ([]byte, error)
	// DeviceGuesses is the number of device user codes that may be typed in one network within ten
	// minutes. 0 means no limit.
	DeviceGuesses int
	// MaxRegistered is the maximum number of self-registered clients in a project. 0 means no
	// limit.
	MaxRegistered int
	// Limits enforces rate limits of logins, authorization requests and emails. nil means no
	// limits.
	Limits *limit.Limiter

	Lifetimes Lifetimes          // initial lifetimes; see [Provider.SetLifetimes]
	Observe   func(event string) // called with "login", "login_refused", "code", "token_<grant>" and others; may be nil
	Now       func() time.Time   // nil means time.Now
}

// fill sets the defaults of optional fields.
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

// A Provider is the identity provider. All methods of its parts are safe for concurrent use.
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
	Upstreams   *Upstreams

	Registrations *Registrations
}

// New returns a Provider with configuration c.
func New(c Config) *Provider {
	c.fill()
	shared := &core{Config: c, projects: cache.New[fabric.Project](c.Now), open: cache.New[bool](c.Now)}
	shared.SetLifetimes(c.Lifetimes)
	p := &Provider{core: shared}

	p.Clients = &Clients{core: shared, store: c.Store.Clients, recent: cache.New[Client](c.Now)}
	p.Registrations = &Registrations{core: shared, clients: p.Clients, store: c.Store.Registrations}
	p.Assertions = &Assertions{
		core:    shared,
		clients: p.Clients,
		local:   cache.New[keySet](c.Now),
	}
	p.Subjects = &Subjects{core: shared}
	p.Tokens = &Tokens{core: shared, clients: p.Clients, subjects: p.Subjects}
	p.Requests = &Requests{
		core:     shared,
		clients:  p.Clients,
		subjects: p.Subjects,
		tokens:   p.Tokens,
		signers:  p.Assertions,
		sealer:   c.Ring.Sealer("pushed request", "pushed", ""),
	}

	p.DeviceMarks = &DeviceMarks{core: shared}
	p.Attempts = &Attempts{core: shared, store: c.Store.Logins, marks: p.DeviceMarks}
	p.Logins = &Logins{
		core:     shared,
		store:    c.Store.Logins,
		attempts: p.Attempts,
		marks:    p.DeviceMarks,
		recent:   cache.New[Login](c.Now),
	}

	p.Grants = &Grants{core: shared, store: c.Store.Grants, logins: p.Logins, tokens: p.Tokens}
	p.Codes = &Codes{
		core:   shared,
		store:  c.Store.Grants,
		grants: p.Grants,
		tokens: p.Tokens,
		sealer: c.Ring.Sealer("authorization code", "code", ""),
	}
	p.Devices = &Devices{core: shared, clients: p.Clients, codes: p.Codes}

	p.Letters = &Letters{core: shared, store: c.Store.Letters}
	p.Accounts = &Accounts{core: shared, letters: p.Letters, logins: p.Logins, requests: p.Requests}
	p.Consents = &Consents{core: shared, store: c.Store.Consents, clients: p.Clients}
	p.Upstreams = &Upstreams{
		core:    shared,
		store:   c.Store.Upstreams,
		logins:  p.Logins,
		offered: cache.New[[]Upstream](c.Now),
	}
	return p
}

// Sweep deletes rows on which no token depends any longer.
func (p *Provider) Sweep(ctx context.Context) error {
	l, expired := p.Lifetimes(), p.Now().Add(-remembered)
	return p.Store.Logins.SweepLogins(ctx, expired.Add(-l.BrowserAbsolute-l.RefreshAbsolute), expired)
}
