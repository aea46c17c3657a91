package relay

import (
	"context"
	"encoding/json"
	"time"
)

// WatchAt looks at all sockets as if it were later.
func (r *Relay) WatchAt(now time.Time) {
	for _, s := range r.all(nil) {
		s.watch(now, r.fabric.Tokens.Heard())
	}
}

// Panic makes a method panic, before anything is served.
func (r *Relay) Panic(name string) {
	r.methods[name] = func(context.Context, *socket, json.RawMessage) (any, error) { panic("for a test") }
}
