package turn

import (
	"context"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
)

// WaitForProof sets how long a connection may lack an allocation.
func (s *Server) WaitForProof(d time.Duration) { s.proof.Store(int64(d)) }

// Credentials returns the username and password for a holder.
func (s *Server) Credentials(holder string, expires time.Time) (username, password string) {
	return s.credentials(holder, expires)
}

// Accepts reports whether the credentials of a user are valid for a request now.
func (s *Server) Accepts(method stun.Method, username string) bool {
	_, _, ok := s.authenticate(&turn.RequestAttributes{Username: username, Realm: realm, Method: method})
	return ok
}

// Update checks the server, as Watch does every minute.
func (s *Server) Update(ctx context.Context) { s.update(ctx, true) }

// MaxPerHolder is the maximum number of allocations per holder.
const MaxPerHolder = maxPerHolder
