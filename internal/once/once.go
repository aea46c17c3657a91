// Package once handles a form only once, even if a double click or the back button sends it again.
// It is for forms that create or send something.
//
// Both requests of a double click get the same response, which a node keeps for a few seconds. Later
// requests, on any node, learn that the form was sent before.
package once

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
)

const (
	// maxHandling limits how long a form without an upload is handled, even if its browser has
	// disconnected. A browser that sends a form twice drops the first request and shows the response
	// to the second.
	maxHandling = 30 * time.Second

	// renewEvery is how often a node records that it still handles an upload, which may take hours.
	renewEvery = 30 * time.Second
)

// A Guard handles each form only once.
type Guard struct {
	Forms
	log     *slog.Logger
	flights flights
	every   time.Duration // renewEvery, except in tests
}

// New returns a Guard that remembers forms in f.
func New(f Forms, log *slog.Logger) *Guard {
	return &Guard{Forms: f, log: log, flights: flights{all: make(map[string]*flight)}, every: renewEvery}
}

// A Form is a form that was sent. The caller must have checked that its sender may send it.
type Form struct {
	ID       string // the path, the values, and a token that differs for each page and is secret
	IsUpload bool   // the handler reads the request's body

	// Handle handles the form and responds to w. isDone is false if the form may be sent again, for
	// example because it only showed a preview. An error response has the same effect. If Handle
	// returns an error, it must not have responded.
	Handle func(w http.ResponseWriter, r *http.Request) (isDone bool, err error)

	// Refuse responds to a form that was handled before, or is being handled on another node.
	Refuse func(Sent) error
}

// Serve handles a form, unless it was handled before. If the form is sent again within keptFor, the
// second request gets a copy of the response. After that, Serve refuses the form. If Serve returns an
// error, it has not responded.
func (g *Guard) Serve(w http.ResponseWriter, r *http.Request, f Form) error {
	for {
		sent, isFirst := g.flights.join(session.Digest(f.ID), w, g.Now())
		if isFirst {
			return g.handle(r, f, sent)
		}
		if ok, err := sent.replay(w, r); ok || err != nil {
			return err
		}
	}
}

// Replay sends the response to the form with this id again, if this node is handling the form or has
// just handled it. It is for a form whose first request ended the session to which both requests belong.
func (g *Guard) Replay(w http.ResponseWriter, r *http.Request, id string) (ok bool, err error) {
	if sent := g.flights.find(session.Digest(id), g.Now()); sent != nil {
		return sent.replay(w, r)
	}
	return false, nil
}

// handle handles the form of a flight, unless it was handled before.
func (g *Guard) handle(r *http.Request, f Form, at *flight) error {
	defer func() { g.flights.leave(at, g.Now) }()
	sent, err := g.Begin(r.Context(), f.ID)
	if errors.Is(err, problem.Conflict) {
		drop(r)
		return f.Refuse(sent)
	}
	if err != nil {
		return err
	}

	// The handler's changes and its outcome are stored even if the browser disconnects. An upload can
	// only be read while the browser sends it.
	lasting := context.WithoutCancel(r.Context())
	isDone := false
	defer func() { g.settle(lasting, r, f.ID, isDone, &at.response) }()
	handled := r
	if f.IsUpload {
		defer g.renew(lasting, f.ID)()
	} else {
		ctx, cancel := context.WithTimeout(lasting, maxHandling)
		defer cancel()
		handled = r.WithContext(ctx)
	}

	isDone, err = f.Handle(&at.response, handled)
	return err
}

// settle stores the outcome of a form. A form that failed may be sent again.
func (g *Guard) settle(ctx context.Context, r *http.Request, id string, isDone bool, response *recorder) {
	var err error
	if isDone && response.succeeded() {
		err = g.End(ctx, id, response.Header().Get("Location"))
	} else {
		err = g.Forget(ctx, id)
	}
	if err != nil {
		web.LogInternal(r, g.log, err)
	}
	response.header = response.Header().Clone()
}

// renew records from time to time that a form is still being handled, until stop is called.
func (g *Guard) renew(ctx context.Context, id string) (stop func()) {
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(g.every)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if err := g.renewOnce(ctx, id); err != nil {
					g.log.WarnContext(ctx, "cannot record that an upload is still being handled", "error", err)
				}
			}
		}
	})
	return func() {
		close(ended)
		renewing.Wait()
	}
}

// renewOnce calls Renew, but gives up when the next renewal is due.
func (g *Guard) renewOnce(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	return g.Renew(ctx, id)
}

// drop reads the rest of a form. Browsers show no response until they have sent the whole form.
func drop(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the caller has limited its size; the browser may have disconnected
}
