package media

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
)

const (
	tick = 500 * time.Millisecond // of the engine's housekeeping

	loud         = 45 // audio levels up to -45 dBov count as speech
	loudPackets  = 3  // in a row begin it
	quietSilence = 700 * time.Millisecond
)

// A watch reports to the Watcher of a leg.
type watch struct {
	watcher calls.Watcher

	// mu keeps events in order: it is held while they are reported. No other lock is.
	mu        sync.Mutex
	connected bool
	lost      bool
	failed    bool
	isTalking bool

	run     atomic.Int32 // loud packets in a row
	lastAt  atomic.Int64 // when the last loud packet came, in ns since 1970
	talking atomic.Bool  // as isTalking, to look at without mu
}

// connected is called when a section's keys are there.
func (l *leg) connected(p *path) {
	w := &l.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connected || l.closed.Load() || w.watcher == nil {
		return
	}
	w.connected, w.lost = true, false
	w.watcher.Connected(p.describe())
}

// renew makes the next keys an event again.
func (w *watch) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected, w.lost = false, false
}

// hear takes the audio level of a packet.
func (w *watch) hear(level uint8, now time.Time) {
	if level > loud {
		w.run.Store(0)
		if w.talking.Load() {
			w.quiet(now)
		}
		return
	}
	w.lastAt.Store(now.UnixNano())
	if w.run.Add(1) >= loudPackets && !w.talking.Load() {
		w.report(true)
	}
}

// quiet ends the speech of a client that has been silent for long enough.
func (w *watch) quiet(now time.Time) {
	if w.talking.Load() && now.UnixNano()-w.lastAt.Load() > int64(quietSilence) {
		w.report(false)
	}
}

// report reports a change of talking.
func (w *watch) report(talking bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isTalking == talking {
		return
	}
	w.isTalking = talking
	w.talking.Store(talking)
	if w.watcher != nil {
		w.watcher.Talking(talking)
	}
}

// look reports a client that was lost or came back. heard is when it last proved itself, 0 if there
// is no path to it.
func (l *leg) look(heard time.Time, p *path, now time.Time) {
	w := &l.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.connected || l.closed.Load() || w.watcher == nil {
		return
	}
	switch silent := now.Sub(heard) > calls.LostAfter; {
	case silent && !w.lost:
		w.lost = true
		w.watcher.Lost()
	case !silent && w.lost:
		w.lost = false
		w.watcher.Connected(p.describe())
	}
}

// keep does what has to be done now and then, until the engine is closed.
func (e *Engine) keep() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-e.done:
			return
		case now := <-ticker.C:
			e.tryKeep(now)
		}
	}
}

// tryKeep is keepOnce, but survives a panic.
func (e *Engine) tryKeep(now time.Time) {
	defer func() { e.handlePanic(nil, recover()) }()
	e.keepOnce(now)
}

// keepOnce rotates the certificate and looks after all legs.
func (e *Engine) keepOnce(now time.Time) {
	if now.Sub(e.identity.Load().made) > rotation {
		if err := e.rotate(now); err != nil {
			e.log.Error("rotating the media certificate", "error", err)
		}
	}

	for l, transports := range e.transports() {
		var heard int64
		var path *path
		for _, t := range transports {
			t.keepConsent(now)
			if p, at := t.path.Load(), t.heard.Load(); at > heard && (p != nil || now.Sub(t.made) < calls.LostAfter) {
				heard, path = at, p
			}
		}
		l.look(time.Unix(0, heard), path, now)
		l.watch.quiet(now)
	}
}

// transports returns all legs with their transports.
func (e *Engine) transports() map[*leg][]*transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[*leg][]*transport, len(e.legs))
	for l := range e.legs {
		all[l] = nil
		for _, s := range l.sections {
			if s.live() {
				all[l] = append(all[l], s.transport)
			}
		}
	}
	return all
}
