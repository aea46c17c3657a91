package relay

import "time"

// WatchAt looks at all sockets as if it were later.
func (r *Relay) WatchAt(now time.Time) {
	for _, s := range r.all(nil) {
		s.watch(now, r.fabric.Heard())
	}
}
