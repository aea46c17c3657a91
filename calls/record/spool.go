package record

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
)

const (
	firstBuffer = 16 << 10
	maxBuffer   = 512 << 10 // entries waiting for a slow disk: 30 s of two G.711 legs
)

// A spool is a recording in progress. It consists of a file and the entries waiting to be written
// to it. It has two buffers. Taps append to one buffer while the other is being written, so that a
// slow disk never delays a call.
type spool struct {
	owner *Spools
	call  calls.RecordedCall
	file  *os.File
	taps  [2]tap
	stop  chan struct{} // closed by Stop
	done  chan struct{} // closed after the last entry is on disk, or run has given up

	mu      sync.Mutex
	open    []byte   // space for the head of a block, followed by its entries
	used    [2]int64 // number of bytes stored for each side; see hasRoom
	lost    uint32   // packets dropped since the last entry about dropped packets
	paused  bool
	skip    bool // cut out the current pause
	low     bool // the disk has too little space, so packets are dropped
	stopped bool

	// Only the goroutine of run uses the following fields. The second buffer is in the field sealed
	// while it waits to be written, and otherwise in the field spare. The other field is nil.
	spare  []byte
	sealed []byte
	offset int64  // offset of the next block
	sum    uint32 // checksum of the last block on disk
	failed bool   // the last write or sync failed

	durable atomic.Int64 // entries up to this Unix time in nanoseconds are on disk
}

var _ calls.Recording = (*spool)(nil)

// newSpool returns the spool of a call. It accepts packets immediately, even before it has a file.
func newSpool(owner *Spools, c calls.RecordedCall) *spool {
	p := &spool{
		owner: owner,
		call:  c,
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
		open:  make([]byte, blockHead, firstBuffer),
		spare: make([]byte, blockHead, firstBuffer),
	}
	for side := range p.taps {
		p.taps[side] = tap{p, calls.Side(side)}
	}
	p.durable.Store(time.Now().UnixNano())
	return p
}

// Sid implements [calls.Recording].
func (p *spool) Sid() string { return p.call.Sid }

// Tap implements [calls.Recording].
func (p *spool) Tap(s calls.Side) calls.Tap { return &p.taps[s] }

// Pause implements [calls.Recording].
func (p *spool) Pause(skip bool) { p.pauseAt(p.since(time.Now()), skip) }

func (p *spool) pauseAt(at time.Duration, skip bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	alreadyPaused := p.paused && p.skip == skip
	if p.stopped || alreadyPaused {
		return
	}
	p.paused = true
	p.skip = skip
	p.open = appendPause(p.open, at, skip)
}

// Resume implements [calls.Recording].
func (p *spool) Resume() { p.resumeAt(p.since(time.Now())) }

func (p *spool) resumeAt(at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused && !p.stopped {
		p.paused = false
		p.open = appendEntry(p.open, resumeKind, at, 0)
	}
}

// Stop implements [calls.Recording].
func (p *spool) Stop() { p.stopAt(p.since(time.Now())) }

func (p *spool) stopAt(at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.stopped = true
	p.noteLost(at)
	p.open = appendEntry(p.open, stopKind, at, 0)
	close(p.stop)
}

// since returns the time since the start of the recording.
func (p *spool) since(t time.Time) time.Duration { return t.Sub(p.call.Started) }
