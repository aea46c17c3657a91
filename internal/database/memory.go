package database

// A memory holds a value that changes pass on to later changes. The value is valid until another
// process writes. Only the writer's goroutine uses the memory.
type memory struct {
	v any

	// These fields describe the current commit.
	last     func(Tx) error // runs before the commit; nil if no change has remembered a value
	recalled bool           // a change relies on a value that was remembered before this commit
}

// recall returns the remembered value. If the value was remembered before the current commit,
// recall records that a change relies on it.
func (m *memory) recall() any {
	if m.v != nil && m.last == nil {
		m.recalled = true
	}
	return m.v
}

// begin prepares the memory for a new commit.
func (m *memory) begin() { m.last, m.recalled = nil, false }

// forget deletes the remembered value.
func (m *memory) forget() { *m = memory{} }
