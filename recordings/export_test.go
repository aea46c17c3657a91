package recordings

// MaxPending is the maximum number of accesses waiting to be written.
const MaxPending = maxPending

// PendingAccesses returns how many accesses wait to be written.
func (r *Recordings) PendingAccesses() int {
	r.accesses.mu.Lock()
	defer r.accesses.mu.Unlock()
	return len(r.accesses.pending)
}

// DecodeAll occupies all slots for decoding uploads in slow codecs until the caller calls end.
func (r *Recordings) DecodeAll() (end func()) {
	for range cap(r.decoding) {
		r.decoding <- struct{}{}
	}
	return func() {
		for range cap(r.decoding) {
			<-r.decoding
		}
	}
}
