// Package idp says who may log in where: OAuth clients, authorization requests,
// logins, codes, grants and what is minted from them.
//
// It knows the rules of OpenID Connect and OAuth 2, and neither HTTP nor SQL:
// package oidc under it speaks the protocol, package store keeps the rows. What
// must happen once (redeeming a code, rotating a refresh token) is decided by a
// row; the session store only remembers what lives for minutes.
package idp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/background"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/keys"
)

// A Store keeps the rows of the identity provider. Absent things are
// problem.NotFound.
type Store interface {
	// CreateClient writes a client. From now on, and as long as it has a
	// BackchannelLogoutURI, whatever ends a login of which it had a grant queues a logout
	// for it, in the same transaction.
	CreateClient(ctx context.Context, c Client) error
	FindClient(ctx context.Context, id string) (Client, error)
	ListClients(ctx context.Context, projectID string, q page.Query) (page.Page[Client], error)
	// ReplaceClient writes the settings of a client that was not changed since a moment, else it
	// is a problem.Conflict; the secret stays.
	ReplaceClient(ctx context.Context, c Client, since time.Time) error
	// SetClientSecret writes the secrets of a client whose hash is still old; else it is
	// a problem.Conflict.
	SetClientSecret(ctx context.Context, c Client, old string) error
	// EndOldSecret takes the secret before its present one from a client; where there is
	// none that is good at a moment it is a problem.Conflict.
	EndOldSecret(ctx context.Context, id string, now time.Time) error
	// TouchOldSecret notes that the old secret with a hash was used.
	TouchOldSecret(ctx context.Context, id, hash string, now time.Time) error
	// SetClientLogo replaces the picture of a client; the zero value is none.
	SetClientLogo(ctx context.Context, id string, l logo.Logo, at time.Time) error
	// DeleteClient removes a client and its grants, and revokes its tokens.
	DeleteClient(ctx context.Context, r revocation.Revocation) error

	// Record writes the audit event of a decision that changes no row. Every other method
	// that changes something writes its own, in the same transaction.
	Record(ctx context.Context, e audit.Event) error

	// RehashPassword replaces the hash of a subscriber's password by another of the same,
	// if it is still old, else it is problem.NotFound. Nothing ends by that.
	RehashPassword(ctx context.Context, projectID, subscriberID, old, new string) error
	// CreateSession writes a login, if the subscriber still has the password hash
	// that was checked and is not disabled; else it is a problem.Conflict. Notices are
	// queued along with it, unless it is the first login that there ever was.
	CreateSession(ctx context.Context, s Session, passwordHash string, notices ...mail.Letter) error
	FindSession(ctx context.Context, id string) (Session, error)
	// RaiseSession writes the AMR of a login, if it has not been ended.
	RaiseSession(ctx context.Context, s Session) error
	// MarkedSessions returns the logins made in the browser of a mark that were not ended.
	MarkedSessions(ctx context.Context, mark string) ([]Session, error)
	// HeldSessions returns the logins of a subscriber that were not ended, whose cookie is
	// good or of which there is a grant that is, newest first.
	HeldSessions(ctx context.Context, projectID, subscriberID string, now time.Time) ([]Held, error)
	// ListApps returns the clients that a subscriber has agreed to, or that have a grant of
	// its which is good, by name.
	ListApps(ctx context.Context, projectID, subscriberID string, now time.Time) ([]App, error)
	// EndSessions ends logins and their grants, revokes their tokens and queues their
	// logouts, in one transaction. Ending one again changes nothing.
	EndSessions(ctx context.Context, now time.Time, all ...revocation.Revocation) error

	// FindBrowser returns the Logins that a browser holds, by project, and when it was
	// here last; those that were ended or have expired are none.
	FindBrowser(ctx context.Context, browser string) (logins map[string]string, seen time.Time, err error)
	// MoveBrowser returns Logins, by project, to a browser, and takes all others from
	// the one that it was before, in one transaction; either may be "".
	MoveBrowser(ctx context.Context, from, to string, logins map[string]string) error
	// SeeBrowser notes that a browser is here now.
	SeeBrowser(ctx context.Context, browser string) error

	// RedeemCode makes the grant of a code, unless the code with this hash was
	// redeemed before: then it is a problem.Conflict. Where the login was ended
	// meanwhile, a consent taken back, or the client or subscriber deleted, it is
	// problem.NotFound.
	RedeemCode(ctx context.Context, c RedeemedCode, g Grant) error
	FindRedeemedCode(ctx context.Context, hash string) (RedeemedCode, error)
	FindGrant(ctx context.Context, id string) (Grant, error)
	// RotateGrant writes the refresh token of a living grant (its hash, Seed,
	// Rotated and IdleUntil) if the hash is still old; a problem.Conflict means that
	// the token was used before.
	RotateGrant(ctx context.Context, g Grant, old string) error
	// RevokeGrant ends a grant and its access tokens, in one transaction.
	RevokeGrant(ctx context.Context, id string, now time.Time, r revocation.Revocation) error

	// UseAssertion remembers the digest of an assertion until it has expired; one that
	// is remembered already is a problem.Conflict.
	UseAssertion(ctx context.Context, hash string, expires time.Time) error

	// SweepLogins deletes redeemed codes and used assertions that have expired, grants that began before
	// a moment and expired before another, and logins that began before it and have
	// no grants left.
	SweepLogins(ctx context.Context, began, expired time.Time) error

	// QueueLetter writes a letter that is to be sent.
	QueueLetter(ctx context.Context, l mail.Letter) error
	// ForgetLetters deletes letters that were sent, and that were given up, before
	// moments, and links that expired before another.
	ForgetLetters(ctx context.Context, sent, dead, expired time.Time) error
	// CreateLink writes a link. If it has a subscriber who is disabled by now, or has
	// another e-mail than it is bound to, it is problem.NotFound. One that is Alone ends
	// those before it.
	CreateLink(ctx context.Context, l Link) error
	// FindLink finds a link that was not used and has not ended.
	FindLink(ctx context.Context, hash string) (Link, error)

	// FindConsent returns the scopes that a subscriber has agreed to for a client.
	FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error)
	// AddConsent adds to them, or begins them.
	AddConsent(ctx context.Context, subscriberID, clientID string, scopes []string, now time.Time) error
	// RevokeConsent takes a consent back and ends the client's grants, in one
	// transaction; where there is neither it is problem.NotFound.
	RevokeConsent(ctx context.Context, subscriberID, clientID string, now time.Time,
		ending func(grantID string) revocation.Revocation) error
}

