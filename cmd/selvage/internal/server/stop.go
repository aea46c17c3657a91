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

// errForced is the error for a server that was stopped by a second signal.
var errForced = errors.New("stopped by a second signal before all requests had finished")

// notifySignals makes s.signals receive the signals that stop or reload the server.
func (s *server) notifySignals() {
	s.signals = make(chan os.Signal, 2)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

// wait waits until a signal to stop arrives, ctx is done or a listener fails, and then stops the server.
// On SIGHUP, it reloads the configuration.
func (s *server) wait(ctx context.Context) error {
	for {
		select {
		case got := <-s.signals:
			switch got {
			case syscall.SIGHUP:
				s.reload()
			case syscall.SIGTERM:
				return s.stop(time.Duration(s.app.Config.StopDelay), time.Duration(s.app.Config.Drain))
			default:
				return s.stop(0, 0)
			}
		case <-ctx.Done():
			return s.stop(0, 0)
		case err := <-s.failed:
			return errors.Join(fmt.Errorf("serving: %w", err), s.stop(0, 0))
		}
	}
}

// stop keeps accepting requests for delay, while /readyz fails. Then it lets running requests
// finish, and waits for at most drain until calls have ended by themselves. What has not ended when
// delay, drain and the grace period are over is cut off. A second signal cuts off everything immediately.
func (s *server) stop(delay, drain time.Duration) error {
	s.stopping.Store(true) // /readyz fails first
	s.log.Info("stopping", "grace", s.app.Config.Grace.String(), "drain", drain.String(), "delay", delay.String())
	ctx, cancel := context.WithTimeout(context.Background(), delay+s.app.Config.Grace+drain)
	defer cancel()

	done := make(chan error, 1)
	go func() {
		time.Sleep(delay) // a second signal still ends the process
		done <- s.shutdown(ctx, drain)
	}()
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

// closeWhenStopping closes connections while the server stops, each after a response. Otherwise a proxy
// could send a request at the moment when the server closes an idle connection.
func (s *server) closeWhenStopping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() && r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// shutdown stops the public listeners immediately and waits for their requests until ctx is done.
// Requests that take longer are aborted, which is not an error. WebSocket clients are asked to reconnect
// to another node, and deliveries that have begun are finished. The ops listener stops last.
func (s *server) shutdown(ctx context.Context, drain time.Duration) error {
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

	if s.app.relay != nil { // net/http does not wait for hijacked connections
		public.Go(func() { s.stopCalls(ctx, drain) })
	}
	public.Go(func() { s.app.webhooks.Shutdown(ctx) })
	public.Go(func() { s.app.logouts.Shutdown(ctx) })
	public.Go(func() { s.app.callbacks.Shutdown(ctx) })
	public.Go(func() { s.app.Post.Shutdown(ctx) })
	public.Wait()
	if s.ops != nil {
		errs = append(errs, s.drain(ctx, s.ops))
	}
	return errors.Join(append(errs, s.app.settle())...)
}

// stopCalls unregisters at gateways, and waits for at most drain until calls have ended by
// themselves. Then it ends the remaining calls and closes the WebSockets. If drain is set and there
// are other nodes, it closes the WebSockets first, so that clients connect to those nodes and control
// their calls from there.
func (s *server) stopCalls(ctx context.Context, drain time.Duration) {
	defer s.app.relay.Shutdown(ctx)
	if s.app.Calls == nil {
		return
	}
	if s.app.sip != nil {
		s.app.sip.Unregister(ctx) // before new calls are refused
	}
	if drain > 0 {
		if !s.app.bus.Alone() {
			s.app.relay.Shutdown(ctx)
		}
		patience, cancel := context.WithTimeout(ctx, drain)
		defer cancel()
		s.app.Calls.Drain(patience)
	}
	s.app.Calls.Shutdown(ctx) // before the WebSockets close, so that clients receive the event
	s.finishRecordings(ctx)
}

// finishRecordings waits for the files of recorded calls to be written, until ctx is done. The next
// process writes the remaining files.
func (s *server) finishRecordings(ctx context.Context) {
	if s.app.spools == nil {
		return
	}
	if err := s.app.spools.Close(ctx); err != nil {
		s.log.Warn("some call recordings will be finished at the next start", "error", err)
	}
}

// settleTime limits how long a stop waits for background writes.
const settleTime = 5 * time.Second

// settle writes the accesses to recordings, and waits for the background writes that record the use of
// keys and secrets. All of this runs at the same time, so that no write has to wait for another.
func (a *App) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	var writes sync.WaitGroup
	var accesses, keys, clients error
	if a.Recordings != nil {
		writes.Go(func() { accesses = a.Recordings.FlushAccesses(ctx) })
	}
	writes.Go(func() { keys = a.Fabric.APIKeys.Settle(ctx) })
	writes.Go(func() { clients = a.IDP.Clients.Settle(ctx) })
	writes.Wait()

	secrets := errors.Join(keys, clients)
	if secrets != nil {
		secrets = fmt.Errorf("recording the use of secrets: %w", secrets)
	}
	return errors.Join(accesses, secrets)
}

// drain lets the requests of an HTTP server finish, and cuts them off when ctx is done.
func (s *server) drain(ctx context.Context, srv *http.Server) error {
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		s.log.Warn("cutting off requests that did not finish in time")
		return srv.Close()
	}
	return err
}

// closeNow cuts off all requests.
func (s *server) closeNow() {
	for _, srv := range s.servers {
		_ = srv.Close() // the process is about to exit
	}
}
