package rtpengine

import "github.com/selvage/selvage/calls"

// Up returns the number of daemons that answered their last ping.
func (e *Engine) Up() (n int) {
	for _, d := range e.daemons {
		if d.up.Load() {
			n++
		}
	}
	return n
}

// Received asks rtpengine how many packets have arrived from the client of m.
func Received(m calls.Media) (int, error) {
	l := m.(*leg)
	l.io.Lock()
	defer l.io.Unlock()
	reply, err := l.daemon.request("query", dict{"call-id": l.session})
	return l.read(reply).received, err
}
