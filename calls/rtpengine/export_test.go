package rtpengine

// Up returns the number of daemons that answered their last ping.
func (e *Engine) Up() (n int) {
	for _, d := range e.daemons {
		if d.up.Load() {
			n++
		}
	}
	return n
}
