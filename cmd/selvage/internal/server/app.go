// Package server assembles the services. It opens the backends that the configuration names, builds
// the services on them, and serves their APIs and pages until it is stopped.
//
// [Serve] runs a server. Commands that change an installation only call [Open], even while a server is
// running. The rules and protocols are in the packages that this package assembles.
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

// Options holds what differs between a server and a command.
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
	a := &App{
		Config:     c,
		Where:      w,
		version:    o.version,
		node:       uuid.NewString(),
		backupJobs: newBackupJobs(),
	}
	a.tracer = o.tracer
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()

	// Load the kinds while the database is being opened, because both take a while.
	kindsLoaded := make(chan struct{})
	var catalog *kinds.Catalog
	var kindsErr error
	go func() {
		defer close(kindsLoaded)
		catalog, kindsErr = kinds.Load(c.KindsDir())
	}()

	if err := a.openStore(ctx, c, o.check); err != nil {
		return nil, err
	}
	a.Ring, err = OpenRing(ctx, c, a.Store, o.Log)
	if err != nil {
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
	<-kindsLoaded
	if kindsErr != nil {
		return nil, kindsErr
	}

	a.factors, err = a.newFactors(w.Auth)
	if err != nil {
		return nil, err
	}
	a.operatorFactors, err = a.newFactors(w.Public)
	if err != nil {
		return nil, err
	}

	if err := a.openPolicy(); err != nil {
		return nil, err
	}
	a.clientCAs, err = readClientCAs(string(c.TLS.ClientCA))
	if err != nil {
		return nil, err
	}

	a.build(catalog, o)
	a.Demo, err = demo.New(demo.Config{
		Dir:           c.Data,
		Where:         w,
		Allowed:       a.AllowsDemo(),
		Fabric:        a.Fabric,
		IDP:           a.IDP,
		Operators:     a.Operators,
		Recordings:    a.Recordings,
		SetupLink:     a.setupLink,
		Links:         a.links,
		LoopbackMedia: c.MediaListener().Loopback(),
		SDK:           c.DemoSDK,
	})
	if err != nil {
		return nil, err
	}
	return a, a.openPost(o.Log, o.mails)
}

// Local reports whether only this machine can reach the server. This is the case if it listens on
// loopback, and its public and auth URLs are local. With any other URL, a proxy may make the server
// reachable.
func (a *App) Local() bool {
	for _, l := range []config.HostPort{a.Config.TLSAddress(), a.Config.ListenMTLS} {
		if l != config.Off && !l.Loopback() {
			return false
		}
	}
	return a.Config.Listen.Loopback() && a.Where.Local()
}
