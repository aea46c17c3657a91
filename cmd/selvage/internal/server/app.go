// Package server assembles the services. It opens the backends that the configuration names, builds
// the services on them, and serves their APIs and pages until it is stopped.
//
// [Serve] runs a server. Commands that change an installation only call [Open]; a server may be
// running. The rules and protocols are in the packages assembled here.
package server

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/calls/rtpengine"
	"github.com/selvage/selvage/calls/sip"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/demo"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/bus"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/telemetry"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

// An App holds the services and their backends. A server serves it over HTTP; commands call it.
type App struct {
	Config  config.Config
	Where   config.Where
	version string // version of the program

	examined   atomic.Pointer[[]dashboard.Finding] // the results of the last examination
	backupJobs *backupJobs

	backends
	Ring        *keys.Ring
	passwords   *password.Hasher
	policy      password.Policy
	revocations *revocation.List
	limits      *limit.Limiter
	proxies     web.Proxies
	egress      egress.Policy
	clientCAs   *x509.CertPool // authorities for client certificates; nil means none

	Fabric          *fabric.Fabric
	IDP             *idp.Provider
	factors         *factor.Factors
	operatorFactors *factor.Factors // for operators, whose passkeys are bound to the dashboard's host
	pages           *dashboard.API  // nil if the dashboard is not served
	Operators       *operator.Operators
	Recordings      *recordings.Recordings // nil without media
	CallRecords     *calls.Records         // records of the calls on all nodes
	RoomSessions    *calls.Rooms           // room sessions on all nodes
	Chat            *chat.Chat
	relay           *relay.Relay // nil if the relay is not served
	proofs          *dpop.Verifier
	Calls           *calls.Calls      // nil if this node carries no calls
	engine          *media.Engine     // nil if this node carries no calls
	rtpengines      *rtpengine.Engine // nil without calls or without rtpengines
	mediaNodes      *mediaNodes       // nil without calls or if this is the only node
	sip             *sip.Server       // nil without calls or if listen_sip is off
	bus             *bus.Bus          // messages to other nodes; nil except in a server
	spools          *record.Spools    // nil if this node carries no calls or has no media
	node            string            // name of this process among the nodes
	Demo            *demo.Demo
	webhooks        *deliver.Deliverer // nil except in a server
	logouts         *deliver.Deliverer // nil except in a server
	callbacks       *deliver.Deliverer // nil except in a server
	Post            *mail.Post
	Box             *mail.Box // keeps emails; nil if they are sent
}

// Options holds the differences between a server and a command.
type Options struct {
	Log     *slog.Logger        // logger for problems that do not make Open fail
	observe func(event string)  // receives the events of the identity provider; may be nil
	mails   func(result string) // receives the result of each attempt to send an email; may be nil
	Media   bool                // open the media of recordings
	serves  bool                // this process is the server of its data directory, which is locked
	version string              // version of the program
	tracer  *telemetry.Tracer   // nil without tracing
	check   time.Duration       // limits how long the database is checked for damage
}

// Open opens the backends and builds the services.
func Open(ctx context.Context, c config.Config, w config.Where, o Options) (_ *App, err error) {
	a := &App{Config: c, Where: w, version: o.version, node: uuid.NewString(), backupJobs: newBackupJobs()}
	a.tracer = o.tracer
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()

	// Loading kinds and opening the database both take a while: do them at the same time.
	kindsLoaded := make(chan struct{})
	var all *kinds.Catalog
	var kindsErr error
	go func() {
		defer close(kindsLoaded)
		all, kindsErr = kinds.Load(c.KindsDir())
	}()

	if err := a.openStore(ctx, c, o.check); err != nil {
		return nil, err
	}
	if a.Ring, err = OpenRing(ctx, c, a.Store, o.Log); err != nil {
		return nil, err
	}
	if err := a.openSessions(ctx, c, o.Log); err != nil {
		return nil, err
	}
	if o.serves {
		if err := a.openUsed(ctx, c); err != nil {
			return nil, err
		}
	}
	if o.Media {
		if err := a.openMedia(c); err != nil {
			return nil, err
		}
	}

	a.revocations = revocation.New(a.Store, nil)
	if err := a.revocations.Sync(ctx); err != nil {
		return nil, err
	}
	if <-kindsLoaded; kindsErr != nil {
		return nil, kindsErr
	}

	if a.factors, err = a.newFactors(w.Auth); err != nil {
		return nil, err
	}
	if a.operatorFactors, err = a.newFactors(w.Public); err != nil {
		return nil, err
	}

	if err := a.openPolicy(); err != nil {
		return nil, err
	}
	if a.clientCAs, err = readClientCAs(string(c.TLS.ClientCA)); err != nil {
		return nil, err
	}

	a.build(all, o)
	if a.Demo, err = demo.New(demo.Config{
		Dir: c.Data, Where: w, Allowed: a.AllowsDemo(), Fabric: a.Fabric, IDP: a.IDP, Operators: a.Operators,
		Recordings: a.Recordings, SetupLink: a.setupLink, Links: a.links,
		LoopbackMedia: c.MediaListener().Loopback(), SDK: c.DemoSDK,
	}); err != nil {
		return nil, err
	}
	return a, a.openPost(o.Log, o.mails)
}

