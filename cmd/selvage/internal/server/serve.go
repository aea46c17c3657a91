package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls/turn"
	"github.com/selvage/selvage/cmd/selvage/internal/clock"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/console"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/web"
)

// A server is a running selvage: listeners that serve an app.
type server struct {
	config   Config
	app      *App
	log      *slog.Logger
	level    *slog.LevelVar
	metrics  *metrics
	stopping atomic.Bool
	ports    ports
	certs    certificates // certificates for ports.tls
	turn     *turn.Server // TURN server on ports.turn; may be nil
	servers  []*http.Server
	ops      *http.Server // the server on ports.ops; may be nil
	failed   chan error
	signals  chan os.Signal
}

// damageCheckTime limits how long a start checks an SQLite file for damage. It is enough for a
// gigabyte in the system's cache. Checks of larger files end early.
const damageCheckTime = time.Second

// Config holds the configuration and the functions that [Serve] needs.
type Config struct {
	Config         config.Config
	Reload         func() (config.Config, error) // reads the configuration again
	IsSet          func(key string) bool         // reports whether the configuration sets a key
	Version        string                        // version of the program
	Getenv         func(string) string
	Hashes         func() *exec.Cmd // returns the command of the process that hashes passwords
	Stdout, Stderr io.Writer
}

