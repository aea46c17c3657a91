package database

// A memory is what changes leave for each other, while no other process writes. It is the
// writer's goroutine's alone.
type memory struct {
	v        any
	last     func(Tx) error // to be run before the commit; nil where nothing was remembered in it
	recalled bool           // something in this commit is built on what was before it
}

func (m *memory) recall() any {
	if m.v != nil && m.last == nil {
		m.recalled = true
	}
	return m.v
}

// begin begins a commit.
func (m *memory) begin() { m.last, m.recalled = nil, false }

// forget forgets what may not be so, and tells whether anything was built on it.
func (m *memory) forget() (recalled bool) {
	recalled = m.recalled
	*m = memory{}
	return recalled
}
