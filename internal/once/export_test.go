package once

import "time"

// RenewEvery sets how often g renews an upload.
func (g *Guard) RenewEvery(d time.Duration) { g.every = d }

// Kept returns how many responses and current forms g holds in memory.
func (g *Guard) Kept() int {
	g.flights.mu.Lock()
	defer g.flights.mu.Unlock()
	return len(g.flights.all)
}
