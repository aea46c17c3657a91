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
// Within an [epoch], the sequence numbers of the stream are the source's numbers plus an offset, and
// packets older than the epoch are dropped. A source whose numbers jump back to numbers already sent
// begins a new epoch. Therefore, no number is used twice, which would break the encryption
// (RFC 3711, section 9.1).
type sender struct {
	// Set by init, and never changed.
	section *section
	ssrc    uint32
	track   string

	// generating is held while the engine generates packets: beeps or digits. It is locked before mu.
	generating sync.Mutex

	// estimate is the bandwidth to a client that sees one member of a room.
	estimate atomic.Pointer[estimate]

	// mu guards all fields below.
	mu     sync.Mutex
	client destination
	epoch  epoch // maps the current source's packets to the stream
	gate   keyframeGate
	held   bool // the source's packets are dropped while the engine generates others
	last   position

	// Packets that were sent, for RTCP.
	sent    uint64
	octets  uint32   // bytes of payload
	history *history // to repeat lost packets; nil for audio
	reports reports
}

// A destination is the client that receives a stream.
type destination struct {
	cipher    cipher     // nil until the keys are known, and after close
	transport *transport // nil whenever cipher is
	format    sdp.Section
	clock     uint32 // clock rate of the first codec in format
}

// A position is the packet of a stream with the highest sequence number.
type position struct {
	started bool // false before the first packet; seq and time are random then
	seq     uint16
	time    uint32 // RTP timestamp
	at      time.Time
}

// init prepares the stream of a new section.
func (out *sender) init(s *section) {
	out.section = s
	out.ssrc = randomSSRC()
	out.track = rand.Text()[:16]

	// Starting below 2^15 makes the roll-over counter unambiguous (RFC 3711, section 3.3.1).
	out.last.seq = uint16(mrand.Uint32()) >> 1
	out.last.time = mrand.Uint32()
	if s.kind == calls.Video {
		out.history = newHistory()
	}
}

// setFormat sets the formats that the client can receive.
func (out *sender) setFormat(agreed sdp.Section) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.client.format = agreed
	if len(agreed.Codecs) > 0 {
		out.client.clock = uint32(agreed.Codecs[0].Clock)
	}
}

// setKeys sets the transport and its keys.
func (out *sender) setKeys(t *transport, keys cipher) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.client.transport = t
	out.client.cipher = keys
}

// close ends the stream.
func (out *sender) close() {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.client.cipher = nil
	out.client.transport = nil
	out.epoch.from = nil
	out.history = nil
}

// endEpoch ends the current epoch if its source is source, or if source is nil.
func (out *sender) endEpoch(source *section) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if source == nil || out.epoch.from == source {
		out.epoch.from = nil
	}
}

// currentSource returns the source of the current epoch, or nil.
func (out *sender) currentSource() *section {
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.epoch.from
}

// forward sends a decrypted packet from a source, and changes b in place. It reports whether to ask
// the source for a key frame.
func (out *sender) forward(
	w *worker, from *section, b []byte, p packet, codec string, now time.Time,
) bool {
	out.mu.Lock()
	defer out.mu.Unlock()
	isDeaf := out.section.kind == calls.Audio && out.section.leg.deaf.Load()
	if out.client.cipher == nil || out.held || isDeaf {
		return false
	}

	if !out.epoch.continues(from, p) {
		out.beginEpoch(from, p, now)
	}
	if out.epoch.count(p.seq) < 0 {
		return false // the packet is older than the epoch
	}
	if out.section.kind == calls.Video && !out.gate.admit(from, codec, b[p.offset:p.end], now) {
		out.epoch.skip(p)
		return out.gate.allowRequest(now)
	}

	binary.BigEndian.PutUint16(b[2:], out.epoch.assignNumber(p))
	binary.BigEndian.PutUint32(b[4:], p.time+out.epoch.timeOffset)
	out.send(w, b, now)
	return false
}

// beginEpoch starts an epoch with a packet from a source. The packet gets the next sequence number,
// and the timestamp advances by the time that has passed. The caller holds mu.
func (out *sender) beginEpoch(from *section, p packet, now time.Time) {
	out.epoch = epoch{
		from:       from,
		fromSSRC:   p.ssrc,
		base:       out.last.seq + 1,
		timeOffset: out.nextTime(now, out.client.clock) - p.time,
		newest:     -1,
		newestSeq:  p.seq - 1,
	}
	if out.section.kind == calls.Video {
		out.gate.close(now)
	}
}

// isRecent reports whether seq is among the latest numbers, which the history covers. The caller
// holds mu.
func (out *sender) isRecent(seq uint16) bool {
	return out.last.seq-seq < historyLength
}

// nextTime returns the timestamp for a packet sent now. It is later than that of the newest packet.
// The caller holds mu.
func (out *sender) nextTime(now time.Time, clock uint32) uint32 {
	if !out.last.started {
		return out.last.time
	}
	elapsed := now.Sub(out.last.at).Seconds() * float64(clock)
	return out.last.time + max(1, uint32(int64(max(0, elapsed))))
}

// A generatedPacket is a packet that the engine creates.
type generatedPacket struct {
	payloadType uint8
	marker      bool
	timestamp   uint32
	payload     []byte
}

// sendGenerated sends a packet with the next sequence number. The caller holds mu.
func (out *sender) sendGenerated(w *worker, p generatedPacket, now time.Time) {
	b := append(w.plain[:12], p.payload...)
	clear(b[:12])
	b[0] = 0x80 // version 2
	b[1] = p.payloadType
	if p.marker {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], out.last.seq+1)
	binary.BigEndian.PutUint32(b[4:], p.timestamp)
	out.send(w, b, now)
}

// send encrypts a packet whose sequence number and timestamp are set, and writes it to the current
// path. The caller holds mu.
func (out *sender) send(w *worker, b []byte, now time.Time) {
	binary.BigEndian.PutUint32(b[8:], out.ssrc)
	seq := binary.BigEndian.Uint16(b[2:])
	sealed, err := out.client.cipher.EncryptRTP(w.sealed[:0], b, &w.header)
	if err != nil {
		return
	}

	isNewest := !out.last.started || int16(seq-out.last.seq) > 0
	if isNewest {
		out.last = position{started: true, seq: seq, time: binary.BigEndian.Uint32(b[4:]), at: now}
	}
	out.sent++
	out.octets += uint32(len(b) - 12)
	if out.history != nil {
		out.history.add(seq, sealed)
	}
	out.write(w.engine, sealed)
}

// write sends an encrypted packet and counts it. The caller holds mu.
func (out *sender) write(e *Engine, sealed []byte) {
	if !out.client.transport.send(sealed) {
		e.counters.unsent.Add(1)
		return
	}
	e.counters.sent.Add(1)
	e.counters.sentBytes.Add(uint64(len(sealed)))
}