// Serve serves until ctx is done or a signal stops the process. In this order, it
//
//   - locks the data directory and opens the listeners, so that a start that fails here
//     changes nothing,
//   - opens the backends, checks the clock and the certificates,
//   - creates what the first start creates, and starts the background work,
//   - accepts requests, and prints that it is ready.
func Serve(ctx context.Context, c Config) (err error) {
	conf := c.Config
	ctx = audit.With(ctx, &audit.Origin{Actor: audit.Actor{Kind: audit.System}})
	s := &server{
		config:  c,
		level:   new(slog.LevelVar),
		metrics: newMetrics(c.Version),
		failed:  make(chan error, 4),
	}
	s.notifySignals()
	defer signal.Stop(s.signals)

	s.level.Set(slog.Level(conf.Log.Level))
	s.log = console.NewLogger(c.Stderr, conf.Log.Format, s.level)
	// Libraries to which no logger can be passed use the default logger.
	slog.SetDefault(console.NewLogger(c.Stderr, conf.Log.Format, slog.LevelError))

	tracer, err := traces(ctx, c, s.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	s.log = tracer.Log(s.log)

	if err := datadir.Make(conf.Data); err != nil {
		return err
	}
	lock, err := datadir.Lock(conf.Data)
	if err != nil {
		return err
	}
	defer lock.Close()
	s.ports, err = openPorts(ctx, c, s.log)
	if err != nil {
		return err
	}

	w := config.Locate(conf, portIn(s.ports.http), portIn(s.ports.tls))
	if s.ports.mtls != nil {
		w = w.LocateMTLS(portIn(s.ports.mtls))
	}

	for _, warning := range conf.Warnings() {
		s.log.Warn(warning, "public_url", w.Public, "auth_url", w.Auth)
	}
	s.app, err = Open(ctx, conf, w, Options{
		Log:     s.log,
		observe: s.metrics.event,
		mails:   s.metrics.mail,
		Media:   conf.Services.Has(config.Recordings),
		check:   damageCheckTime,
		version: c.Version,
		tracer:  tracer,
		serves:  true,
	})
	if err != nil {
		return errors.Join(err, s.ports.close())
	}
	if err := s.prepare(ctx); err != nil {
		return errors.Join(err, s.ports.close(), s.app.Close())
	}
	err = s.run(ctx)
	return errors.Join(err, s.app.Close())
}

// prepare checks the clock, and opens what only a server needs: calls, deliverers, certificates and
// the TURN server.
func (s *server) prepare(ctx context.Context) (err error) {
	if err := clock.Source(s.app.Store.Clock).Check(ctx, s.log); err != nil {
		return err
	}

	s.app.buildRelay(s.log, s.metrics.message)
	s.app.joinNodes(s.metrics.calls.answered, s.log)
	if err := s.app.openCalls(ctx, &s.metrics.calls, s.log); err != nil {
		return err
	}

	s.app.buildDeliverers(s.log, s.metrics.webhook, s.metrics.logout, s.metrics.callback)
	s.metrics.watch(s.app)
	if s.ports.tls != nil || s.ports.mtls != nil {
		s.certs, err = openCertificates(s.config.Config, s.app, s.log)
		if err != nil {
			return err
		}
		s.metrics.watchCertificates(s.certs)
	}

	if err := s.secureSIP(); err != nil {
		return err
	}
	if s.ports.turn != nil {
		if err := s.openTURN(); err != nil {
			return err
		}
		s.metrics.watchTURN(s.turn)
	}
	return nil
}

// A created describes what a start has created, for the people who read its output.
type created struct {
	demo  string // text about the demo project; may be ""
	setup string // link for the first operator; may be ""
}

// create creates the configured owner, and the demo and the setup link of a first start.
func (a *App) create(ctx context.Context) (c created, err error) {
	if err := a.bootstrap(ctx); err != nil {
		return c, err
	}
	c.demo, err = a.Demo.FirstRun(ctx)
	if err != nil {
		return c, err
	}
	if err := a.Demo.Open(ctx); err != nil {
		return c, err
	}
	c.setup, err = a.inviteOwner(ctx)
	return c, err
}

// run serves until a signal stops the process.
func (s *server) run(ctx context.Context) error {
	handler, err := s.app.routes(s.log)
	if err != nil {
		return errors.Join(err, s.ports.close())
	}
	created, err := s.app.create(ctx)
	if err != nil {
		return errors.Join(err, s.ports.close())
	}
	s.app.passwords.Apart(s.config.Hashes, func(err error) {
		s.log.Warn("hashing passwords in this process", "error", err)
	})
	defer s.app.passwords.Close()

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()

	work.Go(func() { s.app.revocations.Run(background) })
	work.Go(func() { boundMemory(background, s.config.Getenv) })
	work.Go(func() { s.app.Ring.Run(background, s.log) })
	for _, run := range s.deferredWork() {
		work.Go(func() {
			select {
			case <-background.Done():
			case <-time.After(deferWork):
				run(background)
			}
		})
	}

	if s.app.relay != nil {
		work.Go(func() { s.app.relay.Run(background) })
	}
	work.Go(func() { s.app.bus.Run(background) })
	work.Go(func() { s.app.Chat.Run(background) })
	if s.app.Calls != nil {
		work.Go(func() { s.app.Calls.Run(background) })
		work.Go(func() { s.app.Calls.RunNode(background) })
		work.Go(func() { s.app.Calls.WatchNodes(background) })
	}
	if s.app.sip != nil {
		work.Go(func() { s.app.sip.Run(background) })
	}
	if s.turn != nil {
		work.Go(func() { s.turn.Watch(background) })
		if s.app.mediaNodes != nil {
			work.Go(func() { s.app.mediaNodes.watch(background) })
		}
	}
	if s.app.spools != nil {
		work.Go(func() { s.app.spools.Run(background) })
	}

	if c, ok := s.certs.(challenged); ok {
		handler = c.Handler(handler)
	}
	handler = patientBodies(handler, patience)
	handler = strictTransport(s.app.Config, handler)
	handler = s.app.tracer.Handler(handler)
	handler = web.Outer(handler, s.log, s.metrics.request)
	handler = s.app.proxies.Handler(handler)
	s.start(s.closeWhenStopping(handler))
	if r, ok := s.certs.(runner); ok {
		work.Go(func() { r.Run(background) })
	}

	if err := s.running().Write(s.app.Config.Data); err != nil {
		return errors.Join(err, s.shutdown(ctx, 0))
	}
	defer os.Remove(filepath.Join(s.app.Config.Data, datadir.RunFile))
	s.printReady(created)
	return s.wait(ctx)
}

// deferWork is the delay of background work that no request waits for. It leaves the processor to the
// first requests.
const deferWork = 500 * time.Millisecond

// deferredWork returns the background work that starts after deferWork.
func (s *server) deferredWork() []func(context.Context) {
	a := s.app
	return []func(context.Context){
		func(ctx context.Context) { a.sweep(ctx, s.log) },
		func(ctx context.Context) { backupRunner{a}.run(ctx, s.log) },
		func(ctx context.Context) { a.count(ctx, s.log) },
		installationPages{a}.keepExamined,
		a.webhooks.Run,
		a.logouts.Run,
		a.callbacks.Run,
		a.Post.Run,
		func(ctx context.Context) {
			a.Fabric.Presence.Watch(ctx, func(err error) {
				s.log.Error("checking for stale presence", "error", err)
			})
		},
	}
}
