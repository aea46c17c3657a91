package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

// newFactors returns the second factors for logins at url.
func (a *App) newFactors(url string) (*factor.Factors, error) {
	return factor.New(factor.Config{Store: a.Store, Sessions: a.sessions, Ring: a.Ring, AuthURL: url})
}

// build builds the services and connects them. Package fabric asks the identity provider whether a
// login is still valid. The identity provider asks package fabric for subscribers and tokens.
func (a *App) build(catalog *kinds.Catalog, o Options) {
	a.passwords = password.New(a.Config.Password.Parallel)
	a.passwords.NextImported = a.Store.NextImported
	a.policy.Hasher = a.passwords
	a.limits = limit.New(a.sessions, rates(a.Config))
	a.proxies.CertificateHeader = string(a.Config.ClientCertHeader)
	a.proxies.Set(a.Config.TrustedProxies.Prefixes())
	a.egress = egress.Policy{Allow: a.Config.Egress.Allow, Log: egress.NewLog(o.Log)}

	a.proofs = dpop.New(dpop.Config{
		Sessions: a.sessions,
		Used:     a.proofsUsed,
		Key:      a.Ring.Derive,
		Origins:  a.Where.Origins(),
	})
	a.Fabric = fabric.New(fabric.Config{
		Stores:      a.Store.Fabric(),
		Ring:        a.Ring,
		Kinds:       catalog,
		Passwords:   a.passwords,
		Revocations: a.revocations,
		Sessions:    a.sessions,
		Node:        a.node,
		Host:        a.Where.Fabric,
		Issuer:      a.Where.Issuer(),
		Issued:      a.Store.CountToken,
		Live:        func(ctx context.Context, sid string) error { return a.IDP.Logins.Live(ctx, sid) },
		EmbedLimits: fabric.EmbedLimits{
			Tokens:  int(a.Config.Limits.EmbedTokens),
			Sockets: int(a.Config.Limits.EmbedSockets),
		},
		Weak:        a.policy.Weak,
		MinPassword: a.policy.MinLength,
		EndLogin:    func(ctx context.Context, sid string) error { return a.IDP.Logins.End(ctx, sid) },
		RevokeConsent: func(ctx context.Context, subscriberID, clientID string) error {
			return a.IDP.Consents.Revoke(ctx, subscriberID, clientID)
		},
		Factors:  a.factors,
		CheckURL: a.egress.Check,
		Export:   a.export,
		Erased:   a.erased,
	})

	a.IDP = idp.New(idp.Config{
		Store: idp.Stores{
			Clients:       a.Store,
			Logins:        a.Store,
			Grants:        a.Store,
			Consents:      a.Store,
			Letters:       a.Store,
			Uses:          a.Store,
			Used:          a.used,
			Registrations: a.Store,
			Upstreams:     a.Store,
		},
		Subscribers:   a.Store,
		Sessions:      a.sessions,
		Fabric:        a.Fabric,
		Passwords:     a.passwords,
		Factors:       a.factors,
		Ring:          a.Ring,
		Revocations:   a.revocations,
		Issuer:        a.Where.Issuer(),
		ClientCAs:     a.clientCAs,
		Lifetimes:     lifetimes(a.Config),
		Observe:       o.observe,
		CheckURL:      a.egress.Check,
		Fetch:         a.egress.Fetcher(),
		DeviceGuesses: int(a.Config.Limits.DeviceCodes),
		Limits:        a.limits,
		MaxRegistered: int(a.Config.Limits.RegisteredClients),
	})

	a.CallRecords = calls.NewRecords(a.Store)
	a.RoomSessions = calls.NewRooms(a.Store, a.Store)
	a.Chat = chat.New(chat.Config{Fabric: a.Fabric, Store: a.Store, Admit: a.admitMessage})

	a.Operators = operator.New(operator.Config{
		Store:     a.Store,
		Passwords: a.passwords,
		Weak:      a.policy.Weak,
		Limits:    a.limits,
		Sessions:  a.sessions,
		Idle:      time.Duration(a.Config.Operators.Idle),
		Absolute:  time.Duration(a.Config.Operators.Absolute),
	})
	if a.media == nil {
		return
	}
	a.Recordings = recordings.New(recordings.Config{
		Store:        a.Store,
		Media:        a.media,
		MaxUpload:    int64(a.Config.Recordings.MaxUpload),
		Wait:         time.Duration(a.Config.Recordings.Wait),
		Links:        a.Ring,
		CheckMaker:   recordingsCallers{a}.checkMaker,
		Calls:        recordedCalls{a},
		CheckURL:     a.egress.Check,
		SubscriberOf: a.Fabric.Addresses.SubscriberOf,
		CountUpload:  a.countUpload,
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
		Fabric:  a.Fabric,
		Node:    a.node,
		Confirm: a.proofs.ConfirmRPC,
		Observe: observe,
		Log:     log,
		Limits: relay.Limits{
			PerCaller:  limits.RelaySockets.OrNegative(),
			PerNetwork: limits.RelayUnauthenticated.OrNegative(),
		},
	})
}

// buildDeliverers builds the deliverers for events to webhooks, logouts to clients, and status
// callbacks of recordings. Every node has these deliverers, whichever services it runs. The functions
// webhook, logout and callback receive the result of each attempt.
func (a *App) buildDeliverers(log *slog.Logger, webhook, logout, callback func(result string)) {
	a.webhooks = deliver.New(deliver.Config{
		Queue:   a.Store.Webhooks.Queue(),
		Client:  a.tracer.Client("webhook", a.egress.Client()),
		Writer:  deliver.Signed(a.Fabric.Webhooks.SigningKey),
		Agent:   "selvage",
		Observe: webhook,
		Log:     log,
	})

	a.logouts = deliver.New(deliver.Config{
		Queue:   a.Store.Logouts.Queue(),
		Client:  a.tracer.Client("logout", a.egress.Client()),
		Writer:  oidc.LogoutWriter(a.IDP),
		Verdict: oidc.LogoutVerdict,
		Agent:   "selvage",
		What:    "client",
		Observe: logout,
		Log:     log,
	})

	a.callbacks = deliver.New(deliver.Config{
		Queue:   a.Store.CallbackQueue(),
		Client:  a.tracer.Client("callback", a.egress.Client()),
		Writer:  laml.CallbackWriter(a.Where.Public, a.Fabric.Webhooks.SigningKey),
		Agent:   "selvage",
		What:    "callback",
		Observe: callback,
		Log:     log,
	})
}

// lifetimes returns the configured lifetimes.
func lifetimes(c config.Config) idp.Lifetimes {
	return idp.Lifetimes{
		Code:            time.Duration(c.Tokens.Code),
		Pushed:          time.Duration(c.Tokens.Pushed),
		AccessFabric:    time.Duration(c.Tokens.AccessFabric),
		AccessJWT:       time.Duration(c.Tokens.AccessJWT),
		RefreshIdle:     time.Duration(c.Tokens.RefreshIdle),
		RefreshAbsolute: time.Duration(c.Tokens.RefreshAbsolute),
		BrowserIdle:     time.Duration(c.Session.Idle),
		BrowserAbsolute: time.Duration(c.Session.Absolute),
	}
}
