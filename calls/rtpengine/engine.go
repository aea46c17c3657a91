// Package rtpengine is an engine for calls whose media is carried by rtpengine, a media server for
// SIP. selvage controls rtpengine through the NG protocol over UDP.
//
// rtpengine transcodes. Browsers send Opus to it whenever they can, and phones get a codec that
// they support. Each leg has its own session, between the client and "the switch", which is this
// package. On the switch's side, all media is plain RTP, at ports of rtpengine's interface
// "internal". To link two legs, this package makes rtpengine send the media of one leg to the
// internal port of the other. Therefore, a client's offer is answered before the other side answers
// the call, and the client's session does not change when the other side changes. Media without a
// receiver goes to one of our ports, which is never read.
//
// rtpengine never receives the original descriptions of clients. It receives them without
// candidates, and learns a browser's address from its STUN checks. Therefore, no description can
// direct packets to a third party.
//
// The built-in engine carries rooms and the calls of scripts.
package rtpengine

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// Config configures an Engine.
type Config struct {
	// Addresses contains the control addresses of rtpengines: hosts and UDP ports for the NG
	// protocol. Calls use the first rtpengine that answers.
	Addresses []string

	// Rooms carries rooms and the calls of scripts.
	Rooms calls.Engine

	// Log receives failures. Nil discards them.
	Log *slog.Logger
}

// An Engine implements calls.Engine.
type Engine struct {
	log     *slog.Logger
	rooms   calls.Engine
	daemons []*daemon

	// mu guards the legs and their links. No request is sent while it is held.
	mu     sync.Mutex
	legs   map[*leg]struct{}
	closed bool

	done  chan struct{}
	group tasks          // all goroutines of the engine, except those in reads
	reads sync.WaitGroup // goroutines that read replies
}

var _ calls.Engine = (*Engine)(nil)

// errUnavailable is the error for calls while no rtpengine answers.
var errUnavailable = problem.New(problem.Unavailable, "media_unavailable", "no rtpengine answers")

// startFor is how long New waits for the first replies of the daemons.
const startFor = time.Second

// New starts an engine. The engine pings each daemon once a second. A daemon that does not answer
// at first is used once it does.
func New(cfg Config) (*Engine, error) {
	e := &Engine{log: cfg.Log, rooms: cfg.Rooms, legs: map[*leg]struct{}{}, done: make(chan struct{})}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	for _, address := range cfg.Addresses {
		d, err := dial(address, e.done)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.daemons = append(e.daemons, d)
		e.reads.Go(d.read)
	}

	checked := make(chan struct{}, len(e.daemons))
	for _, d := range e.daemons {
		e.group.Go(func() {
			e.checkFirst(d)
			checked <- struct{}{}
			e.watchDaemon(d)
		})
	}

	deadline := time.NewTimer(startFor)
	defer deadline.Stop()
	for range e.daemons {
		select {
		case <-checked:
		case <-deadline.C:
			return e, nil
		}
	}
	return e, nil
}

// checkFirst pings a daemon for the first time.
func (e *Engine) checkFirst(d *daemon) {
	e.check(d)
	if !d.up.Load() && !e.isClosed() {
		e.log.Warn("rtpengine does not answer yet", "address", d.address)
	}
}

// watchDaemon pings a daemon until the engine is closed.
func (e *Engine) watchDaemon(d *daemon) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-tick.C:
			e.check(d)
		}
	}
}

// check pings a daemon. If it has stopped answering, its legs fail.
func (e *Engine) check(d *daemon) {
	up := d.ping()
	if was := d.up.Swap(up); was == up {
		return
	}
	if up {
		e.log.Info("rtpengine answers", "address", d.address)
		return
	}
	if e.isClosed() {
		return
	}

	e.log.Error("rtpengine does not answer; its calls end", "address", d.address)
	for _, l := range e.legsOf(d) {
		l.fail(errDown)
	}
}

// legsOf returns the legs that a daemon carries.
func (e *Engine) legsOf(d *daemon) (carried []*leg) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.legs {
		if l.daemon == d {
			carried = append(carried, l)
		}
	}
	return carried
}

// Check returns an error if no rtpengine answers, in which case no calls can be made.
func (e *Engine) Check() error {
	if e.firstUp() == nil {
		return errUnavailable
	}
	return nil
}

// firstUp returns the first daemon that answers, or nil. A daemon that let a request time out is
// skipped until it answers again, even if no ping has failed yet.
func (e *Engine) firstUp() *daemon {
	for _, d := range e.daemons {
		if d.up.Load() && !d.silent.Load() {
			return d
		}
	}
	return nil
}

// errSource is the error for shared screens and additional devices. rtpengine would send reports
// about the video of a screen to the same member's camera, which cannot resend pictures of the screen.
var errSource = problem.New(problem.Invalid, "no_media", "rtpengine carries no shared screens and no further devices")

// Answer implements calls.Engine.
func (e *Engine) Answer(w calls.Watcher, offer string, terms calls.Terms) (calls.Media, string, error) {
	if terms.Source {
		return nil, "", errSource
	}
	d := e.firstUp()
	if d == nil {
		return nil, "", errUnavailable
	}
	l := e.newLeg(d, w, terms)
	answer, err := l.begin(offer)
	if err != nil {
		return nil, "", err
	}
	return l, answer, nil
}

// Offer implements calls.Engine.
func (e *Engine) Offer(w calls.Watcher, other calls.Media, terms calls.Terms) (calls.Media, string, error) {
	from, ok := other.(*leg)
	if !ok {
		return e.rooms.Offer(w, other, terms) // the other leg belongs to a call that a script connects
	}
	if from.engine != e {
		return nil, "", errors.New("offering to a leg: the other leg belongs to another engine")
	}
	l := e.newLeg(from.daemon, w, terms)
	offer, err := l.ring(from)
	if err != nil {
		return nil, "", err
	}
	return l, offer, nil
}

// add makes the engine watch a leg, unless the engine is closed.
func (e *Engine) add(l *leg) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.legs[l] = struct{}{}
	e.group.Go(l.watch)
	return nil
}

// isClosed reports whether Close was called.
func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Close implements calls.Engine. It returns once all goroutines have ended.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	open := make([]*leg, 0, len(e.legs))
	for l := range e.legs {
		open = append(open, l)
	}
	e.mu.Unlock()

	close(e.done)
	for _, l := range open {
		l.Close()
	}
	e.group.Wait()
	var err error
	for _, d := range e.daemons {
		err = errors.Join(err, d.close())
	}
	e.reads.Wait()
	return err
}

// NewMixer implements calls.Engine. The built-in engine carries rooms and the calls of scripts.
func (e *Engine) NewMixer() calls.Mixer { return mixer{e.rooms.NewMixer()} }

// A mixer wraps a mixer of the built-in engine.
type mixer struct{ calls.Mixer }

// Adopt implements calls.Mixer. It rejects the media of rtpengine: media cannot move to another
// engine, because only its client can open new media.
func (m mixer) Adopt(media calls.Media) error {
	if _, ok := media.(*leg); ok {
		return problem.New(problem.Invalid, "no_media", "rtpengine carries the call, which cannot move into rooms")
	}
	return m.Mixer.Adopt(media)
}
