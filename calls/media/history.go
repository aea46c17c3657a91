package media

import "time"

// historyLength is how many packets of video can be repeated: about half a second at the
// highest bit rate.
const historyLength = 128

// A history keeps the last encrypted packets of a stream. A client that missed some gets
// them from here. Its source cannot repeat those that the engine has received, because a
// repeated packet looks like a replayed one (RFC 3711, section 3.3.2).
type history struct {
	packets [historyLength]struct {
		seq      uint16
		sealed   []byte
		repeated time.Time
	}
	bytes bucket // that may be repeated
}

// repeatAfter is the shortest time between two repetitions of a packet. A client waits for a
// round trip before it asks again.
const repeatAfter = 20 * time.Millisecond

// newHistory returns an empty history. Repetitions may have half the bytes that a section may send.
func newHistory() *history {
	return &history{bytes: bucket{rate: videoBytes / 2, burst: burst * videoBytes / 2}}
}

// add remembers a packet.
func (h *history) add(seq uint16, sealed []byte) {
	p := &h.packets[seq%historyLength]
	p.seq, p.sealed, p.repeated = seq, append(p.sealed[:0], sealed...), time.Time{}
}

// has reports whether a packet is remembered.
func (h *history) has(seq uint16) bool {
	p := &h.packets[seq%historyLength]
	return p.seq == seq && len(p.sealed) > 0
}

// take returns a remembered packet to be repeated now, or nil if it was repeated a moment ago, or
// too much was repeated.
func (h *history) take(seq uint16, now time.Time) []byte {
	p := &h.packets[seq%historyLength]
	if now.Sub(p.repeated) < repeatAfter || !h.bytes.take(float64(len(p.sealed)), now) {
		return nil
	}
	p.repeated = now
	return p.sealed
}
