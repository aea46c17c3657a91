package relay

import (
	"context"
	"encoding/json"
	"time"
)

// WatchAt calls watch for all sockets with the time now.
func (r *Relay) WatchAt(now time.Time) {
	for _, s := range r.all(nil) {
		s.watch(now, r.fabric.Tokens.Heard())
	}
}

// Panic makes a method panic. Call it before the relay serves any socket.
func (r *Relay) Panic(name string) {
	r.methods[name] = func(context.Context, *socket, json.RawMessage) (any, error) { panic("for a test") }
}
