package record

import "time"

const (
	windowLength = time.Second            // maximum length of a window
	minWindow    = 250 * time.Millisecond // so that a hostile sender cannot cause many windows or segments

	// leap is how much the change of a timestamp must differ from the time between two packets to
	// count as a leap. The cause may be the network or the sender. For example, the sender's clock
	// may have stood still while it sent nothing.
	leap = 100 * time.Millisecond

	// A packet beyond these limits shows that the sender has restarted. RFC 3550, appendix A.1, uses
	// 3000 and 100.
	maxLeap    = 10 * time.Second
	maxDropout = 3000
	maxReorder = 100
	maxLate    = 2 * time.Second
)

// A place is the position of a packet among the packets of its side.
type place struct {
	segment int   // counted from 0
	seq     int64 // number within the segment, without wrapping
	rtp     int64 // timestamp within the segment, without wrapping
	arrived time.Duration
}

// A window covers up to a second of one side's packets.
type window struct {
	rtp  int64 // timestamp of its first packet; after a leap, the lowest one
	base int64 // minimum of arrival minus timestamp, in microseconds
	leap bool  // timestamps leapt at the window's first packet

	// sender is the difference between the sender's wall clock and its timestamps in microseconds,
	// from the first report in this window. It does not depend on the network.
	sender   int64
	reported bool
}

// A segment is a run of packets with the same SSRC and clock rate, and continuous timestamps.
type segment struct {
	clock   int64 // timestamp units per second
	windows []window
}

// A tracker unwraps the sequence numbers and timestamps of one side's packets. Its decisions depend
// only on the packets, so that each pass over a spool finds the same places.
type tracker struct {
	segments int
	ssrc     uint32
	clock    int64
	began    time.Duration // arrival of the segment's first packet

	// These fields describe the newest packet by sequence number.
	seq, rtp       int64
	seqRaw         uint16
	rtpRaw         uint32
	arrived        time.Duration
	leapt, started bool // whether the last packet followed a leap, and whether it started a segment

	before int64 // newest timestamp before the last packet
}

// place returns the place of a packet. ok is false if the packet cannot be placed, because it was
// sent before the sender restarted, or because its sender restarts too often.
func (t *tracker) place(e *entry) (p place, ok bool) {
	seq, rtp := t.seq+int64(int16(e.seq-t.seqRaw)), t.rtp+int64(int32(e.rtp-t.rtpRaw))
	t.leapt, t.started = false, false
	if t.segments == 0 || !t.continues(e, seq, rtp) {
		if t.segments > 0 && e.at-t.began < minWindow {
			return place{}, false
		}
		t.segments++
		t.ssrc, t.clock, t.began = e.ssrc, e.codec.clockRate(), e.at
		seq, rtp = 0, 0
		t.started = true
	} else if seq <= t.seq {
		return place{segment: t.segments - 1, seq: seq, rtp: rtp, arrived: e.at}, true
	} else {
		t.leapt = abs(t.drift(e, rtp)) > leap
	}

	t.before = t.rtp
	t.seq, t.rtp, t.arrived = seq, rtp, e.at
	t.seqRaw, t.rtpRaw = e.seq, e.rtp
	return place{segment: t.segments - 1, seq: seq, rtp: rtp, arrived: e.at}, true
}

// continues reports whether a packet belongs to the current segment.
func (t *tracker) continues(e *entry, seq, rtp int64) bool {
	step, late := seq-t.seq, e.at-t.arrived
	return e.ssrc == t.ssrc && e.codec.clockRate() == t.clock &&
		step < maxDropout && (step > 0 || step > -maxReorder && late < maxLate) &&
		abs(t.drift(e, rtp)) <= maxLeap
}

// drift returns how much more time has passed by the timestamps than by our clock since the newest
// packet.
func (t *tracker) drift(e *entry, rtp int64) time.Duration {
	return time.Duration(toMicros(rtp-t.rtp, t.clock))*time.Microsecond - (e.at - t.arrived)
}

// report returns the difference between the sender's wall clock and its timestamps. ok is false
// before the first packet.
func (t *tracker) report(e *entry) (sender int64, ok bool) {
	rtp := t.rtp + int64(int32(e.rtp-t.rtpRaw))
	return e.wall - toMicros(rtp, t.clock), t.segments > 0
}

// toMicros converts a number of timestamp units to microseconds.
func toMicros(rtp, clock int64) int64 {
	if clock == 0 {
		return 0
	}
	return rtp * 1_000_000 / clock
}

func abs(d time.Duration) time.Duration { return max(d, -d) }
