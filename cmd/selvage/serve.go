package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/clock"
	"github.com/selvage/selvage/internal/config"
	"github.com/selvage/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/web"
)

func (c *cli) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve identity, fabric tokens and recordings",
		Long: "Serves everything on one HTTP and one HTTPS listener, and health, metrics and profiles on a third.\n" +
			"On an empty data directory it makes keys, a local certificate authority and, if only this machine\n" +
			"can reach it, a demo project.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd) },
	}
	config.AddFlags(cmd.Flags(), false)
	return cmd
}

// A server is a running selvage: listeners in front of an app.
type server struct {
	app      *app
	log      *slog.Logger
	level    *slog.LevelVar
	metrics  *metrics
	stopping atomic.Bool
	ports    ports
	certs    certificates // of ports.tls
	servers  []*http.Server
	ops      *http.Server // the one of servers for operators, or nil
	failed   chan error
	signals  chan os.Signal
}

// ports are the opened listeners; tls and ops may be nil.
type ports struct {
	http, tls, ops net.Listener
}

// lookThrough is how long a start looks through an SQLite file for damage: a
// gigabyte in the cache of the system, or what a disk reads in that time. A large one is
// used meanwhile.
const lookThrough = time.Second

func (c *cli) serve(cmd *cobra.Command) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	cmd.SetContext(audit.With(cmd.Context(), &audit.Origin{Actor: audit.Actor{Kind: audit.System}}))
	s := &server{level: new(slog.LevelVar), metrics: newMetrics(), failed: make(chan error, 3)}
	s.listenToSignals()
	defer signal.Stop(s.signals)
	s.level.Set(slog.Level(conf.Log.Level))
	s.log = newLogger(c.stderr, conf.Log.Format, s.level)
	slog.SetDefault(newLogger(c.stderr, conf.Log.Format, slog.LevelError)) // of libraries that take no logger
	if err := datadir.Make(conf.Data); err != nil {
		return err
	}
	lock, err := datadir.Lock(conf.Data)
	if err != nil {
		return err
	}
	defer lock.Close()
	if s.ports, err = openPorts(cmd.Context(), conf); err != nil {
		return err
	}
	w := config.Locate(conf, portIn(s.ports.http), portIn(s.ports.tls))
	for _, warning := range conf.Warnings() {
		s.log.Warn(warning, "public_url", w.Public, "auth_url", w.Auth)
	}
	if s.app, err = open(cmd.Context(), conf, w, options{
		log: s.log, observe: s.metrics.event, mails: s.metrics.mail, media: conf.Services.Has(config.Recordings), check: lookThrough,
	}); err != nil {
		return errors.Join(err, s.ports.close())
	}
	if err := clock.Source(s.app.store.Clock).Check(cmd.Context(), s.log); err != nil {
		return errors.Join(err, s.app.close(), s.ports.close())
	}
	s.app.serveRelay(s.log, s.metrics.message)
	s.app.serveDeliveries(s.log, s.metrics.webhook, s.metrics.logout)
	s.metrics.watch(s.app)
	if s.ports.tls != nil {
		if s.certs, err = openCertificates(conf, s.app, s.log); err != nil {
			return errors.Join(err, s.ports.close(), s.app.close())
		}
		s.metrics.watchCertificates(s.certs)
	}
	err = s.run(cmd.Context(), c, func() { s.reload(c, cmd) })
	return errors.Join(err, s.app.close())
}

// run serves until the process is told to stop.
func (s *server) run(ctx context.Context, c *cli, reload func()) error {
	handler, err := s.app.routes(s.log)
	if err != nil {
		return errors.Join(err, s.ports.close())
	}
	if err := s.app.bootstrap(ctx); err != nil {
		return errors.Join(err, s.ports.close())
	}
	first, err := s.app.firstRun(ctx)
	if err != nil {
		return errors.Join(err, s.ports.close())
	}
	if err := s.app.openDemo(ctx); err != nil {
		return errors.Join(err, s.ports.close())
	}
	setup, err := s.app.firstOperator(ctx)
	if err != nil {
		return errors.Join(err, s.ports.close())
	}
	s.app.passwords.Apart(c.hashes, func(err error) { s.log.Warn("passwords are hashed beside requests", "error", err) })
	defer s.app.passwords.Close()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { s.app.revocations.Run(background) })
	work.Go(func() { c.boundMemory(background) })
	work.Go(func() { s.app.ring.Run(background, s.log) })
	for _, run := range s.unhurried() {
		work.Go(func() {
			select {
			case <-background.Done():
			case <-time.After(restAfter):
				run(background)
			}
		})
	}
	if s.app.relay != nil {
		work.Go(func() { s.app.relay.Run(background) })
	}

	if c, ok := s.certs.(challenged); ok {
		handler = c.Handler(handler)
	}
	s.start(s.app.proxies.Handler(web.Outer(strictTransport(s.app.config, patientBodies(handler, patience)), s.log, s.metrics.request)))
	if r, ok := s.certs.(runner); ok {
		work.Go(func() { r.Run(background) })
	}
	if err := s.running().Write(s.app.config.Data); err != nil {
		return errors.Join(err, s.shutdown(ctx))
	}
	defer os.Remove(filepath.Join(s.app.config.Data, datadir.RunFile))
	s.greet(c, first, setup)
	return s.wait(ctx, reload)
}

