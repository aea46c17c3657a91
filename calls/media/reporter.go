package media

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
)

// A client counts as speaking after minLoudPackets consecutive packets that are at least as loud as
// speech. It counts as silent when no packet has been that loud for longer than maxPause.
const (
	minLevel       = 45 // in -dBov: levels of -45 dBov and above are speech
	minLoudPackets = 3
	maxPause       = 700 * time.Millisecond
)

// A reporter calls the Watcher of a leg.
type reporter struct {
	watcher calls.Watcher

	// mu keeps events in order. All methods of the watcher except Pressed are called while mu and no
	// other lock is held.
	mu        sync.Mutex
	connected bool
	lost      bool
	failed    bool

	loudPackets atomic.Int32 // loud packets since the last quiet packet
	lastLoud    atomic.Int64 // arrival of the last loud packet; see stamp
	talking     atomic.Bool  // changes only while mu is held
}

// reportConnected calls Connected for the first section whose keys are known. p is the path to its
// client.
func (l *leg) reportConnected(p *path) {
	r := &l.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connected || l.closed.Load() || r.watcher == nil {
		return
	}
	r.connected, r.lost = true, false
	r.watcher.Connected(p.describe())
}

// reset makes the next handshake call Connected again.
func (r *reporter) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected, r.lost = false, false
}

// reportPresence calls Lost if the client has not sent an authenticated packet for calls.LostAfter.
// When the client sends a packet again, reportPresence calls Connected. lastSeen is the time of the last
// authenticated packet, or zero if no path leads to the client.
func (l *leg) reportPresence(lastSeen time.Time, p *path, now time.Time) {
	r := &l.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.connected || l.closed.Load() || r.watcher == nil {
		return
	}

	switch silent := now.Sub(lastSeen) > calls.LostAfter; {
	case silent && !r.lost:
		r.lost = true
		r.watcher.Lost()
	case !silent && r.lost:
		r.lost = false
		r.watcher.Connected(p.describe())
	}
}

// countLevel detects the start and the end of speech from the audio level of a packet, in -dBov.
func (r *reporter) countLevel(level uint8, now time.Time) {
	if level > minLevel {
		r.loudPackets.Store(0)
		r.detectPause(now)
		return
	}

	r.lastLoud.Store(stamp(now))
	if r.loudPackets.Add(1) >= minLoudPackets {
		r.reportTalking(true)
	}
}

// detectPause reports that the client stopped speaking if it has been quiet for longer than
// maxPause.
func (r *reporter) detectPause(now time.Time) {
	if r.talking.Load() && stamp(now)-r.lastLoud.Load() > int64(maxPause) {
		r.reportTalking(false)
	}
}

// reportTalking calls Talking if the client's state has changed.
func (r *reporter) reportTalking(talking bool) {
	if r.talking.Load() == talking {
		return // the usual case, without the lock
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.talking.Swap(talking) != talking && r.watcher != nil {
		r.watcher.Talking(talking)
	}
}

// fail closes the leg and calls Failed once.
func (l *leg) fail(err error) {
	l.Close()
	r := &l.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed || r.watcher == nil {
		return
	}
	r.failed = true
	r.watcher.Failed(err)
}
