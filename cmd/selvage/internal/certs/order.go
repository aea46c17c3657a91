package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Time limits for requesting a certificate. An order takes a few minutes at most. The manager
// remembers a failed order for a minute, and certificate authorities limit failures per hour.
const (
	orderTime   = 5 * time.Minute
	claimTime   = orderTime + time.Minute
	askElse     = 2 * time.Second // how long to wait while another node holds the claim
	manageEvery = time.Hour
)

// pauses are the times to wait after the first failure, the second one, and any later one.
var pauses = []time.Duration{time.Minute + 5*time.Second, 10 * time.Minute, time.Hour}

// Run obtains a certificate for each host, from the store or from the certificate authority. Then
// it monitors renewals until ctx is done. The listeners must be open.
func (a *ACME) Run(ctx context.Context) {
	var hosts sync.WaitGroup
	for _, host := range a.c.Hosts {
		hosts.Go(func() {
			if a.obtain(ctx, host) {
				a.mind(ctx, host)
			}
		})
	}
	hosts.Wait()
}

// Reload retries failed requests without a long pause: pauses[0] after they failed, or immediately
// if more time has passed.
func (a *ACME) Reload() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.again)
	a.again = make(chan struct{})
	return nil
}

// obtain requests a certificate, retrying until it succeeds. It returns false if ctx is done first.
func (a *ACME) obtain(ctx context.Context, host string) bool {
	failures := 0
	for {
		pair, err := a.order(ctx, host)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			a.c.Log.Info("obtained a certificate",
				"host", host, "expires", pair.Leaf.NotAfter.Format(time.RFC3339))
			a.mu.Lock()
			a.ready[host] = true
			a.mu.Unlock()
			return true
		case errors.Is(err, problem.Conflict):
			if !wait(ctx, askElse, nil) {
				return false
			}
			continue
		}

		pause := pauses[min(failures, len(pauses)-1)]
		a.c.Log.Error("requesting a certificate",
			"host", host, "error", a.reasons.of(host, err), "retry_in", pause.String())
		a.mu.RLock()
		again := a.again
		a.mu.RUnlock()

		// Reload may shorten the pause, but not below the minute for which the manager
		// remembers the failure.
		if !wait(ctx, pauses[0], nil) || !wait(ctx, pause-pauses[0], again) {
			return false
		}
		failures++
	}
}

// order returns the certificate in the store, or requests one. Only one node requests it at
// a time, because certificate authorities also limit the number of certificates.
func (a *ACME) order(ctx context.Context, host string) (*tls.Certificate, error) {
	if a.stored(ctx, host) {
		return a.get(host)
	}

	name := host + "+claim"
	until := a.c.Now().Add(claimTime)
	if err := a.c.Store.ClaimCertificate(ctx, name, until); err != nil {
		return nil, err
	}

	type result struct {
		pair *tls.Certificate
		err  error
	}

	done := make(chan result, 1)
	go func() {
		pair, err := a.get(host)
		releaseErr := a.c.Store.ReleaseCertificate(context.WithoutCancel(ctx), name, until)
		if releaseErr != nil && ctx.Err() == nil {
			a.c.Log.Warn("could not release the claim; it will expire on its own",
				"host", host, "error", releaseErr)
		}
		done <- result{pair, err}
	}()

	select {
	case r := <-done:
		return r.pair, r.err
	case <-ctx.Done(): // an order cannot be canceled
		return nil, ctx.Err()
	}
}

// stored reports whether a valid certificate is in the store.
func (a *ACME) stored(ctx context.Context, host string) bool {
	text, err := a.manager.Cache.Get(ctx, host)
	if err != nil {
		return false
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return false
	}
	return check(pair.Leaf, "", a.c.Now(), []string{host}) == nil
}

// mind warns once a day if a certificate was not renewed. The manager renews certificates but does
// not report failures.
func (a *ACME) mind(ctx context.Context, host string) {
	var warned time.Time
	for wait(ctx, manageEvery, nil) {
		pair, err := a.get(host)
		if err != nil {
			continue
		}
		now := a.c.Now()
		if !ending(pair.Leaf, now) || now.Sub(warned) < 24*time.Hour {
			continue
		}
		a.c.Log.Warn("the certificate was not renewed in time",
			"host", host,
			"expires", pair.Leaf.NotAfter.Format(time.RFC3339),
			"error", a.reasons.of(host, errors.New("unknown reason")))
		warned = now
	}
}

// wait waits for d, or until sooner is closed. It returns false if ctx ended.
func wait(ctx context.Context, d time.Duration, sooner <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
	case <-sooner:
	}
	return true
}