// newFactors returns the second factors for logins at url.
func (a *App) newFactors(url string) (*factor.Factors, error) {
	return factor.New(factor.Config{Store: a.Store, Sessions: a.sessions, Ring: a.Ring, AuthURL: url})
}

// build builds the services and connects them. Package fabric asks the identity provider whether a
// login is still valid. The identity provider asks package fabric for subscribers and tokens.
func (a *App) build(all *kinds.Catalog, o Options) {
	a.passwords = password.New(a.Config.Password.Parallel)
	a.passwords.NextImported = a.Store.NextImported
	a.policy.Hasher = a.passwords
	a.limits = limit.New(a.sessions, rates(a.Config))
	a.proxies.CertificateHeader = string(a.Config.ClientCertHeader)
	a.proxies.Set(a.Config.TrustedProxies.Prefixes())
	a.egress = egress.Policy{Allow: a.Config.Egress.Allow, Log: egress.NewLog(o.Log)}

	a.proofs = dpop.New(dpop.Config{Sessions: a.sessions, Used: a.proofsUsed, Key: a.Ring.Derive,
		Origins: a.Where.Origins()})
	a.Fabric = fabric.New(fabric.Config{
		Stores: a.Store.Fabric(), Ring: a.Ring, Kinds: all, Passwords: a.passwords, Revocations: a.revocations,
		Sessions: a.sessions, Node: a.node,
		Host: a.Where.Fabric, Issuer: a.Where.Issuer(), Issued: a.Store.CountToken,
		Live: func(ctx context.Context, sid string) error { return a.IDP.Logins.Live(ctx, sid) },
		EmbedLimits: fabric.EmbedLimits{Tokens: int(a.Config.Limits.EmbedTokens),
			Sockets: int(a.Config.Limits.EmbedSockets)},
		Weak: a.policy.Weak, MinPassword: a.policy.MinLength,
		EndLogin: func(ctx context.Context, sid string) error { return a.IDP.Logins.End(ctx, sid) },
		RevokeConsent: func(ctx context.Context, subscriberID, clientID string) error {
			return a.IDP.Consents.Revoke(ctx, subscriberID, clientID)
		},
		Factors:  a.factors,
		CheckURL: a.egress.Check, Export: a.export, Erased: a.erased,
	})

	a.IDP = idp.New(idp.Config{
		Store: idp.Stores{Clients: a.Store, Logins: a.Store, Grants: a.Store, Consents: a.Store,
			Letters: a.Store, Uses: a.Store, Used: a.used, Registrations: a.Store, Upstreams: a.Store},
		Subscribers: a.Store, Sessions: a.sessions, Fabric: a.Fabric, Passwords: a.passwords,
		Factors: a.factors,
		Ring:    a.Ring, Revocations: a.revocations, Issuer: a.Where.Issuer(), ClientCAs: a.clientCAs,
		Lifetimes: lifetimes(a.Config),
		Observe:   o.observe,
		CheckURL:  a.egress.Check, Fetch: a.egress.Fetcher(),
		DeviceGuesses: int(a.Config.Limits.DeviceCodes), Limits: a.limits,
		MaxRegistered: int(a.Config.Limits.RegisteredClients),
	})

	a.CallRecords = calls.NewRecords(a.Store)
	a.RoomSessions = calls.NewRooms(a.Store, a.Store)
	a.Chat = chat.New(chat.Config{Fabric: a.Fabric, Store: a.Store, Admit: a.admitMessage})

	a.Operators = operator.New(operator.Config{
		Store: a.Store, Passwords: a.passwords, Weak: a.policy.Weak, Limits: a.limits, Sessions: a.sessions,
		Idle: time.Duration(a.Config.Operators.Idle), Absolute: time.Duration(a.Config.Operators.Absolute),
	})
	if a.media == nil {
		return
	}
	a.Recordings = recordings.New(recordings.Config{
		Store: a.Store, Media: a.media, MaxUpload: int64(a.Config.Recordings.MaxUpload),
		Wait: time.Duration(a.Config.Recordings.Wait), Links: a.Ring, CheckMaker: recordingsCallers{a}.checkMaker,
		Calls: recordedCalls{a}, CheckURL: a.egress.Check, SubscriberOf: a.Fabric.Addresses.SubscriberOf,
		CountUpload: a.countUpload,
	})
}

