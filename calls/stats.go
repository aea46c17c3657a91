package calls

// Stats counts calls and legs.
type Stats struct {
	Calls, Legs int
	Phones      int // legs of phones
	Rooms       int // open conference rooms
	Elsewhere   int // legs of clients that are connected here, but whose calls are on other nodes
	ByState     map[State]int
}

// Stats returns the current counts.
func (c *Calls) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := Stats{
		Calls:     len(c.calls),
		Legs:      len(c.legs),
		Rooms:     c.rooms.count(),
		Elsewhere: c.remote.count(),
		ByState:   make(map[State]int),
	}
	for _, k := range c.calls {
		stats.ByState[k.visible.Load().(State)]++
	}
	for _, l := range c.legs {
		if l.at.Load().(Socket).Phone.IsValid() {
			stats.Phones++
		}
	}
	return stats
}
