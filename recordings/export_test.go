package recordings

// MaxPending is the most accesses that wait to be written.
const MaxPending = maxPending

// PendingAccesses returns how many accesses wait to be written.
func (r *Recordings) PendingAccesses() int {
	r.accesses.mu.Lock()
	defer r.accesses.mu.Unlock()
	return len(r.accesses.pending)
}
