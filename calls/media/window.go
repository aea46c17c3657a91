package media

// reorder is how late a client's packet may arrive, counted in packets. Later packets are dropped
// (RFC 3711, section 3.3.2).
const reorder = 512

// A window is a bit set of the packets that were sent, among the latest of an epoch. Bits are
// indexed by the packet's count.
type window [reorder / 64]uint64

// has reports whether a packet may have been sent: it was sent, or it is too old to know. highest
// is the count of the newest sent packet.
func (w *window) has(count, highest int64) bool {
	switch {
	case count > highest:
		return false
	case count <= highest-reorder:
		return true
	}
	return w[count%reorder/64]&(1<<(count%64)) != 0
}

// add records a packet that is being sent. highest is the count of the newest packet before it.
func (w *window) add(count, highest int64) {
	for i := max(highest+1, count-reorder+1); i <= count; i++ {
		w[i%reorder/64] &^= 1 << (i % 64)
	}
	w[count%reorder/64] |= 1 << (count % 64)
}
