package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/selvage/selvage/dashboard"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// An app is the services over their backends: what the server mounts and the
// commands call.
type app struct {
	config config.Config
	where  config.Where

	backends
	ring        *keys.Ring
	passwords   *password.Hasher
	policy      password.Policy
	revocations *revocation.List
	limits      *limit.Limiter
	proxies     web.Proxies
	egress      egress.Policy

	fabric          *fabric.Fabric
	idp             *idp.Provider
	factors         *factor.Factors
	operatorFactors *factor.Factors // whose passkeys work where the dashboard is
	pages           *dashboard.API  // nil where it is not served
	operators       *operator.Operators
	recordings      *recordings.Recordings // nil without media
	relay           *relay.Relay           // nil where it is not served
	demo            *demoApp               // nil but in a server with demo data
	webhooks        *deliver.Deliverer     // nil but in a server
	logouts         *deliver.Deliverer     // likewise
	post            *mail.Post
	box             *mail.Box // that mails are kept in; nil where they are sent
}

// options are what a server and a command want to be different.
type options struct {
	log     *slog.Logger        // told of what works and yet should not be so
	observe func(event string)  // told what the identity provider does; nil tells nobody
	mails   func(result string) // told what becomes of mails; nil tells nobody
	media   bool                // recordings are served or handled
	check   time.Duration       // how long the database is looked through for damage
}

// open opens the backends and builds the services.
func open(ctx context.Context, c config.Config, w config.Where, o options) (_ *app, err error) {
	a := &app{config: c, where: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	kindsLoaded := make(chan struct{}) // beside the database: both take a while
	var all *kinds.Catalog
	var kindsErr error
	go func() {
		defer close(kindsLoaded)
		all, kindsErr = kinds.Load(c.KindsDir())
	}()
	if err := a.openStore(ctx, c, o.check); err != nil {
		return nil, err
	}
	if a.ring, err = openRing(ctx, c, a.store, o.log); err != nil {
		return nil, err
	}
	if err := a.openSessions(ctx, c, o.log); err != nil {
		return nil, err
	}
	if o.media {
		if err := a.openMedia(c); err != nil {
			return nil, err
		}
	}
	a.revocations = revocation.New(a.store, nil)
	if err := a.revocations.Sync(ctx); err != nil {
		return nil, err
	}
	if <-kindsLoaded; kindsErr != nil {
		return nil, kindsErr
	}
	if a.factors, err = factor.New(factor.Config{Store: a.store, Sessions: a.sessions, Ring: a.ring, AuthURL: w.Auth}); err != nil {
		return nil, err
	}
	if a.operatorFactors, err = factor.New(factor.Config{Store: a.store, Sessions: a.sessions, Ring: a.ring, AuthURL: w.Public}); err != nil {
		return nil, err
	}
	if err := a.openPolicy(); err != nil {
		return nil, err
	}
	a.build(all, o.observe)
	return a, a.openPost(o.log, o.mails)
}

// build makes the services. They meet here: the fabric asks the identity
// provider whether a login lives, which asks it for subscribers and tokens.
func (a *app) build(all *kinds.Catalog, observe func(event string)) {
	a.passwords = password.New(a.config.Password.Parallel)
	a.limits = limit.New(a.sessions, rates(a.config))
	a.proxies.Set(a.config.TrustedProxies.Prefixes())
	a.egress = egress.Policy{Allow: a.config.Egress.Allow}
	a.fabric = fabric.New(fabric.Config{
		Store: a.store, Ring: a.ring, Kinds: all, Passwords: a.passwords, Revocations: a.revocations, Sessions: a.sessions,
		Host: a.where.Fabric, Issuer: a.where.Issuer(),
		Live:        func(ctx context.Context, sid string) error { return a.idp.Live(ctx, sid) },
		EmbedLimits: fabric.EmbedLimits{Tokens: int(a.config.Limits.EmbedTokens), Sockets: int(a.config.Limits.EmbedSockets)},
		Weak:        a.policy.Weak, MinPassword: a.policy.MinLength,
		EndLogin: func(ctx context.Context, sid string) error { return a.idp.EndSession(ctx, sid) },
		RevokeConsent: func(ctx context.Context, subscriberID, clientID string) error {
			return a.idp.RevokeConsent(ctx, subscriberID, clientID)
		},
		Factors:  a.factors,
		CheckURL: a.egress.Check, Export: a.export, Erased: a.erased,
	})
	a.idp = idp.New(idp.Config{
		Store: a.store, Subscribers: a.store, Sessions: a.sessions, Fabric: a.fabric, Passwords: a.passwords, Factors: a.factors,
		Ring: a.ring, Revocations: a.revocations, Issuer: a.where.Issuer(), Lifetimes: lifetimes(a.config), Observe: observe,
		CheckURL: a.egress.Check, Fetch: a.egress.Fetcher(),
		DeviceGuesses: int(a.config.Limits.DeviceCodes), Limits: a.limits,
	})
	a.operators = operator.New(operator.Config{
		Store: a.store, Passwords: a.passwords, Weak: a.policy.Weak, Limits: a.limits, Sessions: a.sessions, Idle: time.Duration(a.config.Operators.Idle), Absolute: time.Duration(a.config.Operators.Absolute),
	})
	if a.media == nil {
		return
	}
	a.recordings = recordings.New(recordings.Config{
		Store: a.store, Media: a.media, MaxUpload: int64(a.config.Recordings.MaxUpload), Wait: time.Duration(a.config.Recordings.Wait), Links: a.ring,
		SubscriberOf: func(ctx context.Context, projectID, address string) (string, error) {
			return a.fabric.SubscriberOf(ctx, projectID, address, "")
		},
	})
}

// serveRelay makes the relay, if it is asked for. observe is told of its messages.
func (a *app) serveRelay(log *slog.Logger, observe func(method, result string)) {
	if a.serves(config.Relay) {
		limits := a.config.Limits
		a.relay = relay.New(relay.Config{
			Fabric: a.fabric, Observe: observe, Log: log,
			Limits: relay.Limits{PerCaller: limits.RelaySockets.OrNone(), PerNetwork: limits.RelayUnauthenticated.OrNone()},
		})
	}
}

// serveDeliveries makes what tells webhooks of events, and clients of logouts. Every node
// does, whatever it serves. webhook and logout are told of each attempt.
func (a *app) serveDeliveries(log *slog.Logger, webhook, logout func(result string)) {
	a.webhooks = deliver.New(deliver.Config{
		Queue: a.store.Webhooks(), Client: a.egress.Client(), Writer: deliver.Signed(a.fabric.SigningKey), Agent: "selvage", Observe: webhook, Log: log,
	})
	a.logouts = deliver.New(deliver.Config{
		Queue: a.store.Logouts(), Client: a.egress.Client(), Writer: oidc.LogoutWriter(a.idp), Verdict: oidc.LogoutVerdict,
		Agent: "selvage", What: "client", Observe: logout, Log: log,
	})
}

// lifetimes gives those of the configuration.
func lifetimes(c config.Config) idp.Lifetimes {
	return idp.Lifetimes{
		Code: time.Duration(c.Tokens.Code), AccessFabric: time.Duration(c.Tokens.AccessFabric), AccessJWT: time.Duration(c.Tokens.AccessJWT),
		RefreshIdle: time.Duration(c.Tokens.RefreshIdle), RefreshAbsolute: time.Duration(c.Tokens.RefreshAbsolute),
		BrowserIdle: time.Duration(c.Session.Idle), BrowserAbsolute: time.Duration(c.Session.Absolute),
	}
}
