package media

import "time"

// historyLength is how many video packets can be repeated: about half a second at the highest bit
// rate.
const historyLength = 128

// A history keeps the latest encrypted packets of a stream, to repeat those that its client missed.
// If the engine received a packet, its source cannot repeat it, because the engine would reject the
// repetition as a replay (RFC 3711, section 3.3.2).
type history struct {
	packets [historyLength]struct {
		seq      uint16
		sealed   []byte
		repeated time.Time
	}
	bytes bucket // limits repeated bytes
}

// repeatAfter is the shortest time between two repetitions of a packet. A client waits for one
// round trip before it asks again.
const repeatAfter = 20 * time.Millisecond

// newHistory returns an empty history. The limit for repeated bytes is half of the bytes that a
// section may send.
func newHistory() *history {
	return &history{bytes: bucket{rate: videoBytes / 2, burst: burst * videoBytes / 2}}
}

// add remembers a packet.
func (h *history) add(seq uint16, sealed []byte) {
	p := &h.packets[seq%historyLength]
	p.seq, p.sealed, p.repeated = seq, append(p.sealed[:0], sealed...), time.Time{}
}

// has reports whether the packet is remembered.
func (h *history) has(seq uint16) bool {
	p := &h.packets[seq%historyLength]
	return p.seq == seq && len(p.sealed) > 0
}

// take returns a remembered packet to repeat. It returns nil if the packet was repeated within
// repeatAfter, or the limit for repeated bytes is reached.
func (h *history) take(seq uint16, now time.Time) []byte {
	p := &h.packets[seq%historyLength]
	if now.Sub(p.repeated) < repeatAfter || !h.bytes.take(float64(len(p.sealed)), now) {
		return nil
	}
	p.repeated = now
	return p.sealed
}
