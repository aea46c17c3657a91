package relay

import (
	"context"
	"encoding/json"
	"time"
)

// WatchAt watches all sockets as if the time were now.
func (r *Relay) WatchAt(now time.Time) {
	for _, s := range r.all(nil) {
		s.watch(now, r.fabric.Tokens.Heard())
	}
}

// Panic makes a method panic. Call it before anything is served.
func (r *Relay) Panic(name string) {
	r.methods[name] = func(context.Context, *socket, json.RawMessage) (any, error) { panic("for a test") }
}
