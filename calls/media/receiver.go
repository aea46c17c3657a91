package media

import "time"

// A receiver measures what a client sends in one section (RFC 3550, appendix A).
type receiver struct {
	ssrc     uint32
	started  bool
	first    int64  // lowest extended sequence number of the current source
	highest  int64  // highest extended sequence number of the current source
	received uint64 // packets of the current source

	pastExpected uint64 // packets of earlier sources
	pastReceived uint64

	jitter   float64 // jitter in RTP clock units
	clock    uint32
	transit  int64
	lastTime uint32
}

// measure counts a packet.
func (r *receiver) measure(p packet, clock uint32, now time.Time) {
	if !r.started || r.ssrc != p.ssrc {
		r.pastExpected, r.pastReceived = r.expected(), r.pastReceived+r.received
		r.ssrc, r.started = p.ssrc, true
		r.first, r.highest, r.received = int64(p.seq), int64(p.seq), 0
		r.transit = 0
	}
	r.received++
	extended := r.extend(p.seq)
	r.highest = max(r.highest, extended)
	r.first = min(r.first, extended)

	// Packets with the same timestamp, such as the packets of one video frame, cannot be used to
	// measure jitter.
	r.clock = clock
	arrival := int64(float64(stamp(now)%(1<<50)) / 1e9 * float64(clock))
	transit := arrival - int64(p.time)
	if r.transit != 0 && p.time != r.lastTime {
		if d := transit - r.transit; d < int64(clock) && -d < int64(clock) {
			r.jitter += (float64(max(d, -d)) - r.jitter) / 16
		}
	}
	r.transit, r.lastTime = transit, p.time
}

// extend returns a sequence number extended by its roll-overs.
func (r *receiver) extend(seq uint16) int64 {
	return r.highest + int64(int16(seq-uint16(r.highest)))
}

// expected returns how many packets the client has sent.
func (r *receiver) expected() uint64 {
	if !r.started {
		return r.pastExpected
	}
	return r.pastExpected + uint64(r.highest-r.first+1)
}

// total returns how many packets have arrived.
func (r *receiver) total() uint64 { return r.pastReceived + r.received }

// lost returns how many packets have not arrived. Late packets may still reduce the number.
func (r *receiver) lost() uint64 {
	return r.expected() - min(r.expected(), r.total())
}

// jitterDuration returns the jitter as a duration.
func (r *receiver) jitterDuration() time.Duration {
	if r.clock == 0 {
		return 0
	}
	return time.Duration(r.jitter / float64(r.clock) * float64(time.Second))
}
