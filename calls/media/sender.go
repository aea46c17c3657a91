package media

import (
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A sender is the stream that a client receives in one section. Its SSRC never changes, and its
// sequence numbers and timestamps continue without a gap when the source changes. For the client,
// it is always the same stream.
//
// An epoch is the time between two changes of the source. Within an epoch, the sequence numbers of
// the stream are the source's numbers plus an offset, and packets older than the epoch are dropped.
// A source whose numbers jump back to numbers already sent begins a new epoch. Therefore, no number
// is used twice, which would break the encryption (RFC 3711, section 9.1).
type sender struct {
	section *section
	ssrc    uint32
	track   string
	turn    sync.Mutex // held while packets that the engine generates are sent

	mu        sync.Mutex
	ctx       cipher // nil until the keys are known
	transport *transport
	clock     uint32
	format    sdp.Section // guarded by mu: codecs for telephone events and feedback

	// These fields describe the current epoch. Its first packet has the count 0.
	from        *section // nil between epochs
	fromSSRC    uint32
	highest     int64  // count of the newest packet; -1 before the first packet
	highestSeq  uint16 // sequence number of the newest packet at the source
	sentPackets window
	base        uint16 // our sequence number for count 0
	timeOffset  uint32

	started  bool
	lastSeq  uint16 // highest sequence number sent
	lastTime uint32 // timestamp of the packet with lastSeq
	lastAt   time.Time

	held     bool // packets that the engine generates replace the source's
	keyframe keyframe
	sent     uint64
	octets   uint32
	history  *history                 // for video, to repeat lost packets
	estimate atomic.Pointer[estimate] // bandwidth to a client that sees one member of a room
	reports  reports
}

func (o *sender) init(s *section) {
	o.section = s
	o.ssrc, o.track = randomSSRC(), rand.Text()[:16]

	// Starting below 2^15 makes the roll-over counter unambiguous (RFC 3711, section 3.3.1).
	o.lastSeq = uint16(mrand.Uint32()) >> 1
	o.lastTime = mrand.Uint32()
	if s.kind == calls.Video {
		o.history = newHistory()
	}
}

// setFormat sets the formats that the client can receive.
func (o *sender) setFormat(agreed sdp.Section) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.format = agreed
	if len(agreed.Codecs) > 0 {
		o.clock = uint32(agreed.Codecs[0].Clock)
	}
}

// setKeys sets the transport and its keys.
func (o *sender) setKeys(t *transport, ctx cipher) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.transport = t
	o.ctx = ctx
}

// close ends the stream.
func (o *sender) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ctx = nil
	o.transport = nil
	o.from = nil
	o.history = nil
}

// endEpoch ends the current epoch if its source is source, or if source is nil.
func (o *sender) endEpoch(source *section) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if source == nil || o.from == source {
		o.from = nil
	}
}

// currentSource returns the source of the current epoch, or nil.
func (o *sender) currentSource() *section {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.from
}

// forward sends a decrypted packet from a source, and changes b in place. It reports whether to ask
// the source for a key frame.
func (o *sender) forward(w *worker, from *section, b []byte, p packet, codec string, now time.Time) (ask bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	isDeaf := o.section.kind == calls.Audio && o.section.leg.deaf.Load()
	if o.ctx == nil || o.held || isDeaf {
		return false
	}
	count := o.count(from, p, now)
	if count < 0 {
		return false // the packet is older than the epoch
	}
	if o.section.kind == calls.Video && !o.keyframe.passes(from, codec, b[p.offset:p.end], now) {
		o.skip(p, count)
		return o.keyframe.due(now)
	}

	o.sentPackets.add(count, o.highest)
	if count > o.highest {
		o.highest = count
		o.highestSeq = p.seq
	}
	binary.BigEndian.PutUint16(b[2:], o.base+uint16(count))
	binary.BigEndian.PutUint32(b[4:], p.time+o.timeOffset)
	o.send(w, b, now)
	return false
}

// count returns the count of a packet in its epoch. The packet may begin a new epoch. Packets from
// before the epoch have a negative count.
func (o *sender) count(from *section, p packet, now time.Time) int64 {
	if o.from != from || o.fromSSRC != p.ssrc {
		o.beginEpoch(from, p, now)
	}
	count := o.highest + int64(int16(p.seq-o.highestSeq))
	if count < 0 || !o.sentPackets.has(count, o.highest) {
		return count
	}

	// Decryption rejects repeated packets, so this packet is new. Its number has moved on by at
	// least half of the range. The packets in between were lost or not forwarded.
	o.beginEpoch(from, p, now)
	return 0
}

// beginEpoch starts an epoch with a packet from a source. The packet gets the next sequence number,
// and the timestamp advances by the time that has passed.
func (o *sender) beginEpoch(from *section, p packet, now time.Time) {
	o.from = from
	o.fromSSRC = p.ssrc
	o.highest = -1
	o.highestSeq = p.seq - 1
	o.sentPackets = window{}
	o.base = o.lastSeq + 1
	o.timeOffset = o.nextTime(now) - p.time
	if o.section.kind == calls.Video {
		o.keyframe.require(now)
	}
}

// skip moves the start of an epoch past a packet. It is called before anything has been sent in the
// epoch.
func (o *sender) skip(p packet, count int64) {
	if count > o.highest {
		o.highest, o.highestSeq = -1, p.seq
	}
}

// sourceSeq returns the source's sequence number for a packet that was sent in this epoch. It
// returns false if no such packet was sent.
func (o *sender) sourceSeq(seq uint16) (uint16, bool) {
	count := o.highest + int64(int16(seq-(o.base+uint16(o.highest))))
	return o.highestSeq - uint16(o.highest-count), o.from != nil && count >= 0 && count <= o.highest
}

// isRecent reports whether seq is among the latest numbers, which the history covers.
func (o *sender) isRecent(seq uint16) bool {
	behind := o.lastSeq - seq
	return behind < historyLength
}

// nextTime returns the timestamp for a packet sent now.
func (o *sender) nextTime(now time.Time) uint32 {
	if !o.started {
		return o.lastTime
	}
	elapsed := now.Sub(o.lastAt).Seconds() * float64(o.clock)
	return o.lastTime + max(1, uint32(int64(max(0, elapsed))))
}

// send encrypts a packet whose sequence number and timestamp are set, and writes it to the current
// path. The caller holds mu.
func (o *sender) send(w *worker, b []byte, now time.Time) {
	binary.BigEndian.PutUint32(b[8:], o.ssrc)
	seq := binary.BigEndian.Uint16(b[2:])
	sealed, err := o.ctx.EncryptRTP(w.sealed[:0], b, &w.header)
	if err != nil {
		return
	}

	if !o.started || int16(seq-o.lastSeq) > 0 {
		o.started, o.lastSeq, o.lastAt = true, seq, now
		o.lastTime = binary.BigEndian.Uint32(b[4:])
	}
	o.sent++
	o.octets += uint32(len(b) - 12)
	if o.history != nil {
		o.history.add(seq, sealed)
	}
	o.write(w.engine, sealed)
}

// write sends an encrypted packet and counts it. The caller holds mu.
func (o *sender) write(e *Engine, sealed []byte) {
	if !o.transport.send(sealed) {
		e.counters.unsent.Add(1)
		return
	}
	e.counters.sent.Add(1)
	e.counters.sentBytes.Add(uint64(len(sealed)))
}
