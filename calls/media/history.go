package media

import (
	"maps"
	"sync"
	"time"
)

// historyLength is how many video packets can be repeated. This is about half a second at the
// highest bit rate.
const historyLength = 128

// A history stores the latest encrypted packets of a stream, to repeat packets that the client
// missed. The source of a packet cannot repeat it, because the engine would reject the repetition
// as a replay (RFC 3711, section 3.3.2).
type history struct {
	packets [historyLength]struct {
		seq      uint16
		sealed   []byte
		repeated time.Time
	}
	bytes bucket // limits the number of repeated bytes
}

// repeatAfter is the minimum time between two repetitions of a packet. A client waits for one round
// trip before it asks again.
const repeatAfter = 20 * time.Millisecond

// requestAfter is the minimum time between two requests for the same packet to its source. All
// clients that see the same video share this limit, because all of them ask for a packet that never
// arrived here.
const requestAfter = 100 * time.Millisecond

// A requests records which packets a source was asked to repeat.
type requests struct {
	mu    sync.Mutex
	asked map[uint16]time.Time
}

// allow reports whether the source may be asked for a packet now, and records that it was asked.
func (r *requests) allow(seq uint16, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.asked[seq]; ok && now.Sub(at) < requestAfter {
		return false
	}
	if len(r.asked) >= 2*historyLength {
		maps.DeleteFunc(r.asked, func(_ uint16, at time.Time) bool { return now.Sub(at) >= requestAfter })
	}
	if len(r.asked) >= 2*historyLength {
		return false
	}
	if r.asked == nil {
		r.asked = make(map[uint16]time.Time)
	}
	r.asked[seq] = now
	return true
}

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
// repeatAfter, or if the limit for repeated bytes is exceeded.
func (h *history) take(seq uint16, now time.Time) []byte {
	p := &h.packets[seq%historyLength]
	if now.Sub(p.repeated) < repeatAfter || !h.bytes.take(float64(len(p.sealed)), now) {
		return nil
	}
	p.repeated = now
	return p.sealed
}