// Subscribers finds who logs in.
type Subscribers interface {
	FindSubscriber(ctx context.Context, projectID, id string) (fabric.Subscriber, error)
	FindSubscriberByEmail(ctx context.Context, projectID, email string) (fabric.Subscriber, error)
}

// Config is what a Provider works with.
type Config struct {
	Store       Store
	Subscribers Subscribers
	Sessions    session.Store
	Fabric      *fabric.Fabric
	Passwords   *password.Hasher
	Factors     *factor.Factors // nil where nobody has any
	Ring        *keys.Ring
	Revocations *revocation.List
	Issuer      string // {auth_url}/ with the slash; the audience of JWT access tokens too

	// CheckURL reports a URL that nothing may be sent to, as the fault of a parameter;
	// nil takes any.
	CheckURL func(param, url string) error
	// Fetch gets a document of at most limit bytes from a URL that a client's
	// registration has. Its errors are told to the client; nil fetches nothing.
	Fetch func(ctx context.Context, url string, limit int64) ([]byte, error)
	// DeviceGuesses is how many user codes of devices may be typed at one place in ten
	// minutes; 0 is no limit.
	DeviceGuesses int
	// Limits holds logins, authorization requests and mails; nil holds none.
	Limits *limit.Limiter

	Lifetimes Lifetimes          // to begin with: see [Provider.SetLifetimes]
	Observe   func(event string) // told of "login", "login_refused", "code", "token_<grant>"; nil tells nobody
	Now       func() time.Time   // nil means time.Now
}

