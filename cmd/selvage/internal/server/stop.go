package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// errForced is how a server ends that is told to stop twice.
var errForced = errors.New("stopped before all requests were finished, as it was told twice")

// listenToSignals makes s hear what the process is told from now on.
func (s *server) listenToSignals() {
	s.signals = make(chan os.Signal, 2)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

// wait serves until a signal, the end of ctx or the failure of a listener, and
// then stops.
func (s *server) wait(ctx context.Context) error {
	for {
		select {
		case got := <-s.signals:
			if got == syscall.SIGHUP {
				s.reload()
				continue
			}
			return s.stop()
		case <-ctx.Done():
			return s.stop()
		case err := <-s.failed:
			return errors.Join(fmt.Errorf("serving: %w", err), s.shutdown(ctx))
		}
	}
}

// stop lets requests finish, for as long as the grace period and until a second
// signal.
func (s *server) stop() error {
	s.stopping.Store(true) // /readyz fails first
	s.log.Info("stopping", "grace", s.app.Config.Grace.String())
	ctx, cancel := context.WithTimeout(context.Background(), s.app.Config.Grace)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.shutdown(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case got := <-s.signals:
			if got != syscall.SIGHUP {
				s.closeNow()
				return errForced
			}
		}
	}
}

// shutdown stops the public listeners at once and waits for their requests until
// ctx ends; those that take longer are cut off, which is no failure. Sockets are
// told to go elsewhere, and what webhooks and clients are being told is told to its end. Health is told until the end.
func (s *server) shutdown(ctx context.Context) error {
	if s.app.pages != nil {
		s.app.pages.Shutdown()
	}
	var public sync.WaitGroup
	errs := make([]error, len(s.servers))
	for i, srv := range s.servers {
		if srv != s.ops {
			public.Go(func() { errs[i] = s.drain(ctx, srv) })
		}
	}
	if s.app.relay != nil { // net/http no longer knows of sockets
		public.Go(func() { s.app.relay.Shutdown(ctx) })
	}
	public.Go(func() { s.app.webhooks.Shutdown(ctx) })
	public.Go(func() { s.app.logouts.Shutdown(ctx) })
	public.Go(func() { s.app.Post.Shutdown(ctx) })
	public.Wait()
	if s.ops != nil {
		errs = append(errs, s.drain(ctx, s.ops))
	}
	return errors.Join(append(errs, s.app.settle())...)
}

// settleFor is how long a stop waits for what no request did.
const settleFor = 5 * time.Second

// settle waits for what is written beside requests: which keys and secrets were used.
func (a *App) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleFor)
	defer cancel()
	if err := errors.Join(a.Fabric.APIKeys.Settle(ctx), a.IDP.Clients.Settle(ctx)); err != nil {
		return fmt.Errorf("noting which secrets were used: %w", err)
	}
	return nil
}

func (s *server) drain(ctx context.Context, srv *http.Server) error {
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		s.log.Warn("cutting off requests that did not finish in time")
		return srv.Close()
	}
	return err
}

func (s *server) closeNow() {
	for _, srv := range s.servers {
		_ = srv.Close() // the process ends
	}
}
