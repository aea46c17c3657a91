package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

const (
	claimLifetime = 6 * time.Minute // an order takes a few minutes at most
	claimRetry    = 2 * time.Second // how often to retry while another node orders the certificate
	checkInterval = time.Hour       // how often to check that certificates were renewed
)

// retryDelays are the waiting times after the first failure, the second failure, and each later failure.
// They grow because certificate authorities limit the failures per hour.
var retryDelays = []time.Duration{minRetryDelay, 10 * time.Minute, time.Hour}

// minRetryDelay is more than the minute for which autocert remembers a failure. An earlier retry would
// fail with the remembered error.
const minRetryDelay = time.Minute + 5*time.Second

// Run obtains a certificate for each host, from the store or from the certificate authority. Then
// it monitors renewals until ctx is done. The listeners must be open.
func (a *ACME) Run(ctx context.Context) {
	var hosts sync.WaitGroup
	for _, host := range a.c.Hosts {
		hosts.Go(func() {
			if a.obtain(ctx, host) {
				a.watchRenewal(ctx, host)
			}
		})
	}
	hosts.Wait()
}

// Reload retries failed orders as soon as minRetryDelay has passed since they failed.
func (a *ACME) Reload() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.reloaded)
	a.reloaded = make(chan struct{})
	return nil
}

// nextReload returns a channel that the next Reload closes.
func (a *ACME) nextReload() <-chan struct{} {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.reloaded
}

// obtain orders a certificate, and retries until it succeeds. It returns false if ctx is done first.
func (a *ACME) obtain(ctx context.Context, host string) bool {
	failures := 0
	for {
		pair, err := a.order(ctx, host)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			a.c.Log.Info("obtained a certificate",
				"host", host, "expires", pair.Leaf.NotAfter.Format(time.RFC3339))
			a.setReady(host)
			return true
		}
		if errors.Is(err, problem.Conflict) { // another node is ordering it
			if !wait(ctx, claimRetry, nil) {
				return false
			}
			continue
		}

		delay := minRetryDelay
		if !errors.Is(err, errCache) { // with errCache, the authority was not asked
			delay = retryDelays[min(failures, len(retryDelays)-1)]
			failures++
		}
		a.c.Log.Error("requesting a certificate",
			"host", host, "error", a.reasons.addTo(err, host), "retry_in", delay.String())
		reloaded := a.nextReload()
		if !wait(ctx, minRetryDelay, nil) || !wait(ctx, delay-minRetryDelay, reloaded) {
			return false
		}
	}
}

// order returns the certificate in the store, or orders one. Certificate authorities also limit the
// number of certificates, so only one node at a time may order a certificate for a host: for the others,
// order returns problem.Conflict.
func (a *ACME) order(ctx context.Context, host string) (*tls.Certificate, error) {
	if a.stored(ctx, host) {
		return a.get(host)
	}

	claim := host + "+claim"
	until := a.c.Now().Add(claimLifetime)
	err := a.c.Store.ClaimCertificate(ctx, claim, until)
	if errors.Is(err, problem.Conflict) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCache, err)
	}

	type result struct {
		pair *tls.Certificate
		err  error
	}
	done := make(chan result, 1)
	go func() {
		pair, err := a.get(host)
		releaseErr := a.c.Store.ReleaseCertificate(context.WithoutCancel(ctx), claim, until)
		if releaseErr != nil && ctx.Err() == nil {
			a.c.Log.Warn("could not release the claim; it will expire on its own",
				"host", host, "error", releaseErr)
		}
		done <- result{pair, err}
	}()

	select {
	case r := <-done:
		return r.pair, r.err
	case <-ctx.Done(): // an order cannot be canceled, and continues in the background
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

// watchRenewal warns once a day while a certificate should have been renewed but was not. autocert renews
// certificates, but does not report failures.
func (a *ACME) watchRenewal(ctx context.Context, host string) {
	var warned time.Time
	for wait(ctx, checkInterval, nil) {
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
			"error", a.reasons.addTo(errors.New("unknown reason"), host))
		warned = now
	}
}

// wait waits until d has passed or interrupt is closed. It returns false if ctx is done first.
func wait(ctx context.Context, d time.Duration, interrupt <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
	case <-interrupt:
	}
	return true
}
