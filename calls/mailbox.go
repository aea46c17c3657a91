package calls

import "sync"

// A mailbox runs functions one after the other, in the order in which they were posted. Its
// goroutine exists only while functions are waiting. The zero value is ready to use.
type mailbox struct {
	mu      sync.Mutex
	waiting []func()
	running bool
}

// post appends a function and returns immediately.
func (m *mailbox) post(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, f)
	if !m.running {
		m.running = true
		go m.run()
	}
}

func (m *mailbox) run() {
	for {
		f := m.next()
		if f == nil {
			return
		}
		f()
	}
}

// next removes and returns the first function, or returns nil if no function waits.
func (m *mailbox) next() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 {
		m.running, m.waiting = false, nil
		return nil
	}
	f := m.waiting[0]
	m.waiting[0] = nil
	m.waiting = m.waiting[1:]
	return f
}