// restAfter is how long after its start a server begins what nobody waits for: the first
// requests go before it.
const restAfter = 500 * time.Millisecond

// unhurried is what a server does beside requests, which may begin a little later.
func (s *server) unhurried() []func(context.Context) {
	a := s.app
	return []func(context.Context){
		func(ctx context.Context) { a.sweep(ctx, s.log) },
		a.webhooks.Run, a.logouts.Run, a.post.Run,
		func(ctx context.Context) {
			a.fabric.WatchPresence(ctx, func(err error) { s.log.Error("looking who is online no more", "error", err) })
		},
	}
}

// start serves on all listeners.
func (s *server) start(h http.Handler) {
	public := newServer(h, s.log)
	s.servers = append(s.servers, public)
	go func() { s.failed <- public.Serve(s.ports.http) }()
	if s.ports.tls != nil {
		secure := newServer(h, s.log)
		secure.TLSConfig = s.certs.TLS()
		s.servers = append(s.servers, secure)
		go func() { s.failed <- secure.ServeTLS(s.ports.tls, "", "") }()
	}
	if s.ports.ops != nil {
		s.ops = newServer(ops{s.app.config, s.metrics, &dependencies{log: s.log, all: s.app.needs()}, &s.stopping}.Handler(), s.log)
		s.servers = append(s.servers, s.ops)
		go func() { s.failed <- s.ops.Serve(s.ports.ops) }()
	}
}

// running says where the server is reached.
func (s *server) running() datadir.Running {
	r := datadir.Running{PID: os.Getpid(), HTTP: "http://" + s.ports.http.Addr().String(), PublicURL: s.app.where.Public, AuthURL: s.app.where.Auth}
	if s.ports.tls != nil {
		r.HTTPS = "https://" + s.ports.tls.Addr().String()
	}
	if s.ports.ops != nil {
		r.Ops = "http://" + s.ports.ops.Addr().String()
	}
	return r
}

// sweep removes what is over, at the start and every minute.
func (a *app) sweep(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	var pruned time.Time // the audit trail is until then
	for {
		var err error
		if keep := time.Duration(a.config.Audit.Keep); keep > 0 {
			if until := time.Now().Add(-keep).UTC().Truncate(span.Day); until.After(pruned) {
				pruned, err = until, a.store.PruneAudit(ctx, until)
			}
		}
		err = errors.Join(err, a.store.SweepRevocations(ctx), a.store.SweepFamilies(ctx), a.idp.Sweep(ctx), a.fabric.SweepDeliveries(ctx), a.operators.Sweep(ctx), a.idp.SweepMail(ctx))
		if a.recordings != nil {
			err = errors.Join(err, a.recordings.Sweep(ctx))
		}
		if err != nil && ctx.Err() == nil {
			log.Error("sweeping", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// openPorts opens the listeners, all or none.
func openPorts(ctx context.Context, c config.Config) (p ports, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.http, err = listen(ctx, c.Listen, "--listen"); err != nil {
		return p, err
	}
	if address := c.TLSAddress(); address != config.Off {
		if p.tls, err = listen(ctx, address, "--listen-tls"); err != nil {
			return p, err
		}
	}
	if c.ListenOps != config.Off {
		p.ops, err = listen(ctx, c.ListenOps, "--listen-ops")
	}
	return p, err
}

func (p ports) close() (err error) {
	for _, l := range []net.Listener{p.http, p.tls, p.ops} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

func portIn(l net.Listener) string {
	if l == nil {
		return "8443"
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