// Lifetimes says how long things live; a zero field means its default.
type Lifetimes struct {
	Request         time.Duration // an authorization request waiting for its login: 30 minutes
	Device          time.Duration // a device waiting for its login: 10 minutes
	Code            time.Duration // 60 seconds (RFC 6749, section 4.1.2 allows ten minutes)
	IDToken         time.Duration // 1 hour
	AccessFabric    time.Duration // a sealed access token: 2 hours; at most MaxAccess
	AccessJWT       time.Duration // a JWT access token: 15 minutes; at most MaxAccess
	RefreshIdle     time.Duration // a refresh token not used: 30 days
	RefreshAbsolute time.Duration // a chain of refresh tokens: 180 days
	BrowserIdle     time.Duration // a browser session not used: 12 hours
	BrowserAbsolute time.Duration // a browser session: 7 days
	ResetLink       time.Duration // a link to set a new password, and others that begin at a page of ours: 30 minutes
	VerifyLink      time.Duration // a link to verify an e-mail: 24 hours
	InviteLink      time.Duration // an invitation: 7 days
}

func (l *Lifetimes) fill() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&l.Request, 30*time.Minute)
	def(&l.Device, 10*time.Minute)
	def(&l.Code, time.Minute)
	def(&l.IDToken, time.Hour)
	def(&l.AccessFabric, 2*time.Hour)
	def(&l.AccessJWT, 15*time.Minute)
	def(&l.RefreshIdle, 30*24*time.Hour)
	def(&l.RefreshAbsolute, 180*24*time.Hour)
	def(&l.BrowserIdle, 12*time.Hour)
	def(&l.BrowserAbsolute, 7*24*time.Hour)
	def(&l.ResetLink, 30*time.Minute)
	def(&l.VerifyLink, 24*time.Hour)
	def(&l.InviteLink, 7*24*time.Hour)
}

// MaxAccess is the longest that an access token may be configured to live, and
// remembered how long its revocation is kept: longer, whichever process with
// whatever configuration wrote it.
const (
	MaxAccess  = 30 * 24 * time.Hour
	remembered = MaxAccess + 24*time.Hour
)

// A key is kept until all that it signed has expired: this does not compile where
// it is not.
const _ = uint64(keys.Kept - MaxAccess)

// A Provider is the identity provider. Its methods may be called at once from
// any number of goroutines.
type Provider struct {
	Config
	lifetimes atomic.Pointer[Lifetimes]
	seen      *cache.Cache[Session]
	clients   *cache.Cache[Client]
	projects  *cache.Cache[fabric.Project]
	open      *cache.Cache[bool] // whether people may register anywhere
	codes     *keys.Sealer       // of authorization codes
	remote    keyring
	uses      background.Queue // of old secrets, to be noted
}

// Sweep deletes what no token depends on any more.
func (p *Provider) Sweep(ctx context.Context) error {
	l, expired := p.Lifetimes(), p.Now().Add(-remembered)
	return p.Store.SweepLogins(ctx, expired.Add(-l.BrowserAbsolute-l.RefreshAbsolute), expired)
}

// New makes a Provider.
func New(c Config) *Provider {
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
			return nil, errors.New("nothing is fetched here")
		}
	}
	p := &Provider{Config: c, seen: cache.New[Session](c.Now), clients: cache.New[Client](c.Now),
		projects: cache.New[fabric.Project](c.Now), open: cache.New[bool](c.Now)}
	p.codes = p.Ring.Sealer("authorization code", "code", "")
	p.SetLifetimes(c.Lifetimes)
	return p
}

// Lifetimes says how long what is made now lives.
func (p *Provider) Lifetimes() Lifetimes { return *p.lifetimes.Load() }

// SetLifetimes changes how long things live that are made from now on. It may be
// called while others use the Provider.
func (p *Provider) SetLifetimes(l Lifetimes) {
	l.fill()
	l.AccessFabric, l.AccessJWT = min(l.AccessFabric, MaxAccess), min(l.AccessJWT, MaxAccess)
	p.lifetimes.Store(&l)
}

// ending is the revocation of everything of a thing, now and later.
func (p *Provider) ending(kind, id string) revocation.Revocation {
	until := p.Now().Add(remembered)
	return revocation.Revocation{Kind: kind, ID: id, Until: until, Expires: until}
}
