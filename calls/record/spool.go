package record

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

const (
	writeEvery = 250 * time.Millisecond // what a killed process loses at most
	syncEvery  = 750 * time.Millisecond // with the above, a machine without power loses a second

	firstBuffer = 16 << 10
	maxBuffer   = 512 << 10 // how much waits for a slow disk: half a minute of two G.711 legs

	// A side may bring this many bytes a second, after a burst. Opus has at most 64 KB.
	maxRate  = 96 << 10
	maxBurst = 1 << 20

	// lastTries is how often the end of a recording is tried to be written, once a second.
	lastTries = 30
)

// A spool is a recording under way: a file, and the entries that wait to be written to it.
// Taps append to one of two buffers under a short lock, while the other is being written.
type spool struct {
	owner *Spools
	call  calls.RecordedCall
	file  *os.File
	taps  [2]tap
	stop  chan struct{} // closed by Stop
	done  chan struct{} // closed when the last entry is on disk, or was given up

	mu      sync.Mutex
	open    []byte // room for the head of a block, then its entries
	used    [2]int64
	lost    uint32 // packets dropped since the last entry about them
	paused  bool
	skip    bool // of the present pause
	low     bool // the disk has too little room: packets are dropped
	stopped bool

	// The following belong to the goroutine of run.
	spare  []byte
	sealed []byte // a block that is not on disk yet
	offset int64  // of the next block
	sum    uint32 // of the last block on disk
	failed bool   // the last write or sync failed
}

var _ calls.Recording = (*spool)(nil)

// newSpool returns the spool of a call. It takes packets at once, even before it has a file.
func newSpool(owner *Spools, c calls.RecordedCall) *spool {
	p := &spool{owner: owner, call: c, stop: make(chan struct{}), done: make(chan struct{}),
		open: make([]byte, blockHead, firstBuffer), spare: make([]byte, blockHead, firstBuffer)}
	for side := range p.taps {
		p.taps[side] = tap{p, calls.Side(side)}
	}
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
	if !p.stopped && !(p.paused && p.skip == skip) {
		p.paused, p.skip = true, skip
		p.open = appendPause(p.open, at, skip)
	}
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

func (p *spool) since(t time.Time) time.Duration { return t.Sub(p.call.Started) }

// A tap takes the packets of one side.
type tap struct {
	spool *spool
	side  calls.Side
}

// Packet implements [calls.Tap].
func (t *tap) Packet(packet calls.Packet) {
	c := codecOf(packet.Codec)
	if packet.Kind != calls.Audio || c == 0 || len(packet.Payload) == 0 {
		return
	}
	p, at := t.spool, t.spool.since(packet.Arrived)
	size := entryHead + packetHead + len(packet.Payload)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.stopped {
		return
	}
	if !p.hasRoom(t.side, at, size) {
		p.lost = min(p.lost, math.MaxUint32-1) + 1
		p.owner.lost.Add(1)
		return
	}
	p.noteLost(at)
	p.open = appendPacket(p.open, at, t.side, c, &packet)
}

// hasRoom reports whether a packet may be kept, and counts its bytes if so.
func (p *spool) hasRoom(side calls.Side, at time.Duration, size int) bool {
	used := p.used[side] + int64(size)
	if p.low || len(p.open)+size > maxBuffer || size > maxPayload || used > maxBurst+int64(at.Seconds()*maxRate) {
		return false
	}
	p.used[side] = used
	return true
}

// noteLost appends an entry about packets that were dropped, if there are any.
func (p *spool) noteLost(at time.Duration) {
	if p.lost > 0 {
		p.open, p.lost = appendLost(p.open, at, p.lost), 0
	}
}

// Clock implements [calls.Tap].
func (t *tap) Clock(k calls.Kind, rtp uint32, wall time.Time) {
	p, at := t.spool, t.spool.since(time.Now())
	p.mu.Lock()
	defer p.mu.Unlock()
	if k == calls.Audio && !p.paused && !p.stopped && !p.low && len(p.open) < maxBuffer {
		p.open = appendClock(p.open, at, t.side, rtp, wall)
	}
}

// create creates the file with its header, durably.
func (p *spool) create() error {
	header, err := json.Marshal(p.call)
	if err != nil {
		return fmt.Errorf("writing spool: %w", err)
	}
	block := appendEntry(make([]byte, blockHead), headerKind, 0, len(header))
	block = append(block, header...)
	if len(header) > math.MaxUint16 {
		return fmt.Errorf("writing spool: a header of %d bytes", len(header))
	}
	p.sum = seal(block, firstSum())

	if p.file, err = p.owner.createFile(p.call.Sid); err != nil {
		return err
	}
	if err = p.owner.checkDisk(p.file); err == nil {
		err = p.writeHeader(block)
	}
	if err != nil {
		p.owner.discard(p.file, p.call.Sid)
		return fmt.Errorf("writing spool: %w", err)
	}
	return nil
}

// writeHeader writes the beginning of the file, durably.
func (p *spool) writeHeader(block []byte) error {
	n, err := p.file.Write(append([]byte(magic), block...))
	p.offset = int64(n)
	if err != nil {
		return err
	}
	return p.file.Sync()
}

// run writes what the taps bring until the recording stops, and then has it rendered.
func (p *spool) run() {
	defer close(p.done)
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()

	for synced := time.Now(); ; {
		select {
		case now := <-ticker.C:
			p.write()
			if now.Sub(synced) >= syncEvery {
				p.sync()
				p.measureDisk()
				synced = now
			}
		case <-p.stop:
			p.finish(ticker)
			return
		}
	}
}

// finish writes the end of the recording. If the disk does not take it, the recording ends at
// the last block that is on disk.
func (p *spool) finish(ticker *time.Ticker) {
	ticker.Reset(time.Second)
	for range lastTries {
		if p.write() && p.sync() {
			break
		}
		<-ticker.C
	}
	p.owner.forget(p.call.Sid)
	p.owner.enqueue(p.file, p.call.Sid)
}

// write writes the entries that wait, and reports whether all are in the file. A block that
// could not be written is tried again, at the same place.
func (p *spool) write() bool {
	for range 2 { // a block that failed before, and one with what came since
		if p.sealed == nil && !p.takeBlock() {
			return true
		}
		if _, err := p.file.WriteAt(p.sealed, p.offset); err != nil {
			p.report(err)
			return false
		}
		p.offset += int64(len(p.sealed))
		p.owner.bytes.Add(uint64(len(p.sealed)))
		p.spare, p.sealed = p.sealed[:blockHead], nil
	}
	return true
}

// takeBlock exchanges the buffers and seals the full one. It reports whether there was anything.
func (p *spool) takeBlock() bool {
	p.mu.Lock()
	block := p.open
	if len(block) == blockHead {
		p.mu.Unlock()
		return false
	}
	p.open = p.spare
	p.mu.Unlock()

	p.sealed, p.spare = block, nil
	p.sum = seal(block, p.sum)
	return true
}

// sync makes the file durable, and reports whether it is.
func (p *spool) sync() bool {
	err := p.file.Sync()
	p.report(err)
	return err == nil
}

// report logs when the disk begins to fail, and when it works again.
func (p *spool) report(err error) {
	switch {
	case err != nil && !p.failed:
		p.owner.log.Error("a recording cannot be written", "recording", fabric.HideSid(p.call.Sid), "error", err)
	case err == nil && p.failed:
		p.owner.log.Info("a recording can be written again", "recording", fabric.HideSid(p.call.Sid))
	}
	p.failed = err != nil
}
