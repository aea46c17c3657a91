package media

// reorder is how far packets of a client may be out of order. Those that are later are dropped
// (RFC 3711, section 3.3.2).
const reorder = 512

// A window remembers which of the last packets of an epoch were sent, by their counts.
type window [reorder / 64]uint64

// has reports whether a packet may have been sent: it was, or it is too old to know. highest is the
// count of the newest packet sent.
func (w *window) has(count, highest int64) bool {
	switch {
	case count > highest:
		return false
	case count <= highest-reorder:
		return true
	}
	return w[count%reorder/64]&(1<<(count%64)) != 0
}

// add remembers a packet that is sent. highest is the count of the newest one before it.
func (w *window) add(count, highest int64) {
	for i := max(highest+1, count-reorder+1); i <= count; i++ {
		w[i%reorder/64] &^= 1 << (i % 64)
	}
	w[count%reorder/64] |= 1 << (count % 64)
}
