package record

import (
	"math"
	"time"

	"github.com/selvage/selvage/calls"
)

// Packets from a side are dropped beyond maxRate bytes per second, after a burst of maxBurst bytes.
// Opus needs at most 64 KB per second.
const (
	maxRate  = 96 << 10
	maxBurst = 1 << 20
)

// A tap receives the packets of one side.
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

// hasRoom reports whether a packet may be stored. If so, it counts the packet's bytes.
func (p *spool) hasRoom(side calls.Side, at time.Duration, size int) bool {
	used := p.used[side] + int64(size)
	isOverRate := used > maxBurst+int64(at.Seconds()*maxRate)
	isFull := p.low || len(p.open)+size > maxBuffer
	if isFull || isOverRate || size > maxPayload {
		return false
	}
	p.used[side] = used
	return true
}

// noteLost appends an entry about dropped packets, if any were dropped.
func (p *spool) noteLost(at time.Duration) {
	if p.lost > 0 {
		p.open = appendLost(p.open, at, p.lost)
		p.lost = 0
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