// buildRelay builds the relay, if this node serves it. observe is called for each message to the
// relay.
func (a *App) buildRelay(log *slog.Logger, observe func(method, result string)) {
	if !a.serves(config.Relay) {
		return
	}
	limits := a.Config.Limits
	a.relay = relay.New(relay.Config{
		Fabric: a.Fabric, Node: a.node, Confirm: a.proofs.ConfirmRPC, Observe: observe, Log: log,
		Limits: relay.Limits{PerCaller: limits.RelaySockets.OrNegative(),
			PerNetwork: limits.RelayUnauthenticated.OrNegative()},
	})
}

// buildDeliverers builds the deliverers for events to webhooks, logouts to clients, and status
// callbacks of recordings. Every node has these deliverers, whichever services it runs. webhook,
// logout and callback are called with the result of each attempt.
func (a *App) buildDeliverers(log *slog.Logger, webhook, logout, callback func(result string)) {
	a.webhooks = deliver.New(deliver.Config{
		Queue: a.Store.Webhooks.Queue(), Client: a.tracer.Client("webhook", a.egress.Client()),
		Writer: deliver.Signed(a.Fabric.Webhooks.SigningKey),
		Agent:  "selvage", Observe: webhook, Log: log,
	})
	a.logouts = deliver.New(deliver.Config{
		Queue: a.Store.Logouts.Queue(), Client: a.tracer.Client("logout", a.egress.Client()),
		Writer:  oidc.LogoutWriter(a.IDP),
		Verdict: oidc.LogoutVerdict,
		Agent:   "selvage", What: "client", Observe: logout, Log: log,
	})
	a.callbacks = deliver.New(deliver.Config{
		Queue: a.Store.CallbackQueue(), Client: a.tracer.Client("callback", a.egress.Client()),
		Writer: laml.CallbackWriter(a.Where.Public, a.Fabric.Webhooks.SigningKey),
		Agent:  "selvage", What: "callback", Observe: callback, Log: log,
	})
}

// Local reports whether only this machine can reach the server. This is the case if it listens on
// loopback and its public URL is local. With any other public URL, a proxy may make the server
// reachable.
func (a *App) Local() bool {
	tls := a.Config.TLSAddress()
	return a.Config.Listen.Loopback() && (tls == config.Off || tls.Loopback()) && a.Where.Local()
}

// lifetimes returns the configured lifetimes.
func lifetimes(c config.Config) idp.Lifetimes {
	return idp.Lifetimes{
		Code: time.Duration(c.Tokens.Code), Pushed: time.Duration(c.Tokens.Pushed),
		AccessFabric: time.Duration(c.Tokens.AccessFabric), AccessJWT: time.Duration(c.Tokens.AccessJWT),
		RefreshIdle: time.Duration(c.Tokens.RefreshIdle), RefreshAbsolute: time.Duration(c.Tokens.RefreshAbsolute),
		BrowserIdle: time.Duration(c.Session.Idle), BrowserAbsolute: time.Duration(c.Session.Absolute),
	}
}
