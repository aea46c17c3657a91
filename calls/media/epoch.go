package media

// An epoch is the time between two changes of a stream's source. It maps the source's sequence
// numbers and timestamps to those of the stream.
//
// Packets are counted from the first packet of the epoch, which has the count 0. Packets from
// before the epoch have negative counts.
type epoch struct {
	from       *section // nil between epochs
	fromSSRC   uint32
	base       uint16 // the stream's sequence number for count 0
	timeOffset uint32 // what is added to the source's timestamps

	newest    int64  // count of the newest sent packet; -1 before the first one
	newestSeq uint16 // the source's sequence number for the count newest
	recent    window // which of the recent counts were sent
}

// count returns the count of the packet that has the source's sequence number seq.
func (e *epoch) count(seq uint16) int64 {
	return e.newest + int64(int16(seq-e.newestSeq))
}

// continues reports whether a packet belongs to the epoch or is older than the epoch. If not, the
// packet must begin a new epoch.
func (e *epoch) continues(from *section, p packet) bool {
	if e.from != from || e.fromSSRC != p.ssrc {
		return false
	}

	// Decryption rejects repeated packets, so a packet whose count was already sent is new. Its
	// number has moved on by at least half of the range, and the packets in between were lost or
	// not forwarded.
	count := e.count(p.seq)
	return count < 0 || !e.recent.has(count, e.newest)
}

// skip makes the packet after p the first one of the epoch. Nothing has been sent in the epoch yet.
func (e *epoch) skip(p packet) { e.newestSeq = p.seq }

// assignNumber records that p is being sent, and returns its sequence number in the stream.
func (e *epoch) assignNumber(p packet) uint16 {
	count := e.count(p.seq)
	e.recent.add(count, e.newest)
	if count > e.newest {
		e.newest = count
		e.newestSeq = p.seq
	}
	return e.base + uint16(count)
}

// sourceSeq returns the source's sequence number for the packet that has the number seq in the
// stream. It returns false if this number does not belong to the epoch.
func (e *epoch) sourceSeq(seq uint16) (uint16, bool) {
	if e.from == nil {
		return 0, false
	}
	newest := e.base + uint16(e.newest) // the stream's number for the newest packet
	behind := int64(int16(newest - seq))
	if behind < 0 || behind > e.newest {
		return 0, false
	}
	return e.newestSeq - uint16(behind), true
}
